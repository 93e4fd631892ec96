"""What a follower does with an answer of its leader, and whom it asks next."""

from struct import pack

import pytest

from quorum.core.effects import Append, Durability, Effect, Send, Trace, Truncate
from quorum.raft import discovering, following, polling
from quorum.raft.replica import Replica
from quorum.raft.roles import Follower, Prospective
from tests.quorum import builders
from tests.quorum.builders import replica
from tests.quorum.replicas import endpoint, listeners
from wire.batch import Record, assign, build_batch, data_batch
from wire.messages.fetching import EpochEndOffset, FetchedPartition, FetchRequest
from wire.messages.voters import UpdateRaftVoterRequest


def records(base_offset: int, epoch: int) -> bytes:
    plain = data_batch([b"x", b"y"], timestamp_ms=0)
    return assign(plain, base_offset=base_offset, leader_epoch=epoch)


def obey(node: Replica, role: Follower, **answer: object) -> str | None:
    partition = FetchedPartition(partition_index=0, **answer)  # type: ignore[arg-type]
    return following.fetched(node, role, partition, source=endpoint(3), now_ms=1000)


def kinds(effects: list[Effect]) -> list[str]:
    return [e.event if isinstance(e, Trace) else type(e).__name__ for e in effects]


def test_records_at_the_end_are_appended_and_the_leader_was_there() -> None:
    node, role = replica(), builders.following()
    role.has_fetched = False
    assert obey(node, role, records=records(10, 5), high_watermark=12) is None
    assert kinds(node.outbox.take()) == [Append.__name__]
    assert (node.log.end_offset, node.log.last_epoch, node.log.high_watermark) == (12, 5, 12)
    assert role.has_fetched
    assert role.fetch_deadline_ms >= 3000


def test_high_watermark_is_never_beyond_our_own_log() -> None:
    node, role = replica(), builders.following()
    obey(node, role, high_watermark=500)
    assert node.log.high_watermark == 10


@pytest.mark.parametrize("high_watermark", [-1, 5])
def test_high_watermark_never_goes_back(high_watermark: int) -> None:
    node, role = replica(), builders.following()
    obey(node, role, high_watermark=8)
    obey(node, role, high_watermark=high_watermark)
    assert node.log.high_watermark == 8


@pytest.mark.parametrize(
    "found",
    [
        records(11, 5),  # a gap
        records(8, 5),  # we have that
        records(10, 3),  # earlier than our last epoch
        records(10, 6),  # later than the leader's own
        records(10, 5) + records(13, 5),
    ],
)
def test_records_that_do_not_continue_the_log_are_refused(found: bytes) -> None:
    node, role = replica(), builders.following()
    assert obey(node, role, records=found) is None
    assert kinds(node.outbox.take()) == ["misplaced_fetch"]
    assert node.log.end_offset == 10
    assert not node.peers.is_free(3, now_ms=1000), "not at once again"
    assert role.fetch_deadline_ms == 2000, "such a leader is as good as none"


def test_corrupt_records_are_refused_whole() -> None:
    node, role = replica(), builders.following()
    spoilt = records(10, 5) + records(12, 5)[:-1] + b"\xff"
    assert obey(node, role, records=spoilt) is None
    assert kinds(node.outbox.take()) == ["corrupt_fetch"]
    assert node.log.end_offset == 10


def test_control_records_of_a_later_release_are_no_damage() -> None:
    """Fetching them again would bring them again, for ever."""
    node, role = replica(), builders.following()
    later = Record(pack(">hh", 0, 2), pack(">h", 99))
    batch = build_batch([later], timestamp_ms=0, is_control=True)
    reason = obey(node, role, records=assign(batch, base_offset=10, leader_epoch=5))
    assert reason is not None
    assert "node 3, wrote what this release does not know: LeaderChange version 99" in reason
    assert kinds(node.outbox.take()) == []
    assert node.log.end_offset == 10


def test_batch_that_the_limit_of_bytes_cut_off_is_fetched_again() -> None:
    """Kafka's leaders answer with a slice of the file, which may end within a batch."""
    node, role = replica(), builders.following()
    assert obey(node, role, records=records(10, 5) + records(12, 5)[:-1]) is None
    (written,) = [e.records for e in node.outbox.take() if isinstance(e, Append)]
    assert written == records(10, 5)
    assert node.log.end_offset == 12
    assert role.has_fetched


def test_answer_without_a_whole_batch_is_refused() -> None:
    node, role = replica(), builders.following()
    assert obey(node, role, records=records(10, 5)[:-1]) is None
    assert kinds(node.outbox.take()) == ["corrupt_fetch"]
    assert node.log.end_offset == 10


def test_diverging_epoch_truncates() -> None:
    node, role = replica(), builders.following()
    assert obey(node, role, diverging_epoch=EpochEndOffset(epoch=4, end_offset=7)) is None
    assert kinds(node.outbox.take()) == ["truncated", Truncate.__name__]
    assert node.log.end_offset == 7
    assert not discovering.acknowledges(node.log), "the next fetch waits for the truncation"


def test_committed_records_are_not_truncated() -> None:
    node, role = replica(), builders.following()
    obey(node, role, high_watermark=8)
    reason = obey(node, role, diverging_epoch=EpochEndOffset(epoch=4, end_offset=7))
    assert reason is not None
    assert "refusing to truncate" in reason
    assert node.log.end_offset == 10


def test_divergence_that_changes_nothing_is_not_asked_for_at_once_again() -> None:
    node, role = replica(), builders.following()
    assert obey(node, role, diverging_epoch=EpochEndOffset(epoch=4, end_offset=10)) is None
    assert node.log.end_offset == 10
    assert not node.peers.is_free(3, now_ms=1000)


# --- whom to ask ----------------------------------------------------------------------------


def asks(node: Replica, role: Follower, now_ms: int = 0) -> list[int]:
    following.poll(node, role, now_ms)
    return [e.to.node_id for e in node.outbox.take() if isinstance(e, Send)]


def test_leader_is_asked_once_at_a_time() -> None:
    node, role = replica(), builders.following()
    assert asks(node, role) == [3]
    assert asks(node, role) == []
    assert following.deadline_ms(node, role) == role.fetch_deadline_ms


def test_voter_tells_a_new_leader_of_itself_instead_of_a_fetch_once_that_is_due() -> None:
    node, role = replica(listeners=listeners(1)), builders.following()
    role.report_due_ms = 500
    asked = []
    for now_ms in (499, 500, 501):
        following.poll(node, role, now_ms)
        asked += [type(e.body) for e in node.outbox.take() if isinstance(e, Send)]
        node.peers.reset()
    assert asked == [FetchRequest, UpdateRaftVoterRequest, FetchRequest]


def test_silent_leader_is_asked_in_turn_with_others() -> None:
    node, role = replica(), builders.following()
    asked = []
    for n in range(4):
        (target,) = asks(node, role, now_ms=n)
        asked.append(target)
        node.peers.reset()
        following.fetch_failed(role, endpoint(target))
    assert asked == [3, 2, 3, 2]


def test_nothing_is_acknowledged_while_a_write_waits_for_its_sync() -> None:
    node, role = replica(), builders.following()
    obey(node, role, records=records(10, 5))
    assert asks(node, role) == []
    node.log.stored(1)
    assert asks(node, role) == [3]


def test_replica_that_does_not_sync_fetches_on_at_once() -> None:
    node, role = replica(voters=(2, 3), syncs=False), builders.following()
    obey(node, role, records=records(10, 5))
    (written,) = (each for each in node.outbox.take() if isinstance(each, Append))
    assert written.durability is Durability.WRITTEN
    assert asks(node, role) == [3]


def test_nobody_is_to_be_asked_while_a_write_waits_for_its_sync() -> None:
    node, role = replica(), builders.following()
    obey(node, role, records=records(10, 5))
    node.outbox.take()
    assert discovering.discovery_due_ms(node) is None
    discovering.discover(node, 5, now_ms=0)
    assert node.outbox.take() == []
    node.log.stored(1)
    assert discovering.discovery_due_ms(node) is not None
    discovering.discover(node, 5, now_ms=0)
    assert len(node.outbox.take()) == 1


def test_observer_does_not_give_up_its_leader() -> None:
    observer = replica(voters=(2, 3), syncs=False)
    assert polling.next_role(observer, builders.following(), now_ms=10**6) is None
    assert isinstance(polling.next_role(replica(), builders.following(), now_ms=2000), Prospective)


def test_observer_hears_a_leader_no_more_that_is_silent_for_the_fetch_timeout() -> None:
    """It may be a voter by a record that it lacks: it does not refuse pre-votes for ever."""
    node, role = replica(voters=(2, 3), syncs=False), builders.following()
    obey(node, role)
    polling.next_role(node, role, role.fetch_deadline_ms - 1)
    assert role.has_fetched
    polling.next_role(node, role, role.fetch_deadline_ms)
    assert not role.has_fetched
