"""DescribeQuorum (API key 55), as Kafka's message of version 2 has it."""

from uuid import UUID

from wire.errors import ErrorCode
from wire.message import Message
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


class PartitionData(Message):
    partition_index: int


class TopicData(Message):
    topic_name: str
    partitions: tuple[PartitionData, ...]


class DescribeQuorumRequest(Message):
    topics: tuple[TopicData, ...]


class ReplicaState(Message):
    replica_id: int
    replica_directory_id: UUID = ZERO_UUID
    log_end_offset: int = -1
    last_fetch_timestamp: int = -1
    last_caught_up_timestamp: int = -1


class PartitionDataResult(Message):
    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    leader_id: int = -1
    leader_epoch: int = -1
    high_watermark: int = -1
    current_voters: tuple[ReplicaState, ...] = ()
    observers: tuple[ReplicaState, ...] = ()


class TopicDataResult(Message):
    topic_name: str
    partitions: tuple[PartitionDataResult, ...]


class Listener(Message):
    name: str
    host: str
    port: int


class Node(Message):
    node_id: int
    listeners: tuple[Listener, ...]


class DescribeQuorumResponse(Message):
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    topics: tuple[TopicDataResult, ...] = ()
    nodes: tuple[Node, ...] = ()
