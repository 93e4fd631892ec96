"""EndQuorumEpoch (API key 54), as Kafka's message of version 1 has it."""

from dataclasses import dataclass
from uuid import UUID

from wire.errors import ErrorCode
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaInfo:
    candidate_id: int
    candidate_directory_id: UUID = ZERO_UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionData:
    partition_index: int
    leader_id: int
    leader_epoch: int
    preferred_candidates: tuple[ReplicaInfo, ...] = ()  # most up to date first


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicData:
    topic_name: str
    partitions: tuple[PartitionData, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndQuorumEpochRequest:
    cluster_id: str | None = None
    topics: tuple[TopicData, ...]
    leader_endpoints: tuple[LeaderEndpoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDataResult:
    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE
    leader_id: int = -1
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDataResult:
    topic_name: str
    partitions: tuple[PartitionDataResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndQuorumEpochResponse:
    error_code: ErrorCode = ErrorCode.NONE
    topics: tuple[TopicDataResult, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()
