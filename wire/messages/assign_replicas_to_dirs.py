"""AssignReplicasToDirs (API key 73), as Kafka's message of version 0 has it."""

from uuid import UUID

from wire.errors import ErrorCode
from wire.message import Message

__all__ = [
    "AssignReplicasToDirsRequest",
    "AssignReplicasToDirsResponse",
    "DirectoryData",
    "DirectoryResult",
    "PartitionData",
    "PartitionResult",
    "TopicData",
    "TopicResult",
]


class PartitionData(Message):
    partition_index: int


class TopicData(Message):
    topic_id: UUID
    partitions: tuple[PartitionData, ...]


class DirectoryData(Message):
    id_: UUID
    topics: tuple[TopicData, ...]


class AssignReplicasToDirsRequest(Message):
    broker_id: int
    broker_epoch: int = -1
    directories: tuple[DirectoryData, ...]


class PartitionResult(Message):
    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE


class TopicResult(Message):
    topic_id: UUID
    partitions: tuple[PartitionResult, ...]


class DirectoryResult(Message):
    id_: UUID
    topics: tuple[TopicResult, ...]


class AssignReplicasToDirsResponse(Message):
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    directories: tuple[DirectoryResult, ...] = ()
