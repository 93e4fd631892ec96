"""DescribeQuorum (API key 55), as Kafka's message of version 2 has it."""

from dataclasses import dataclass
from uuid import UUID

from wire.errors import ErrorCode
from wire.primitives import ZERO_UUID

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
    replica_directory_id: UUID = ZERO_UUID
    log_end_offset: int = -1
    last_fetch_timestamp: int = -1
    last_caught_up_timestamp: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDataResult:
    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    leader_id: int = -1
    leader_epoch: int = -1
    high_watermark: int = -1
    current_voters: tuple[ReplicaState, ...] = ()
    observers: tuple[ReplicaState, ...] = ()


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
    error_message: str | None = None
    topics: tuple[TopicDataResult, ...] = ()
    nodes: tuple[Node, ...] = ()
