"""Heartbeat (API key 12), as Kafka's message of version 4 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "HeartbeatRequest",
    "HeartbeatResponse",
]


class HeartbeatRequest(Message):
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None


class HeartbeatResponse(Message):
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
