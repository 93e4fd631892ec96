"""Log directories of brokers, and the replicas in them."""

from uuid import UUID

from wire.message import Message
from wire.messages.endpoints import Outcome, Throttled, ThrottledOutcome


class AlterReplicaLogDirTopic(Message):
    name: str
    partitions: tuple[int, ...] = ()


class AlterReplicaLogDir(Message):
    path: str  # absolute
    topics: tuple[AlterReplicaLogDirTopic, ...]


class AlterReplicaLogDirsRequest(Message):
    dirs: tuple[AlterReplicaLogDir, ...]


class AlterReplicaLogDirPartitionResult(Outcome):
    partition_index: int


class AlterReplicaLogDirTopicResult(Message):
    topic_name: str
    partitions: tuple[AlterReplicaLogDirPartitionResult, ...]


class AlterReplicaLogDirsResponse(Throttled):
    results: tuple[AlterReplicaLogDirTopicResult, ...] = ()


class DescribableLogDirTopic(Message):
    topic: str
    partitions: tuple[int, ...] = ()


class DescribeLogDirsRequest(Message):
    topics: tuple[DescribableLogDirTopic, ...] | None = None  # None: all


class DescribeLogDirsPartition(Message):
    partition_index: int
    partition_size: int  # bytes
    offset_lag: int = 0
    is_future_key: bool = False  # a copy that is being moved to another directory


class DescribeLogDirsTopic(Message):
    name: str
    partitions: tuple[DescribeLogDirsPartition, ...]


class DescribeLogDirsResult(Outcome):
    log_dir: str  # a path
    topics: tuple[DescribeLogDirsTopic, ...] = ()
    total_bytes: int = -1  # of the volume; -1: unknown
    usable_bytes: int = -1
    is_cordoned: bool = False


class DescribeLogDirsResponse(ThrottledOutcome):
    results: tuple[DescribeLogDirsResult, ...] = ()


class DirectoryPartition(Message):
    partition_index: int


class DirectoryTopic(Message):
    topic_id: UUID
    partitions: tuple[DirectoryPartition, ...]


class DirectoryData(Message):
    id_: UUID
    topics: tuple[DirectoryTopic, ...]


class AssignReplicasToDirsRequest(Message):
    broker_id: int
    broker_epoch: int = -1
    directories: tuple[DirectoryData, ...]


class DirectoryPartitionResult(Outcome):
    partition_index: int


class DirectoryTopicResult(Message):
    topic_id: UUID
    partitions: tuple[DirectoryPartitionResult, ...]


class DirectoryResult(Message):
    id_: UUID
    topics: tuple[DirectoryTopicResult, ...]


class AssignReplicasToDirsResponse(ThrottledOutcome):
    directories: tuple[DirectoryResult, ...] = ()
