"""ControllerRegistration (API key 70), as Kafka's message of version 0 has it."""

from uuid import UUID

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "ControllerRegistrationRequest",
    "ControllerRegistrationResponse",
    "Feature",
    "Listener",
]


class Listener(Message):
    name: str
    host: str
    port: int
    security_protocol: int = 0


class Feature(Message):
    name: str
    min_supported_version: int
    max_supported_version: int


class ControllerRegistrationRequest(Message):
    controller_id: int
    incarnation_id: UUID
    zk_migration_ready: bool = False
    listeners: tuple[Listener, ...]
    features: tuple[Feature, ...] = ()


class ControllerRegistrationResponse(Message):
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
