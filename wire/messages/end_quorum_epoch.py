"""EndQuorumEpoch (API key 54), as Kafka's message of version 1 has it."""

from uuid import UUID

from wire.errors import ErrorCode
from wire.message import Message
from wire.messages.endpoints import LeaderEndpoint, NodeEndpoint
from wire.primitives import ZERO_UUID

__all__ = [
    "EndQuorumEpochRequest",
    "EndQuorumEpochResponse",
    "PartitionData",
    "PartitionDataResult",
    "ReplicaInfo",
    "TopicData",
    "TopicDataResult",
]


class ReplicaInfo(Message):
    candidate_id: int
    candidate_directory_id: UUID = ZERO_UUID


class PartitionData(Message):
    partition_index: int
    leader_id: int
    leader_epoch: int
    preferred_candidates: tuple[ReplicaInfo, ...] = ()  # most up to date first


class TopicData(Message):
    topic_name: str
    partitions: tuple[PartitionData, ...]


class EndQuorumEpochRequest(Message):
    cluster_id: str | None = None
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


class EndQuorumEpochResponse(Message):
    error_code: ErrorCode = ErrorCode.NONE
    topics: tuple[TopicDataResult, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()
