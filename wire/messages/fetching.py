"""Fetches of replicas and consumers, snapshots, and the offsets at which a log can be read."""

from uuid import UUID

from wire.message import Message
from wire.messages.endpoints import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    Outcome,
    Throttled,
    ThrottledOutcome,
)
from wire.primitives import INT32_MAX, INT64_MAX, ZERO_UUID


class ReplicaState(Message):
    replica_id: int = -1
    replica_epoch: int = -1


class FetchPartition(Message):
    partition: int
    current_leader_epoch: int = -1
    fetch_offset: int
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    partition_max_bytes: int = 0
    replica_directory_id: UUID = ZERO_UUID
    high_watermark: int = INT64_MAX  # that the replica knows; INT64_MAX: it does not say


class FetchTopic(Message):
    topic: str = ""  # versions below 13 name the topic, later ones give its id
    topic_id: UUID = ZERO_UUID
    partitions: tuple[FetchPartition, ...]


class ForgottenTopic(Message):
    topic: str = ""
    topic_id: UUID = ZERO_UUID
    partitions: tuple[int, ...] = ()


class FetchRequest(Message):
    cluster_id: str | None = None
    replica_state: ReplicaState = ReplicaState()
    max_wait_ms: int
    min_bytes: int = 0
    max_bytes: int = INT32_MAX
    isolation_level: int = 0
    session_id: int = 0
    session_epoch: int = -1
    topics: tuple[FetchTopic, ...]
    forgotten_topics_data: tuple[ForgottenTopic, ...] = ()
    rack_id: str = ""


class EpochEndOffset(Message):
    epoch: int = -1
    end_offset: int = -1


NO_DIVERGENCE = EpochEndOffset()


class SnapshotId(Message):
    end_offset: int = -1
    epoch: int = -1


class AbortedTransaction(Message):
    producer_id: int
    first_offset: int


class FetchedPartition(Outcome):
    partition_index: int
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    diverging_epoch: EpochEndOffset = NO_DIVERGENCE
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()
    snapshot_id: SnapshotId = SnapshotId()
    aborted_transactions: tuple[AbortedTransaction, ...] | None = None
    preferred_read_replica: int = -1
    records: bytes | None = None


def diverges(data: FetchedPartition) -> bool:
    """Has the reader's log parted from the one that it fetches?"""
    return data.diverging_epoch != NO_DIVERGENCE


class FetchedTopic(Message):
    topic: str = ""
    topic_id: UUID = ZERO_UUID
    partitions: tuple[FetchedPartition, ...]


class FetchResponse(ThrottledOutcome):
    session_id: int = 0
    responses: tuple[FetchedTopic, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()


class PartitionSnapshot(Message):
    partition: int
    current_leader_epoch: int
    snapshot_id: SnapshotId
    position: int
    replica_directory_id: UUID = ZERO_UUID


class TopicSnapshot(Message):
    name: str
    partitions: tuple[PartitionSnapshot, ...]


class FetchSnapshotRequest(Message):
    cluster_id: str | None = None
    replica_id: int = -1
    max_bytes: int = INT32_MAX
    topics: tuple[TopicSnapshot, ...]


class PartitionSnapshotResult(Outcome):
    index: int
    snapshot_id: SnapshotId = SnapshotId()
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch(leader_id=0, leader_epoch=0)
    size: int = 0
    position: int = 0
    unaligned_records: bytes = b""  # may end within a batch


class TopicSnapshotResult(Message):
    name: str
    partitions: tuple[PartitionSnapshotResult, ...]


class FetchSnapshotResponse(ThrottledOutcome):
    topics: tuple[TopicSnapshotResult, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()


class ListOffsetsPartition(Message):
    partition_index: int
    current_leader_epoch: int = -1
    timestamp: int  # -1 latest, -2 earliest, -3 greatest timestamp


class ListOffsetsTopic(Message):
    name: str
    partitions: tuple[ListOffsetsPartition, ...]


class ListOffsetsRequest(Message):
    replica_id: int = -1
    isolation_level: int = 0
    topics: tuple[ListOffsetsTopic, ...]
    timeout_ms: int = 0


class ListOffsetsPartitionResponse(Outcome):
    partition_index: int
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


class ListOffsetsTopicResponse(Message):
    name: str
    partitions: tuple[ListOffsetsPartitionResponse, ...]


class ListOffsetsResponse(Throttled):
    topics: tuple[ListOffsetsTopicResponse, ...] = ()


class OffsetForLeaderPartition(Message):
    partition: int
    current_leader_epoch: int = -1
    leader_epoch: int


class OffsetForLeaderTopic(Message):
    topic: str
    partitions: tuple[OffsetForLeaderPartition, ...]


class OffsetForLeaderEpochRequest(Message):
    replica_id: int = -2
    topics: tuple[OffsetForLeaderTopic, ...]


class OffsetForLeaderPartitionResult(Outcome):
    partition: int
    leader_epoch: int = -1
    end_offset: int = -1


class OffsetForLeaderTopicResult(Message):
    topic: str
    partitions: tuple[OffsetForLeaderPartitionResult, ...]


class OffsetForLeaderEpochResponse(Throttled):
    topics: tuple[OffsetForLeaderTopicResult, ...]
