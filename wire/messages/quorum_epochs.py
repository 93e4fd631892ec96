"""Elections of the quorum: votes, and the beginning and end of an epoch (KIP-595)."""

from uuid import UUID

from wire.message import Message
from wire.messages.endpoints import Listener, NodeEndpoint, Outcome
from wire.primitives import ZERO_UUID


class VotePartition(Message):
    partition_index: int
    replica_epoch: int
    replica_id: int
    replica_directory_id: UUID = ZERO_UUID
    voter_directory_id: UUID = ZERO_UUID
    last_offset_epoch: int
    last_offset: int  # the log end offset, exclusive
    pre_vote: bool = False


class VoteTopic(Message):
    topic_name: str
    partitions: tuple[VotePartition, ...]


class VoteRequest(Message):
    cluster_id: str | None = None
    voter_id: int = -1  # the voter that the request is meant for
    topics: tuple[VoteTopic, ...]


class VotePartitionResult(Outcome):
    partition_index: int
    leader_id: int = -1
    leader_epoch: int = -1
    vote_granted: bool = False


class VoteTopicResult(Message):
    topic_name: str
    partitions: tuple[VotePartitionResult, ...]


class VoteResponse(Outcome):
    topics: tuple[VoteTopicResult, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()


class BeginPartition(Message):
    partition_index: int
    voter_directory_id: UUID = ZERO_UUID
    leader_id: int
    leader_epoch: int


class BeginTopic(Message):
    topic_name: str
    partitions: tuple[BeginPartition, ...]


class BeginQuorumEpochRequest(Message):
    cluster_id: str | None = None
    voter_id: int = -1
    topics: tuple[BeginTopic, ...]
    leader_endpoints: tuple[Listener, ...] = ()


class EpochPartitionResult(Outcome):
    partition_index: int
    leader_id: int = -1
    leader_epoch: int = -1


class EpochTopicResult(Message):
    topic_name: str
    partitions: tuple[EpochPartitionResult, ...]


class BeginQuorumEpochResponse(Outcome):
    topics: tuple[EpochTopicResult, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()


class ReplicaInfo(Message):
    candidate_id: int
    candidate_directory_id: UUID = ZERO_UUID


class EndPartition(Message):
    partition_index: int
    leader_id: int
    leader_epoch: int
    preferred_candidates: tuple[ReplicaInfo, ...] = ()  # most up to date first


class EndTopic(Message):
    topic_name: str
    partitions: tuple[EndPartition, ...]


class EndQuorumEpochRequest(Message):
    cluster_id: str | None = None
    topics: tuple[EndTopic, ...]
    leader_endpoints: tuple[Listener, ...] = ()


class EndQuorumEpochResponse(Outcome):
    topics: tuple[EpochTopicResult, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()
