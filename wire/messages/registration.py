"""Registrations and heartbeats, and the envelope in which brokers forward requests."""

from uuid import UUID

from wire.message import Message
from wire.messages.endpoints import Outcome, ThrottledExplanation, ThrottledOutcome


class RegisteredListener(Message):
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
    listeners: tuple[RegisteredListener, ...]
    features: tuple[Feature, ...] = ()
    rack: str | None = None
    is_migrating_zk_broker: bool = False
    log_dirs: tuple[UUID, ...] = ()
    previous_broker_epoch: int = -1


class BrokerRegistrationResponse(ThrottledOutcome):
    broker_epoch: int = -1


class ControllerRegistrationRequest(Message):
    controller_id: int
    incarnation_id: UUID
    zk_migration_ready: bool = False
    listeners: tuple[RegisteredListener, ...]
    features: tuple[Feature, ...] = ()


class ControllerRegistrationResponse(ThrottledExplanation):
    pass


class BrokerHeartbeatRequest(Message):
    broker_id: int
    broker_epoch: int = -1
    current_metadata_offset: int
    want_fence: bool = False
    want_shut_down: bool = False
    offline_log_dirs: tuple[UUID, ...] = ()
    cordoned_log_dirs: tuple[UUID, ...] | None = None


class BrokerHeartbeatResponse(ThrottledOutcome):
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False


class UnregisterBrokerRequest(Message):
    broker_id: int


class UnregisterBrokerResponse(ThrottledExplanation):
    pass


class EnvelopeRequest(Message):
    request_data: bytes  # the inner frame: header and body
    request_principal: bytes | None = None
    client_host_address: bytes  # 4 or 16 bytes


class EnvelopeResponse(Outcome):
    response_data: bytes | None = None
