"""What a leader writes and counts."""

from uuid import UUID

import pytest

from quorum.core.types import ReplicaKey
from quorum.raft import leading, polling
from quorum.raft.replica import Replica
from quorum.raft.roles import Candidate, Leader, Resigned
from quorum.raft.voter_history import record_of
from tests.quorum.builders import US, replica
from tests.quorum.replicas import Replicas, listeners
from wire.batch import read_header, records_of
from wire.control_records import LeaderChange, decode_control


def lead(**settings: object) -> tuple[Replica, Leader]:
    """Node 1 of 3 has won epoch 5 by the votes of 1 and 3; its log ended at 10."""
    node = replica((1, 2, 3), **settings)
    votes: dict[int, bool | None] = {1: True, 2: None, 3: True}
    stood = Candidate(epoch=5, voted=US, election_deadline_ms=0, votes=votes)
    role = leading.leader(node, stood, now_ms=0)
    leading.enter(node, role, now_ms=0)
    return node, role


def test_first_record_of_an_epoch_says_who_leads_and_who_voted() -> None:
    cluster = Replicas([1, 2, 3])
    leader = cluster.elect()
    (batch,) = cluster.disks[leader.node_id].batches
    header = read_header(batch)
    assert (header.is_control, header.base_offset, header.leader_epoch) == (True, 0, 1)
    (record,) = records_of(batch)
    change = decode_control(record)
    assert isinstance(change, LeaderChange)
    assert (change.version, change.leader_id) == (0, leader.node_id)
    assert [voter.voter_id for voter in change.voters] == [1, 2, 3]
    granting = {voter.voter_id for voter in change.granting_voters}
    assert leader.node_id in granting
    assert len(granting) >= 2


def test_epoch_starts_where_the_log_ended() -> None:
    _, role = lead()
    assert role.epoch_start_offset == 10
    assert role.granting == (ReplicaKey(1), ReplicaKey(3))
    assert role.high_watermark is None


def test_high_watermark_waits_for_a_record_of_the_epoch_and_never_goes_back() -> None:
    node, role = lead()
    seen = []
    for fetch_offset in (10, 11, 9, 11):
        leading.track(node, role, ReplicaKey(2, UUID(int=1002)), fetch_offset, now_ms=1)
        node.log.stored(99)
        leading.advance_high_watermark(node, role)
        seen.append(role.high_watermark)
    assert seen == [None, 11, 11, 11]


@pytest.mark.parametrize(
    ("heard", "voters", "is_enough"),
    [(0, 1, True), (0, 2, False), (1, 2, True), (1, 3, True), (1, 4, False), (2, 5, True)],
)
def test_majority_is_heard_with_the_leader_itself(heard: int, voters: int, is_enough: bool) -> None:
    assert leading.hears_majority(heard, voters) is is_enough


def test_caught_up_is_who_has_reached_where_the_leader_was_at_its_last_fetch() -> None:
    node, role = lead()
    key = ReplicaKey(2, UUID(int=1002))
    times = []
    for now_ms, fetch_offset in ((100, 10), (200, 10), (300, 11)):
        leading.track(node, role, key, fetch_offset, now_ms=now_ms)
        times.append(role.progress[2].last_caught_up_ms)
    assert times == [-1, -1, 300]
    for now_ms, fetch_offset in ((400, 11), (500, 12), (600, 13)):
        leading.enter(node, role, now_ms=0)  # any further record
        leading.track(node, role, key, fetch_offset, now_ms=now_ms)
        times.append(role.progress[2].last_caught_up_ms)
    assert times[3:] == [300, 400, 500], "one record behind the leader"
    leading.track(node, role, key, node.log.end_offset, now_ms=700)
    assert role.progress[2].last_caught_up_ms == 700


def test_leader_whose_removal_is_committed_resigns_whatever_else_is_due() -> None:
    node, role = lead(dynamic=True, listeners=listeners(1))
    node.history.observe([(node.log.end_offset, record_of(node.voters.without(1)))])
    node.voters_changed()
    role.high_watermark = node.log.end_offset + 1
    assert role.begin_epoch_due_ms <= 0
    assert isinstance(polling.next_role(node, role, now_ms=0), Resigned)
