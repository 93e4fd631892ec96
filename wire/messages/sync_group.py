"""SyncGroup (API key 14), as Kafka's message of version 5 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "SyncGroupRequest",
    "SyncGroupRequestAssignment",
    "SyncGroupResponse",
]


class SyncGroupRequestAssignment(Message):
    member_id: str
    assignment: bytes


class SyncGroupRequest(Message):
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[SyncGroupRequestAssignment, ...] = ()  # the leader's


class SyncGroupResponse(Message):
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""
