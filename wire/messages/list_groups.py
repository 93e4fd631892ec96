"""ListGroups (API key 16), as Kafka's message of version 5 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "ListGroupsRequest",
    "ListGroupsResponse",
    "ListedGroup",
]


class ListGroupsRequest(Message):
    states_filter: tuple[str, ...] = ()  # empty: all
    types_filter: tuple[str, ...] = ()


class ListedGroup(Message):
    group_id: str
    protocol_type: str
    group_state: str = ""
    group_type: str = ""


class ListGroupsResponse(Message):
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    groups: tuple[ListedGroup, ...] = ()
