"""BrokerHeartbeat (API key 63), as Kafka's message of version 2 has it."""

from uuid import UUID

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "BrokerHeartbeatRequest",
    "BrokerHeartbeatResponse",
]


class BrokerHeartbeatRequest(Message):
    broker_id: int
    broker_epoch: int = -1
    current_metadata_offset: int
    want_fence: bool = False
    want_shut_down: bool = False
    offline_log_dirs: tuple[UUID, ...] = ()
    cordoned_log_dirs: tuple[UUID, ...] | None = None


class BrokerHeartbeatResponse(Message):
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False
