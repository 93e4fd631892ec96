"""DeleteGroups (API key 42), as Kafka's message of version 2 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "DeletableGroupResult",
    "DeleteGroupsRequest",
    "DeleteGroupsResponse",
]


class DeleteGroupsRequest(Message):
    groups_names: tuple[str, ...]


class DeletableGroupResult(Message):
    group_id: str
    error_code: ErrorCode = ErrorCode.NONE


class DeleteGroupsResponse(Message):
    throttle_time_ms: int = 0
    results: tuple[DeletableGroupResult, ...] = ()
