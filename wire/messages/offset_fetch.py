"""OffsetFetch (API key 9), as Kafka's message of version 9 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "OffsetFetchRequest",
    "OffsetFetchRequestGroup",
    "OffsetFetchRequestTopics",
    "OffsetFetchResponse",
    "OffsetFetchResponseGroup",
    "OffsetFetchResponsePartitions",
    "OffsetFetchResponseTopics",
]


class OffsetFetchRequestTopics(Message):
    name: str
    partition_indexes: tuple[int, ...] = ()


class OffsetFetchRequestGroup(Message):
    group_id: str
    member_id: str | None = None
    member_epoch: int = -1
    topics: tuple[OffsetFetchRequestTopics, ...] | None = None  # None: all that it has


class OffsetFetchRequest(Message):
    groups: tuple[OffsetFetchRequestGroup, ...] = ()
    require_stable: bool = False


class OffsetFetchResponsePartitions(Message):
    partition_index: int
    committed_offset: int = -1
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: ErrorCode = ErrorCode.NONE


class OffsetFetchResponseTopics(Message):
    name: str
    partitions: tuple[OffsetFetchResponsePartitions, ...]


class OffsetFetchResponseGroup(Message):
    group_id: str = ""  # lost before version 8, which knows one group an answer
    topics: tuple[OffsetFetchResponseTopics, ...] = ()
    error_code: ErrorCode = ErrorCode.NONE


class OffsetFetchResponse(Message):
    throttle_time_ms: int = 0
    groups: tuple[OffsetFetchResponseGroup, ...] = ()
