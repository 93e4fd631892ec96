"""The one partition that Raft's messages are about, wrapped and unwrapped.

Kafka's messages could speak of many topics and partitions. The quorum has one, so a request that
names anything else, or nothing, is refused (INVALID_REQUEST), and this is the only place that
knows the nesting.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from quorum.core.types import Endpoint, OffsetAndEpoch, ReplicaKey
from quorum.raft.config import QuorumConfig
from quorum.raft.responses import KnownLeader
from wire.errors import ErrorCode
from wire.messages.endpoints import LeaderIdAndEpoch, Listener, NodeEndpoint
from wire.messages.fetching import (
    EpochEndOffset,
    FetchedPartition,
    FetchedTopic,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    FetchTopic,
    PartitionSnapshot,
    PartitionSnapshotResult,
    ReplicaState,
    SnapshotId,
    TopicSnapshot,
    TopicSnapshotResult,
)
from wire.messages.quorum_epochs import (
    BeginPartition,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    BeginTopic,
    EndPartition,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    EndTopic,
    EpochPartitionResult,
    EpochTopicResult,
    ReplicaInfo,
    VotePartition,
    VotePartitionResult,
    VoteRequest,
    VoteResponse,
    VoteTopic,
    VoteTopicResult,
)
from wire.primitives import METADATA_TOPIC, METADATA_TOPIC_ID

__all__ = [
    "begin_request",
    "election_partition",
    "end_request",
    "epoch_response",
    "fetch_partition",
    "fetch_request",
    "fetch_response",
    "is_metadata_topic",
    "snapshot_partition",
    "snapshot_request",
    "snapshot_response",
    "vote_request",
    "vote_response",
]


# --- requests as received: the partition, or None if it is not ours alone --------------------


class _Indexed(Protocol):
    @property
    def partition_index(self) -> int: ...


_METADATA_TOPIC_IDS = (METADATA_TOPIC_ID,)  # `in` looks at identity first

P = TypeVar("P", bound=_Indexed, covariant=True)
EpochResponse = TypeVar("EpochResponse", BeginQuorumEpochResponse, EndQuorumEpochResponse)


class _Topic(Protocol[P]):
    @property
    def topic_name(self) -> str: ...
    @property
    def partitions(self) -> Sequence[P]: ...


def election_partition(topics: Sequence[_Topic[P]]) -> P | None:
    """The partition of a Vote, BeginQuorumEpoch or EndQuorumEpoch, which nest alike."""
    if len(topics) != 1 or topics[0].topic_name != METADATA_TOPIC:
        return None
    partitions = topics[0].partitions
    return partitions[0] if [p.partition_index for p in partitions] == [0] else None


def is_metadata_topic(topic: FetchTopic) -> bool:
    return topic.topic == METADATA_TOPIC or topic.topic_id in _METADATA_TOPIC_IDS


def fetch_partition(topics: Sequence[FetchTopic]) -> FetchPartition | None:
    if len(topics) != 1 or not is_metadata_topic(topics[0]):
        return None
    partitions = topics[0].partitions
    is_one = len(partitions) == 1 and partitions[0].partition == 0
    return partitions[0] if is_one else None


def snapshot_partition(
    topics: Sequence[TopicSnapshot],
) -> PartitionSnapshot | None:
    if len(topics) != 1 or topics[0].name != METADATA_TOPIC:
        return None
    partitions = topics[0].partitions
    return partitions[0] if [p.partition for p in partitions] == [0] else None


# --- requests to send -----------------------------------------------------------------------


def vote_request(
    config: QuorumConfig, voter: ReplicaKey, *, epoch: int, last: OffsetAndEpoch, pre_vote: bool
) -> VoteRequest:
    partition = VotePartition(
        partition_index=0,
        replica_epoch=epoch,
        replica_id=config.node_id,
        replica_directory_id=config.directory_id,
        voter_directory_id=voter.directory_id,
        last_offset_epoch=last.epoch,
        last_offset=last.offset,
        pre_vote=pre_vote,
    )
    topic = VoteTopic(topic_name=METADATA_TOPIC, partitions=(partition,))
    return VoteRequest(cluster_id=config.cluster_id, voter_id=voter.id, topics=(topic,))


def begin_request(
    config: QuorumConfig, voter: ReplicaKey, *, epoch: int, leader: Endpoint
) -> BeginQuorumEpochRequest:
    partition = BeginPartition(
        partition_index=0,
        voter_directory_id=voter.directory_id,
        leader_id=config.node_id,
        leader_epoch=epoch,
    )
    topic = BeginTopic(topic_name=METADATA_TOPIC, partitions=(partition,))
    listener = Listener(name=config.listener_name, host=leader.host, port=leader.port)
    return BeginQuorumEpochRequest(
        cluster_id=config.cluster_id,
        voter_id=voter.id,
        topics=(topic,),
        leader_endpoints=(listener,),
    )


def end_request(
    config: QuorumConfig, *, epoch: int, preferred: Sequence[ReplicaKey], leader: Endpoint
) -> EndQuorumEpochRequest:
    partition = EndPartition(
        partition_index=0,
        leader_id=config.node_id,
        leader_epoch=epoch,
        preferred_candidates=tuple(
            ReplicaInfo(candidate_id=key.id, candidate_directory_id=key.directory_id)
            for key in preferred
        ),
    )
    topic = EndTopic(topic_name=METADATA_TOPIC, partitions=(partition,))
    listener = Listener(name=config.listener_name, host=leader.host, port=leader.port)
    return EndQuorumEpochRequest(
        cluster_id=config.cluster_id, topics=(topic,), leader_endpoints=(listener,)
    )


def fetch_request(
    config: QuorumConfig, *, epoch: int, end: OffsetAndEpoch, high_watermark: int | None
) -> FetchRequest:
    partition = FetchPartition(
        partition=0,
        current_leader_epoch=epoch,
        fetch_offset=end.offset,
        last_fetched_epoch=end.epoch,
        replica_directory_id=config.directory_id,
        high_watermark=-1 if high_watermark is None else high_watermark,
    )
    topic = FetchTopic(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=(partition,))
    return FetchRequest(
        cluster_id=config.cluster_id,
        replica_state=ReplicaState(replica_id=config.node_id),
        max_wait_ms=config.fetch_max_wait_ms,
        max_bytes=config.fetch_max_bytes,
        topics=(topic,),
    )


def snapshot_request(
    config: QuorumConfig, *, epoch: int, snapshot_id: OffsetAndEpoch, position: int
) -> FetchSnapshotRequest:
    partition = PartitionSnapshot(
        partition=0,
        current_leader_epoch=epoch,
        snapshot_id=SnapshotId(end_offset=snapshot_id.offset, epoch=snapshot_id.epoch),
        position=position,
        replica_directory_id=config.directory_id,
    )
    topic = TopicSnapshot(name=METADATA_TOPIC, partitions=(partition,))
    return FetchSnapshotRequest(
        cluster_id=config.cluster_id,
        replica_id=config.node_id,
        max_bytes=config.snapshots.fetch_max_bytes,
        topics=(topic,),
    )


# --- answers --------------------------------------------------------------------------------


def vote_response(known: KnownLeader, *, error: ErrorCode, granted: bool) -> VoteResponse:
    result = VotePartitionResult(
        partition_index=0,
        error_code=error,
        leader_id=known.leader_id,
        leader_epoch=known.epoch,
        vote_granted=granted,
    )
    topic = VoteTopicResult(topic_name=METADATA_TOPIC, partitions=(result,))
    return VoteResponse(topics=(topic,), node_endpoints=_endpoints(known))


def epoch_response(
    response: type[EpochResponse], known: KnownLeader, *, error: ErrorCode
) -> EpochResponse:
    """The answer to BeginQuorumEpoch or EndQuorumEpoch, which are alike."""
    result = EpochPartitionResult(
        partition_index=0,
        error_code=error,
        leader_id=known.leader_id,
        leader_epoch=known.epoch,
    )
    topic = EpochTopicResult(topic_name=METADATA_TOPIC, partitions=(result,))
    return response(topics=(topic,), node_endpoints=_endpoints(known))


def fetch_response(
    known: KnownLeader,
    *,
    error: ErrorCode = ErrorCode.NONE,
    high_watermark: int = -1,
    log_start_offset: int = -1,
    diverging: EpochEndOffset | None = None,
    snapshot: OffsetAndEpoch | None = None,
    records: bytes = b"",
) -> FetchResponse:
    partition = FetchedPartition(
        partition_index=0,
        error_code=error,
        high_watermark=high_watermark,
        log_start_offset=log_start_offset,
        diverging_epoch=diverging or EpochEndOffset(),
        current_leader=LeaderIdAndEpoch(leader_id=known.leader_id, leader_epoch=known.epoch),
        snapshot_id=(
            SnapshotId()
            if snapshot is None
            else SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch)
        ),
        records=records,
    )
    topic = FetchedTopic(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=(partition,))
    return FetchResponse(responses=(topic,), node_endpoints=_endpoints(known))


def snapshot_response(
    known: KnownLeader,
    ask: PartitionSnapshot,
    *,
    error: ErrorCode = ErrorCode.NONE,
    size_bytes: int = 0,
    records: bytes = b"",
) -> FetchSnapshotResponse:
    result = PartitionSnapshotResult(
        index=0,
        error_code=error,
        snapshot_id=SnapshotId(end_offset=ask.snapshot_id.end_offset, epoch=ask.snapshot_id.epoch),
        current_leader=LeaderIdAndEpoch(leader_id=known.leader_id, leader_epoch=known.epoch),
        size=size_bytes,
        position=ask.position,
        unaligned_records=records,
    )
    topic = TopicSnapshotResult(name=METADATA_TOPIC, partitions=(result,))
    return FetchSnapshotResponse(topics=(topic,), node_endpoints=_endpoints(known))


def _endpoints(known: KnownLeader) -> tuple[NodeEndpoint, ...]:
    at = known.endpoint
    return () if at is None else (NodeEndpoint(node_id=at.node_id, host=at.host, port=at.port),)
