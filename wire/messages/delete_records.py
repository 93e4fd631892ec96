"""DeleteRecords (API key 21), as Kafka's message of version 2 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "DeleteRecordsPartition",
    "DeleteRecordsPartitionResult",
    "DeleteRecordsRequest",
    "DeleteRecordsResponse",
    "DeleteRecordsTopic",
    "DeleteRecordsTopicResult",
]


class DeleteRecordsPartition(Message):
    partition_index: int
    offset: int  # -1: the high watermark


class DeleteRecordsTopic(Message):
    name: str
    partitions: tuple[DeleteRecordsPartition, ...]


class DeleteRecordsRequest(Message):
    topics: tuple[DeleteRecordsTopic, ...]
    timeout_ms: int


class DeleteRecordsPartitionResult(Message):
    partition_index: int
    low_watermark: int
    error_code: ErrorCode = ErrorCode.NONE


class DeleteRecordsTopicResult(Message):
    name: str
    partitions: tuple[DeleteRecordsPartitionResult, ...]


class DeleteRecordsResponse(Message):
    throttle_time_ms: int = 0
    topics: tuple[DeleteRecordsTopicResult, ...] = ()
