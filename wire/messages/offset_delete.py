"""OffsetDelete (API key 47), as Kafka's message of version 0 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "OffsetDeleteRequest",
    "OffsetDeleteRequestPartition",
    "OffsetDeleteRequestTopic",
    "OffsetDeleteResponse",
    "OffsetDeleteResponsePartition",
    "OffsetDeleteResponseTopic",
]


class OffsetDeleteRequestPartition(Message):
    partition_index: int


class OffsetDeleteRequestTopic(Message):
    name: str
    partitions: tuple[OffsetDeleteRequestPartition, ...]


class OffsetDeleteRequest(Message):
    group_id: str
    topics: tuple[OffsetDeleteRequestTopic, ...]


class OffsetDeleteResponsePartition(Message):
    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE


class OffsetDeleteResponseTopic(Message):
    name: str
    partitions: tuple[OffsetDeleteResponsePartition, ...]


class OffsetDeleteResponse(Message):
    error_code: ErrorCode = ErrorCode.NONE
    throttle_time_ms: int = 0
    topics: tuple[OffsetDeleteResponseTopic, ...] = ()
