"""JoinGroup (API key 11), as Kafka's message of version 9 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "JoinGroupRequest",
    "JoinGroupRequestProtocol",
    "JoinGroupResponse",
    "JoinGroupResponseMember",
]


class JoinGroupRequestProtocol(Message):
    name: str
    metadata: bytes


class JoinGroupRequest(Message):
    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int = -1  # version 0 has none: the session timeout counts
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str
    protocols: tuple[JoinGroupRequestProtocol, ...]  # the member's favourite first
    reason: str | None = None


class JoinGroupResponseMember(Message):
    member_id: str
    group_instance_id: str | None = None
    metadata: bytes


class JoinGroupResponse(Message):
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    member_id: str
    members: tuple[JoinGroupResponseMember, ...] = ()  # for the leader, who assigns
