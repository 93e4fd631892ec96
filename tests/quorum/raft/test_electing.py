"""What a replica is after a restart, and the pauses between elections."""

from random import Random
from uuid import UUID

import pytest

from quorum.core.effects import Failure, LogState
from quorum.core.storage import METADATA_LOG
from quorum.core.types import ElectionState, ReplicaKey
from quorum.raft import becoming, electing
from quorum.raft import raft_node as raft
from quorum.raft.raft_node import RaftNode
from quorum.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Role, Unattached
from quorum.raft.voters import is_split
from tests.quorum.builders import US, replica
from tests.quorum.replicas import config, endpoint


def start(
    epoch: int, leader_id: int | None = None, voted: ReplicaKey | None = None, **settings: object
) -> Role:
    """The first role of node 1 of 3, whose log ends in epoch 4."""
    election = ElectionState(epoch=epoch, leader_id=leader_id, voted=voted)
    return raft.initial_role(replica((1, 2, 3), **settings), election, now_ms=0)


def test_log_ahead_of_the_election_gives_the_epoch() -> None:
    role = start(3, leader_id=1, voted=US)
    assert isinstance(role, Unattached)
    assert (role.epoch, role.leader_id, role.voted) == (4, None, None)


def test_leader_comes_back_resigned_and_tells_the_others() -> None:
    role = start(5, leader_id=1, voted=US)
    assert isinstance(role, Resigned)
    assert (role.epoch, role.voted) == (5, US)
    assert sorted(role.unacknowledged) == [2, 3]


def test_candidate_comes_back_as_one() -> None:
    role = start(5, voted=US)
    assert isinstance(role, Candidate)
    assert (role.epoch, role.votes) == (5, {1: True, 2: None, 3: None})


def test_vote_of_an_old_quorum_state_names_no_disk_and_counts_as_ours() -> None:
    assert isinstance(start(5, voted=ReplicaKey(1)), Candidate)


def test_vote_of_another_disk_under_our_id_is_not_ours() -> None:
    other_disk = ReplicaKey(1, UUID(int=5))
    role = start(5, voted=other_disk)
    assert isinstance(role, Unattached)
    assert role.voted == other_disk


def test_candidate_whose_log_has_records_of_its_epoch_led_it_and_does_not_stand_again() -> None:
    role = start(4, voted=US)
    assert isinstance(role, Unattached)
    assert role.voted == US


def test_vote_for_another_is_remembered() -> None:
    role = start(5, voted=ReplicaKey(2))
    assert isinstance(role, Unattached)
    assert role.voted == ReplicaKey(2)


def test_known_leader_is_followed() -> None:
    role = start(5, leader_id=2, voted=US)
    assert isinstance(role, Follower)
    assert (role.leader_id, role.leader_endpoint, role.voted) == (2, endpoint(2), US)
    assert not role.has_fetched


def test_leader_of_unknown_address_is_remembered() -> None:
    role = start(5, leader_id=9)
    assert isinstance(role, Unattached)
    assert role.leader_id == 9


def test_observer_never_stands() -> None:
    election = ElectionState(epoch=5, voted=ReplicaKey(9))
    node = RaftNode(config(9), LogState(log=METADATA_LOG), election, Random(1), now_ms=0)
    assert isinstance(node.role, Unattached)
    assert node.role.election_deadline_ms is None


@pytest.mark.parametrize("retries", [1, 2, 3, 10, 1000])
def test_backoff_grows_at_random_up_to_its_maximum(retries: int) -> None:
    random = Random(retries)
    drawn = [electing.election_backoff_ms(random, retries, 1000) for _ in range(200)]
    longest_ms = min(1000, 100 * 2**retries)
    assert 0 <= min(drawn) < longest_ms // 10
    assert longest_ms - longest_ms // 10 < max(drawn) <= longest_ms


def test_repeated_answer_of_a_voter_counts_once() -> None:
    role = Candidate(epoch=5, voted=US, election_deadline_ms=0, votes={1: True, 2: None, 3: None})
    electing.record_vote(role, 2, granted=False)
    electing.record_vote(role, 2, granted=False)
    electing.record_vote(role, 99, granted=True)
    assert role.votes == {1: True, 2: False, 3: None}


def test_lost_election_pauses_and_then_asks_first() -> None:
    node = replica()
    role = Candidate(
        epoch=5,
        voted=US,
        election_deadline_ms=9999,
        votes={1: True, 2: False, 3: False},
        retries=3,
    )
    assert electing.poll_candidate(node, role, now_ms=0) is None or role.backoff_until_ms == 0
    assert role.backoff_until_ms is not None
    assert electing.deadline_ms(node, role) == role.backoff_until_ms
    again = electing.poll_candidate(node, role, now_ms=role.backoff_until_ms)
    assert again is not None
    assert (type(again).__name__, again.epoch, again.voted) == ("Prospective", 5, US)


@pytest.mark.parametrize("random_part_ms", [0, 70, 900])
def test_split_vote_waits_less_for_the_silent(random_part_ms: int) -> None:
    node = replica((1, 2, 3))
    timeout_ms = node.config.election_timeout_ms
    role = Candidate(
        epoch=5,
        voted=US,
        election_deadline_ms=timeout_ms + random_part_ms,
        votes={1: True, 2: False, 3: None},
    )
    until_ms = timeout_ms // 10 + random_part_ms
    for now_ms in (0, until_ms - 1):
        assert electing.poll_candidate(node, role, now_ms) is None
        assert role.election_deadline_ms == until_ms
    again = electing.poll_candidate(node, role, now_ms=until_ms)
    assert (type(again).__name__, role.retries) == ("Prospective", 1)


def test_late_vote_wins_an_election_that_was_split() -> None:
    node = replica((1, 2, 3))
    role = Candidate(
        epoch=5, voted=US, election_deadline_ms=9999, votes={1: True, 2: False, 3: None}
    )
    electing.poll_candidate(node, role, now_ms=0)
    role.votes[3] = True
    assert isinstance(electing.poll_candidate(node, role, now_ms=1), Leader)


@pytest.mark.parametrize(
    ("votes", "split"),
    [
        ((True, None, None), False),
        ((True, False, None), True),
        ((True, False, False), False),
        ((True, False, None, None, None), False),
        ((True, False, False, None, None), True),
        ((True, None), False),
        ((True, False, None, None), True),
    ],
)
def test_when_one_more_refusal_would_lose(votes: tuple[bool | None, ...], split: bool) -> None:
    assert is_split(dict(enumerate(votes))) == split


@pytest.mark.parametrize("failure", list(Failure))
def test_who_cannot_be_asked_before_is_asked_for_its_vote_at_once(failure: Failure) -> None:
    """A voter of an older release knows no pre-votes; one that is silent may know them."""
    ours = replica((1, 2, 3))
    asks = becoming.prospective(ours, Unattached(epoch=4, election_deadline_ms=0), now_ms=0)
    stands = electing.not_asked(ours, asks, failure, now_ms=0)
    assert (stands is not None) == (failure is Failure.UNSUPPORTED_VERSION)
    assert stands is None or (stands.epoch, stands.voted) == (5, US)


def test_lost_pre_vote_is_over_at_once() -> None:
    role = Prospective(
        epoch=5, election_deadline_ms=1000, votes={1: True, 2: False, 3: False}, leader_id=3
    )
    after = electing.poll_prospective(replica(), role, now_ms=100)
    assert isinstance(after, Unattached)
    assert (after.epoch, after.leader_id) == (5, 3)
