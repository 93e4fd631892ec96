"""ControllerRegistration (API key 70), as Kafka's message of version 0 has it."""

from dataclasses import dataclass
from uuid import UUID

from wire.errors import ErrorCode

__all__ = [
    "ControllerRegistrationRequest",
    "ControllerRegistrationResponse",
    "Feature",
    "Listener",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    name: str
    host: str
    port: int
    security_protocol: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    name: str
    min_supported_version: int
    max_supported_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerRegistrationRequest:
    controller_id: int
    incarnation_id: UUID
    zk_migration_ready: bool = False
    listeners: tuple[Listener, ...]
    features: tuple[Feature, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerRegistrationResponse:
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
