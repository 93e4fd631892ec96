"""Who gets a vote, by role, log and past vote."""

import pytest

from quorum.core.types import OffsetAndEpoch, ReplicaKey
from quorum.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Role, Unattached
from quorum.raft.vote import check_vote, grants_pre_vote, grants_vote
from tests.quorum.replicas import endpoint
from wire.errors import ErrorCode
from wire.messages.quorum_epochs import VotePartition

US, PEER, OTHER = ReplicaKey(1), ReplicaKey(2), ReplicaKey(3)
OURS = OffsetAndEpoch(offset=10, epoch=4)
BETTER = OffsetAndEpoch(offset=1, epoch=5)
WORSE = OffsetAndEpoch(offset=99, epoch=3)


def unattached(leader_id: int | None = None, voted: ReplicaKey | None = None) -> Unattached:
    return Unattached(epoch=5, leader_id=leader_id, voted=voted, election_deadline_ms=100)


def prospective(leader_id: int | None = None, voted: ReplicaKey | None = None) -> Prospective:
    return Prospective(
        epoch=5, leader_id=leader_id, voted=voted, election_deadline_ms=100, votes={1: True}
    )


def candidate() -> Candidate:
    return Candidate(epoch=5, voted=US, election_deadline_ms=100, votes={1: True})


def follower(has_fetched: bool) -> Follower:
    return Follower(
        epoch=5,
        leader_id=3,
        leader_endpoint=endpoint(3),
        fetch_deadline_ms=100,
        has_fetched=has_fetched,
    )


def leader() -> Leader:
    return Leader(
        epoch=5,
        voted=US,
        epoch_start_offset=10,
        granting=(US,),
        progress={},
        check_quorum_deadline_ms=100,
        begin_epoch_due_ms=100,
    )


def resigned() -> Resigned:
    return Resigned(epoch=5, voted=US, election_deadline_ms=100, unacknowledged={})


@pytest.mark.parametrize(
    ("role", "granted"),
    [
        (unattached(), True),
        (prospective(), True),
        (unattached(leader_id=3), False),
        (prospective(leader_id=3), False),
        (unattached(voted=PEER), True),
        (unattached(voted=OTHER), False),
        (prospective(voted=OTHER), False),
        (candidate(), False),
        (follower(has_fetched=False), False),
        (follower(has_fetched=True), False),
        (leader(), False),
        (resigned(), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_vote_by_role_for_a_better_log(role: Role, granted: bool) -> None:
    assert grants_vote(role, PEER, last=BETTER, ours=OURS) is granted


@pytest.mark.parametrize(
    ("role", "granted"),
    [
        (unattached(), True),
        (unattached(leader_id=3), True),
        (unattached(voted=OTHER), True),
        (prospective(leader_id=3), True),
        (candidate(), True),
        (follower(has_fetched=False), True),
        (follower(has_fetched=True), False),
        (leader(), False),
        (resigned(), True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_pre_vote_by_role_for_a_better_log(role: Role, granted: bool) -> None:
    assert grants_pre_vote(role, last=BETTER, ours=OURS) is granted


@pytest.mark.parametrize(
    "role",
    [unattached(), prospective(), candidate(), follower(has_fetched=False), leader(), resigned()],
    ids=lambda value: type(value).__name__,
)
def test_worse_log_gets_neither(role: Role) -> None:
    assert not grants_vote(role, PEER, last=WORSE, ours=OURS)
    assert not grants_pre_vote(role, last=WORSE, ours=OURS)


def test_repeated_request_is_granted_again() -> None:
    assert grants_vote(unattached(voted=PEER), PEER, last=OURS, ours=OURS)


def test_repeated_request_of_a_candidate_that_lost_its_log_is_refused() -> None:
    """A quorum-state of version 0 does not say for which disk the vote was: it was replaced."""
    voted = ReplicaKey(PEER.id)
    assert not grants_vote(unattached(voted=voted), PEER, last=WORSE, ours=OURS)


def test_equal_log_is_good_enough() -> None:
    assert grants_vote(unattached(), PEER, last=OURS, ours=OURS)


def test_vote_is_bound_to_the_candidates_disk() -> None:
    one_disk = ReplicaKey(2, US.directory_id.__class__(int=7))
    other_disk = ReplicaKey(2, US.directory_id.__class__(int=8))
    assert grants_vote(unattached(voted=one_disk), one_disk, last=OURS, ours=OURS)
    assert not grants_vote(unattached(voted=one_disk), other_disk, last=OURS, ours=OURS)


def ask(
    epoch: int = 5,
    *,
    replica_id: int = 2,
    last_epoch: int = 4,
    last_offset: int = 10,
    pre_vote: bool = False,
) -> VotePartition:
    return VotePartition(
        partition_index=0,
        replica_epoch=epoch,
        replica_id=replica_id,
        last_offset_epoch=last_epoch,
        last_offset=last_offset,
        pre_vote=pre_vote,
    )


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (ask(), ErrorCode.NONE),
        (ask(6), ErrorCode.NONE),
        (ask(4, last_epoch=3), ErrorCode.FENCED_LEADER_EPOCH),
        (ask(last_offset=-1), ErrorCode.INVALID_REQUEST),
        (ask(last_epoch=-1), ErrorCode.INVALID_REQUEST),
        (ask(last_epoch=5), ErrorCode.INVALID_REQUEST),  # nobody wrote in an epoch yet to begin
        (ask(last_epoch=5, pre_vote=True), ErrorCode.NONE),  # but in the present one they did
        (ask(last_epoch=6, pre_vote=True), ErrorCode.INVALID_REQUEST),
        (ask(replica_id=-1), ErrorCode.INVALID_REQUEST),
        (ask(4, last_epoch=3, replica_id=-1), ErrorCode.FENCED_LEADER_EPOCH),  # Kafka's order
    ],
)
def test_checks_before_judging(request_: VotePartition, expected: ErrorCode) -> None:
    assert check_vote(request_, epoch=5) is expected
