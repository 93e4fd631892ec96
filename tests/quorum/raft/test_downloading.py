"""What a follower makes of a leader that tells it to load a snapshot, and of one that lies."""

from dataclasses import replace

import pytest

from quorum.core.effects import (
    Effect,
    ReceiveSnapshot,
    ResetLog,
    Response,
    Send,
    SnapshotFile,
    SnapshotRead,
    SnapshotSaved,
    Token,
    Trace,
    Trim,
)
from quorum.core.storage import METADATA_LOG
from quorum.core.types import OffsetAndEpoch
from quorum.log.snapshots import snapshot_head
from quorum.raft import downloading, following
from quorum.raft.messages import fetch_response
from quorum.raft.replica import Replica
from quorum.raft.responses import KnownLeader
from quorum.raft.roles import Download, Follower, Role
from quorum.raft.voter_history import Membership
from quorum.raft.voters import VoterSet
from tests.quorum import builders
from tests.quorum.builders import replica, snapshot, waiting
from tests.quorum.replicas import Replicas, dynamic_voter, endpoint
from wire.batch import assign, data_batch
from wire.errors import ErrorCode
from wire.message import replace as replace_message
from wire.messages.fetching import (
    EpochEndOffset,
    FetchedPartition,
    FetchSnapshotRequest,
    PartitionSnapshotResult,
    SnapshotId,
)

CONTENT, FILE = snapshot(50, 5)
PIECE = 60


def kinds(effects: list[Effect]) -> list[str]:
    return [e.event if isinstance(e, Trace) else type(e).__name__ for e in effects]


def told(
    node: Replica, role: Follower, snapshot_id: OffsetAndEpoch = FILE.id, leader_id: int = 3
) -> None:
    """The leader answers a Fetch with the id of a snapshot; it was asked by that id."""
    answer = FetchedPartition(
        partition_index=0,
        snapshot_id=SnapshotId(end_offset=snapshot_id.offset, epoch=snapshot_id.epoch),
    )
    reason = downloading.fetched(node, role, answer, source=endpoint(leader_id), now_ms=1000)
    assert reason is None


def piece(position: int = 0, **otherwise: object) -> PartitionSnapshotResult:
    answer = PartitionSnapshotResult(
        index=0,
        snapshot_id=SnapshotId(end_offset=FILE.id.offset, epoch=FILE.id.epoch),
        size=len(CONTENT),
        position=position,
        unaligned_records=CONTENT[position : position + PIECE],
    )
    return replace_message(answer, **otherwise)


def asked(node: Replica, role: Follower, now_ms: int = 1000) -> object:
    """What the follower asks for next; None if nothing."""
    following.poll(node, role, now_ms)
    sent = [effect for effect in node.outbox.take() if isinstance(effect, Send)]
    if not sent:
        return None
    node.peers.answered(sent[0].token.number)
    return sent[0].body


def loading() -> tuple[Replica, Follower]:
    node, role = replica(), builders.following()
    told(node, role)
    node.outbox.take()
    return node, role


def downloaded() -> tuple[Replica, Follower, Token]:
    """All pieces are there; the disk has not said what it makes of them."""
    node, role = loading()
    for position in range(0, len(CONTENT), PIECE):
        downloading.received(node, role, piece(position), now_ms=1000)
    received = [e for e in node.outbox.take() if isinstance(e, ReceiveSnapshot)]
    return node, role, received[-1].token


def saved(token: Token, file: SnapshotFile = FILE) -> SnapshotSaved:
    return SnapshotSaved(token=token, log=METADATA_LOG, file=file)


# --- beginning ------------------------------------------------------------------------------


def test_next_request_is_for_the_snapshot_from_its_first_byte() -> None:
    node, role = replica(), builders.following()
    role.has_fetched = False
    told(node, role)
    assert role.has_fetched, "the leader was there"
    request = asked(node, role)
    assert isinstance(request, FetchSnapshotRequest)
    (partition,) = request.topics[0].partitions
    assert partition.snapshot_id.end_offset == 50
    assert partition.snapshot_id.epoch == 5
    assert (partition.position, partition.current_leader_epoch) == (0, 5)
    assert request.replica_id == 1


@pytest.mark.parametrize(
    "snapshot_id",
    [
        OffsetAndEpoch(0, 0),  # the bootstrap snapshot is nobody else's
        OffsetAndEpoch(50, -1),
        OffsetAndEpoch(50, 6),  # of an epoch after the leader's own
        OffsetAndEpoch(7, 4),  # we have that
        OffsetAndEpoch(10, 4),  # and that
        OffsetAndEpoch(5, 3),  # less than what is committed here
    ],
)
def test_snapshot_that_no_honest_leader_names_is_refused_and_not_asked_for_at_once(
    snapshot_id: OffsetAndEpoch,
) -> None:
    node, role = replica(), builders.following()
    node.log.advance_high_watermark(8)
    told(node, role, snapshot_id)
    assert kinds(node.outbox.take()) == ["snapshot_refused"]
    assert asked(node, role) is None


def test_divergence_comes_before_a_snapshot() -> None:
    node, role = replica(), builders.following()
    answer = FetchedPartition(
        partition_index=0,
        snapshot_id=SnapshotId(end_offset=50, epoch=5),
        diverging_epoch=EpochEndOffset(epoch=4, end_offset=8),
    )
    downloading.fetched(node, role, answer, source=endpoint(3), now_ms=1000)
    assert node.log.end_offset == 8
    assert role.snapshot_id is None


# --- pieces ---------------------------------------------------------------------------------


def test_pieces_go_to_the_disk_and_each_is_a_sign_of_life() -> None:
    node, role = loading()
    downloading.received(node, role, piece(), now_ms=5000)
    assert role.fetch_deadline_ms >= 7000
    (effect,) = node.outbox.take()
    assert isinstance(effect, ReceiveSnapshot)
    assert (effect.position, effect.records, effect.is_last) == (0, CONTENT[:PIECE], False)
    request = asked(node, role)
    assert isinstance(request, FetchSnapshotRequest)
    assert request.topics[0].partitions[0].position == PIECE


def test_piece_that_did_not_come_is_asked_for_when_the_pause_ends() -> None:
    node, role = loading()
    node.peers.back_off(3, 1500)
    assert following.deadline_ms(node, role) == 1500


def test_nothing_is_asked_while_the_disk_judges_the_whole() -> None:
    node, role, _ = downloaded()
    assert asked(node, role) is None
    assert following.deadline_ms(node, role) == role.fetch_deadline_ms


@pytest.mark.parametrize(
    "nonsense",
    [
        piece(PIECE, snapshot_id=SnapshotId(end_offset=51, epoch=5)),
        piece(PIECE, snapshot_id=SnapshotId()),
        piece(0),
        piece(2 * PIECE),
        piece(PIECE, size=len(CONTENT) + 1),
        piece(PIECE, size=PIECE),
        piece(PIECE, unaligned_records=b""),
        piece(PIECE, unaligned_records=CONTENT),  # more than there can be
    ],
)
def test_nonsense_is_noted_and_all_begins_again_but_not_at_once(
    nonsense: PartitionSnapshotResult,
) -> None:
    node, role = loading()
    downloading.received(node, role, piece(), now_ms=1000)
    node.outbox.take()
    downloading.received(node, role, nonsense, now_ms=1000)
    assert kinds(node.outbox.take()) == ["snapshot_abandoned"]
    assert asked(node, role, 1000) is None
    assert not isinstance(asked(node, role, 2000), FetchSnapshotRequest | None), "a Fetch"


@pytest.mark.parametrize("size", [0, -1, 10])
def test_first_piece_must_fit_into_the_whole(size: int) -> None:
    node, role = loading()
    downloading.received(node, role, piece(size=size), now_ms=1000)
    assert kinds(node.outbox.take()) == ["snapshot_abandoned"]


def test_same_snapshot_of_the_same_node_goes_on_where_it_was() -> None:
    node, role = loading()
    downloading.received(node, role, piece(), now_ms=1000)
    node.outbox.take()
    again = builders.following(epoch=7)
    told(node, again)
    assert node.outbox.take() == []
    request = asked(node, again)
    assert isinstance(request, FetchSnapshotRequest)
    assert request.topics[0].partitions[0].position == PIECE


def test_leader_that_was_asked_as_a_bootstrap_server_is_the_same_node() -> None:
    node, role = loading()
    downloading.received(node, role, piece(), now_ms=1000)
    node.outbox.take()
    told(node, role, leader_id=-2)
    assert node.outbox.take() == []
    assert node.download is not None
    assert node.download.position == PIECE


@pytest.mark.parametrize(("leader_id", "snapshot_id"), [(2, FILE.id), (3, OffsetAndEpoch(60, 5))])
def test_snapshot_of_another_node_or_another_one_begins_anew(
    leader_id: int, snapshot_id: OffsetAndEpoch
) -> None:
    node, role = loading()
    downloading.received(node, role, piece(), now_ms=1000)
    node.outbox.take()
    again = builders.following(epoch=7, leader_id=leader_id)
    told(node, again, snapshot_id, leader_id)
    assert kinds(node.outbox.take()) == ["snapshot_begun"]
    request = asked(node, again)
    assert isinstance(request, FetchSnapshotRequest)
    assert request.topics[0].partitions[0].position == 0


# --- the whole ------------------------------------------------------------------------------


def test_whole_snapshot_takes_the_place_of_the_log() -> None:
    node, role, token = downloaded()
    downloading.saved(node, role, saved(token), 2000)
    effects = node.outbox.take()
    assert kinds(effects) == ["snapshot_adopted", ResetLog.__name__, Trim.__name__]
    log = node.log
    assert (log.start_offset, log.end, log.high_watermark) == (50, FILE.id, 50)
    assert log.latest_snapshot == FILE
    assert node.download is None
    assert role.fetch_deadline_ms >= 4000, "however long the disk took"
    assert asked(node, role) is None, "not before the log is reset on the disk, too"
    (reset,) = (effect for effect in effects if isinstance(effect, ResetLog))
    log.stored(reset.token.number)
    assert asked(node, role) is not None


def test_what_is_no_snapshot_is_fetched_again_but_not_at_once() -> None:
    node, role, token = downloaded()
    broken = SnapshotRead(token=token, log=METADATA_LOG, size_bytes=-1, records=b"")
    downloading.broken(node, role, broken, 2000)
    assert kinds(node.outbox.take()) == ["snapshot_abandoned"]
    assert asked(node, role, 2000) is None
    assert not isinstance(asked(node, role, 3000), FetchSnapshotRequest | None), "a Fetch"


def test_voters_are_those_of_the_snapshot() -> None:
    node, role, token = downloaded()
    membership = Membership(voters=VoterSet.of(map(dynamic_voter, (2, 3, 4))), kraft_version=1)
    head = snapshot_head(0, membership.head_records())
    downloading.saved(node, role, saved(token, replace(FILE, head=head)), 2000)
    assert (node.voters, node.kraft_version) == (membership.voters, 1)
    assert "voters" in kinds(node.outbox.take())


@pytest.mark.parametrize("role", [waiting(), builders.following(epoch=8, leader_id=2)])
def test_snapshot_for_a_leader_that_is_gone_waits_for_the_next_one(role: Role) -> None:
    node, _, token = downloaded()
    downloading.saved(node, role, saved(token), 2000)
    assert node.outbox.take() == []
    assert node.log.end_offset == 10
    again = builders.following(epoch=9, leader_id=2)
    told(node, again, leader_id=2)
    assert "snapshot_adopted" in kinds(node.outbox.take())


def test_next_leader_that_wants_the_same_waits_for_the_disk_and_no_piece_comes_twice() -> None:
    node, _, token = downloaded()
    again = builders.following(epoch=9, leader_id=2)
    told(node, again, leader_id=2)
    assert asked(node, again) is None
    downloading.saved(node, again, saved(token), 2000)
    assert "snapshot_adopted" in kinds(node.outbox.take())


def test_leader_that_wants_another_waits_for_the_disk() -> None:
    node, _, token = downloaded()
    again = builders.following(epoch=9, leader_id=2)
    told(node, again, OffsetAndEpoch(60, 5), leader_id=2)
    assert again.snapshot_id is None
    assert asked(node, again) is None
    assert following.deadline_ms(node, again) == 1000 + node.config.retry_backoff_ms
    downloading.saved(node, again, saved(token), 2000)
    told(node, again, OffsetAndEpoch(60, 5), leader_id=2)
    assert kinds(node.outbox.take()) == ["snapshot_begun"]


def test_snapshot_that_is_here_already_is_not_fetched() -> None:
    node, role = replica(), builders.following()
    node.log.snapshots = (FILE,)  # a crash came before the log's reset, and a truncation after it
    told(node, role)
    assert "snapshot_adopted" in kinds(node.outbox.take())


def test_records_end_a_download() -> None:
    """The leader, asked again, sends records: it holds what we lack after all."""
    node, role = loading()
    records = assign(data_batch([b"x"], timestamp_ms=0), base_offset=10, leader_epoch=5)
    answer = FetchedPartition(partition_index=0, records=records, high_watermark=11)
    downloading.fetched(node, role, answer, source=endpoint(3), now_ms=1000)
    assert role.snapshot_id is None
    assert node.log.end_offset == 11


def test_answer_of_the_disk_to_something_else_is_no_news() -> None:
    node, role, _ = downloaded()
    other = Token("raft", 999)
    downloading.saved(node, role, saved(other), 2000)
    gone = SnapshotRead(token=other, log=METADATA_LOG, size_bytes=-1, records=b"")
    downloading.broken(node, role, gone, 2000)
    assert node.outbox.take() == []
    assert node.download is not None


def test_nonsense_of_another_leader_does_not_lose_sight_of_what_the_disk_is_busy_with() -> None:
    """A piece that came meanwhile would be written into the file that is being checked."""
    cluster = Replicas()
    leader = cluster.elect()
    follower = next(node for node in cluster.nodes.values() if node is not leader)
    download = Download(id=FILE.id, source_id=9, position=len(CONTENT), finishing=7)
    follower.replica.download = download
    sent = [send for source, send in cluster.sent if source == follower.node_id]
    known = KnownLeader(leader_id=leader.node_id, epoch=leader.role.epoch)
    refusal = fetch_response(known, error=ErrorCode.SNAPSHOT_NOT_FOUND)
    cluster.deliver(follower.node_id, Response(token=sent[-1].token, body=refusal))
    assert follower.replica.download is download
