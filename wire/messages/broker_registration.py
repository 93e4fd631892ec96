"""BrokerRegistration (API key 62), as Kafka's message of version 4 has it."""

from uuid import UUID

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "BrokerRegistrationRequest",
    "BrokerRegistrationResponse",
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


class BrokerRegistrationRequest(Message):
    broker_id: int
    cluster_id: str
    incarnation_id: UUID
    listeners: tuple[Listener, ...]
    features: tuple[Feature, ...] = ()
    rack: str | None = None
    is_migrating_zk_broker: bool = False
    log_dirs: tuple[UUID, ...] = ()
    previous_broker_epoch: int = -1


class BrokerRegistrationResponse(Message):
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    broker_epoch: int = -1
