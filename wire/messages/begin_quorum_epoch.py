"""BeginQuorumEpoch (API key 53), as Kafka's message of version 1 has it."""

from uuid import UUID

from wire.errors import ErrorCode
from wire.message import Message
from wire.messages.endpoints import LeaderEndpoint, NodeEndpoint
from wire.primitives import ZERO_UUID

__all__ = [
    "BeginQuorumEpochRequest",
    "BeginQuorumEpochResponse",
    "PartitionData",
    "PartitionDataResult",
    "TopicData",
    "TopicDataResult",
]


class PartitionData(Message):
    partition_index: int
    voter_directory_id: UUID = ZERO_UUID
    leader_id: int
    leader_epoch: int


class TopicData(Message):
    topic_name: str
    partitions: tuple[PartitionData, ...]


class BeginQuorumEpochRequest(Message):
    cluster_id: str | None = None
    voter_id: int = -1
    topics: tuple[TopicData, ...]
    leader_endpoints: tuple[LeaderEndpoint, ...] = ()


class PartitionDataResult(Message):
    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE
    leader_id: int = -1
    leader_epoch: int = -1


class TopicDataResult(Message):
    topic_name: str
    partitions: tuple[PartitionDataResult, ...]


class BeginQuorumEpochResponse(Message):
    error_code: ErrorCode = ErrorCode.NONE
    topics: tuple[TopicDataResult, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()
