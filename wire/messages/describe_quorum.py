"""DescribeQuorum (API key 55), as Kafka's message of version 2 has it."""

from dataclasses import dataclass
from uuid import UUID

from wire.errors import ErrorCode

__all__ = [
    "DescribeQuorumRequest",
    "DescribeQuorumResponse",
    "Listener",
    "Node",
    "PartitionData",
    "PartitionDataResult",
    "ReplicaState",
    "TopicData",
    "TopicDataResult",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionData:
    partition_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicData:
    topic_name: str
    partitions: tuple[PartitionData, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeQuorumRequest:
    topics: tuple[TopicData, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    replica_id: int
    replica_directory_id: UUID
    log_end_offset: int
    last_fetch_timestamp: int = -1
    last_caught_up_timestamp: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDataResult:
    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None
    leader_id: int
    leader_epoch: int
    high_watermark: int
    current_voters: tuple[ReplicaState, ...]
    observers: tuple[ReplicaState, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDataResult:
    topic_name: str
    partitions: tuple[PartitionDataResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    node_id: int
    listeners: tuple[Listener, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeQuorumResponse:
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None
    topics: tuple[TopicDataResult, ...]
    nodes: tuple[Node, ...]
