"""LeaveGroup (API key 13), as Kafka's message of version 5 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "LeaveGroupRequest",
    "LeaveGroupResponse",
    "MemberIdentity",
    "MemberResponse",
]


class MemberIdentity(Message):
    member_id: str
    group_instance_id: str | None = None
    reason: str | None = None


class LeaveGroupRequest(Message):
    group_id: str
    members: tuple[MemberIdentity, ...]


class MemberResponse(Message):
    member_id: str
    group_instance_id: str | None = None
    error_code: ErrorCode = ErrorCode.NONE


class LeaveGroupResponse(Message):
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    members: tuple[MemberResponse, ...] = ()
