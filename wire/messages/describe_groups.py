"""DescribeGroups (API key 15), as Kafka's message of version 6 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "DescribeGroupsRequest",
    "DescribeGroupsResponse",
    "DescribedGroup",
    "DescribedGroupMember",
]


class DescribeGroupsRequest(Message):
    groups: tuple[str, ...]
    include_authorized_operations: bool = False


class DescribedGroupMember(Message):
    member_id: str
    group_instance_id: str | None = None
    client_id: str
    client_host: str
    member_metadata: bytes = b""
    member_assignment: bytes = b""


class DescribedGroup(Message):
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    group_id: str
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: tuple[DescribedGroupMember, ...] = ()
    authorized_operations: int = -(2**31)


class DescribeGroupsResponse(Message):
    throttle_time_ms: int = 0
    groups: tuple[DescribedGroup, ...] = ()
