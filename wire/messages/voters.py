"""The voters of the quorum: describe, add, remove, update (KIP-595, KIP-853)."""

from uuid import UUID

from wire.message import Message
from wire.messages.endpoints import (
    ExplainedOutcome,
    Listener,
    ThrottledExplanation,
    ThrottledOutcome,
)
from wire.primitives import ZERO_UUID


class QuorumPartition(Message):
    partition_index: int


class QuorumTopic(Message):
    topic_name: str
    partitions: tuple[QuorumPartition, ...]


class DescribeQuorumRequest(Message):
    topics: tuple[QuorumTopic, ...]


class QuorumReplica(Message):
    replica_id: int
    replica_directory_id: UUID = ZERO_UUID
    log_end_offset: int = -1
    last_fetch_timestamp: int = -1
    last_caught_up_timestamp: int = -1


class QuorumPartitionResult(ExplainedOutcome):
    partition_index: int
    leader_id: int = -1
    leader_epoch: int = -1
    high_watermark: int = -1
    current_voters: tuple[QuorumReplica, ...] = ()
    observers: tuple[QuorumReplica, ...] = ()


class QuorumTopicResult(Message):
    topic_name: str
    partitions: tuple[QuorumPartitionResult, ...]


class QuorumNode(Message):
    node_id: int
    listeners: tuple[Listener, ...]


class DescribeQuorumResponse(ExplainedOutcome):
    topics: tuple[QuorumTopicResult, ...] = ()
    nodes: tuple[QuorumNode, ...] = ()


class AddRaftVoterRequest(Message):
    cluster_id: str | None = None
    timeout_ms: int
    voter_id: int
    voter_directory_id: UUID
    listeners: tuple[Listener, ...]
    ack_when_committed: bool = True  # False: answer as soon as the leader has written it


class AddRaftVoterResponse(ThrottledExplanation):
    pass


class RemoveRaftVoterRequest(Message):
    cluster_id: str | None = None
    voter_id: int
    voter_directory_id: UUID


class RemoveRaftVoterResponse(ThrottledExplanation):
    pass


class KRaftVersionFeature(Message):
    min_supported_version: int
    max_supported_version: int


class UpdateRaftVoterRequest(Message):
    cluster_id: str | None = None
    current_leader_epoch: int
    voter_id: int
    voter_directory_id: UUID
    listeners: tuple[Listener, ...]
    k_raft_version_feature: KRaftVersionFeature


class CurrentLeader(Message):
    leader_id: int = -1
    leader_epoch: int = -1
    host: str = ""
    port: int = 0


class UpdateRaftVoterResponse(ThrottledOutcome):
    current_leader: CurrentLeader = CurrentLeader()
