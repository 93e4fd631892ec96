"""AssignReplicasToDirs (API key 73), as Kafka's message of version 0 has it."""

from dataclasses import dataclass
from uuid import UUID

from wire.errors import ErrorCode

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionData:
    partition_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicData:
    topic_id: UUID
    partitions: tuple[PartitionData, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryData:
    id_: UUID
    topics: tuple[TopicData, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignReplicasToDirsRequest:
    broker_id: int
    broker_epoch: int = -1
    directories: tuple[DirectoryData, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionResult:
    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicResult:
    topic_id: UUID
    partitions: tuple[PartitionResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryResult:
    id_: UUID
    topics: tuple[TopicResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignReplicasToDirsResponse:
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    directories: tuple[DirectoryResult, ...] = ()
