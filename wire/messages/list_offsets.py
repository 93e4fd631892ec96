"""ListOffsets (API key 2), as Kafka's message of version 10 has it."""

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "ListOffsetsPartition",
    "ListOffsetsPartitionResponse",
    "ListOffsetsRequest",
    "ListOffsetsResponse",
    "ListOffsetsTopic",
    "ListOffsetsTopicResponse",
]


class ListOffsetsPartition(Message):
    partition_index: int
    current_leader_epoch: int = -1
    timestamp: int  # -1 latest, -2 earliest, -3 greatest timestamp


class ListOffsetsTopic(Message):
    name: str
    partitions: tuple[ListOffsetsPartition, ...]


class ListOffsetsRequest(Message):
    replica_id: int = -1
    isolation_level: int = 0
    topics: tuple[ListOffsetsTopic, ...]
    timeout_ms: int = 0


class ListOffsetsPartitionResponse(Message):
    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


class ListOffsetsTopicResponse(Message):
    name: str
    partitions: tuple[ListOffsetsPartitionResponse, ...]


class ListOffsetsResponse(Message):
    throttle_time_ms: int = 0
    topics: tuple[ListOffsetsTopicResponse, ...] = ()
