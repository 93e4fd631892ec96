"""How a leader hands out a snapshot: refusals in Kafka's order, and pieces of its file."""

from random import Random

import pytest

from quorum.core.effects import (
    LogState,
    ReadSnapshot,
    Reply,
    Request,
    SnapshotRead,
    Stored,
    Token,
)
from quorum.core.storage import METADATA_LOG
from quorum.core.types import ElectionState, OffsetAndEpoch
from quorum.raft.raft_node import RaftNode
from quorum.raft.roles import Leader
from tests.quorum.builders import snapshot
from tests.quorum.replicas import bootstrap_snapshot, config
from tests.quorum.turns import give
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.fetching import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    PartitionSnapshot,
    PartitionSnapshotResult,
    SnapshotId,
    TopicSnapshot,
)
from wire.primitives import METADATA_TOPIC

CONTENT, FILE = snapshot(5, 1)


@pytest.fixture
def leader() -> RaftNode:
    """The only voter, in epoch 2; its log begins at a snapshot of the epoch before."""
    state = LogState(
        log=METADATA_LOG,
        start_offset=5,
        end_offset=5,
        snapshots=(FILE,),
    )
    node = RaftNode(config(1, [1]), state, ElectionState(epoch=1), Random(1), now_ms=0)
    give(node, Stored(log=METADATA_LOG, token=Token("raft", 1)), 0)
    assert isinstance(node.role, Leader)
    give(node, Stored(log=METADATA_LOG, token=Token("raft", 1000)), 0)
    node.take_effects()
    return node


def ask(
    *,
    cluster_id: str | None = None,
    epoch: int = 2,
    end: OffsetAndEpoch = FILE.id,
    position: int = 0,
    max_bytes: int = 1 << 30,
) -> FetchSnapshotRequest:
    partition = PartitionSnapshot(
        partition=0,
        current_leader_epoch=epoch,
        snapshot_id=SnapshotId(end_offset=end.offset, epoch=end.epoch),
        position=position,
    )
    topic = TopicSnapshot(name=METADATA_TOPIC, partitions=(partition,))
    return FetchSnapshotRequest(
        cluster_id=cluster_id, replica_id=2, max_bytes=max_bytes, topics=(topic,)
    )


def reply_of(node: RaftNode) -> FetchSnapshotResponse:
    (reply,) = (effect for effect in node.take_effects() if isinstance(effect, Reply))
    assert isinstance(reply.body, FetchSnapshotResponse)
    return reply.body


def refusal(node: RaftNode, request: FetchSnapshotRequest) -> PartitionSnapshotResult:
    give(node, Request(token=1, body=request), 100)
    return reply_of(node).topics[0].partitions[0]


def read_of(node: RaftNode, request: FetchSnapshotRequest) -> ReadSnapshot:
    give(node, Request(token=1, body=request), 100)
    (read,) = (effect for effect in node.take_effects() if isinstance(effect, ReadSnapshot))
    return read


def read_done(read: ReadSnapshot, records: bytes, size_bytes: int) -> SnapshotRead:
    return SnapshotRead(token=read.token, log=METADATA_LOG, size_bytes=size_bytes, records=records)


def test_piece_is_answered_with_its_position_and_the_size_of_the_whole(leader: RaftNode) -> None:
    read = read_of(leader, ask(position=20, max_bytes=30))
    assert (read.id, read.position, read.bytes_max) == (FILE.id, 20, 30)
    give(leader, read_done(read, CONTENT[20:50], len(CONTENT)), 101)
    answer = reply_of(leader)
    partition = answer.topics[0].partitions[0]
    assert partition.error_code is ErrorCode.NONE
    assert (partition.position, partition.size) == (20, len(CONTENT))
    assert partition.unaligned_records == CONTENT[20:50]
    assert partition.current_leader.leader_id == 1
    assert partition.current_leader.leader_epoch == 2
    assert [node.node_id for node in answer.node_endpoints] == [1]


@pytest.mark.parametrize(("asked", "given"), [(1 << 30, 1 << 20), (0, 0), (-1, 0)])
def test_piece_is_never_larger_than_our_own_limit(leader: RaftNode, asked: int, given: int) -> None:
    assert read_of(leader, ask(max_bytes=asked)).bytes_max == given


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (ask(epoch=1, end=OffsetAndEpoch(9, 9)), ErrorCode.FENCED_LEADER_EPOCH),
        (ask(epoch=3, end=OffsetAndEpoch(9, 9)), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (ask(end=OffsetAndEpoch(5, 2), position=-1), ErrorCode.SNAPSHOT_NOT_FOUND),
        (ask(end=OffsetAndEpoch(0, 0)), ErrorCode.SNAPSHOT_NOT_FOUND),
        (ask(position=-1), ErrorCode.POSITION_OUT_OF_RANGE),
        (ask(position=len(CONTENT)), ErrorCode.POSITION_OUT_OF_RANGE),
        (ask(position=1 << 40), ErrorCode.POSITION_OUT_OF_RANGE),
    ],
)
def test_refusals_come_in_kafkas_order(
    leader: RaftNode, request_: FetchSnapshotRequest, error: ErrorCode
) -> None:
    partition = refusal(leader, request_)
    assert partition.error_code is error
    assert partition.current_leader.leader_id == 1


def test_bootstrap_snapshot_is_nobody_elses() -> None:
    state = LogState(log=METADATA_LOG, snapshots=(bootstrap_snapshot([1]),))
    node = RaftNode(config(1, [1]), state, ElectionState(epoch=1), Random(1), now_ms=0)
    give(node, Stored(log=METADATA_LOG, token=Token("raft", 1000)), 0)
    node.take_effects()
    assert node.latest_snapshot is None
    partition = refusal(node, ask(end=OffsetAndEpoch(0, 0)))
    assert partition.error_code is ErrorCode.SNAPSHOT_NOT_FOUND


def test_follower_sends_who_wants_a_snapshot_to_the_leader() -> None:
    election = ElectionState(epoch=2, leader_id=2)
    node = RaftNode(config(1), LogState(log=METADATA_LOG), election, Random(1), now_ms=0)
    node.take_effects()
    partition = refusal(node, ask())
    assert partition.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.current_leader.leader_id == 2


def test_snapshot_of_something_else_is_unknown(leader: RaftNode) -> None:
    give(leader, Request(token=1, body=ask(cluster_id="another", epoch=1)), 100)
    assert reply_of(leader).error_code is ErrorCode.INCONSISTENT_CLUSTER_ID
    give(leader, Request(token=2, body=replace(ask(), topics=())), 100)
    assert reply_of(leader).error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_snapshot_that_is_gone_when_it_is_read_is_not_found(leader: RaftNode) -> None:
    read = read_of(leader, ask())
    give(leader, read_done(read, b"", -1), 101)
    partition = reply_of(leader).topics[0].partitions[0]
    assert partition.error_code is ErrorCode.SNAPSHOT_NOT_FOUND


def test_who_has_lost_leadership_answers_no_piece(leader: RaftNode) -> None:
    read = read_of(leader, ask())
    leader.resign(101)
    (reply,) = (effect for effect in leader.take_effects() if isinstance(effect, Reply))
    assert isinstance(reply.body, FetchSnapshotResponse)
    partition = reply.body.topics[0].partitions[0]
    assert partition.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    give(leader, read_done(read, CONTENT, len(CONTENT)), 102)
    assert not any(isinstance(effect, Reply) for effect in leader.take_effects())
