"""What a replica becomes on hearing of an epoch or a leader, by role."""

import pytest

from quorum.core.types import EPOCH_MAX, Endpoint, ReplicaKey
from quorum.raft.responses import KnownLeader
from quorum.raft.roles import Candidate, Follower, Prospective, Resigned, Role, Unattached
from quorum.raft.transitions import TwoLeaders, locate, maybe_transition
from tests.quorum.builders import following, replica, waiting
from tests.quorum.replicas import endpoint

UNKNOWN = -1
SOMEWHERE = Endpoint(9, "node-9", 9009)


def hear(
    role: Role, epoch: int, leader_id: int, told: Endpoint | None = None
) -> Role | TwoLeaders | None:
    known = KnownLeader(leader_id=leader_id, epoch=epoch, endpoint=told)
    return maybe_transition(replica(), role, known, now_ms=0)


def standing() -> Candidate:
    return Candidate(epoch=5, voted=ReplicaKey(1), election_deadline_ms=700, votes={1: True})


def asking() -> Prospective:
    return Prospective(
        epoch=5, leader_id=3, leader_endpoint=endpoint(3), election_deadline_ms=700, votes={}
    )


def resigned() -> Resigned:
    return Resigned(epoch=5, voted=ReplicaKey(1), election_deadline_ms=700, unacknowledged={})


EVERY = [waiting(), asking(), standing(), following(), resigned()]


def ids(value: object) -> str:
    return type(value).__name__


@pytest.mark.parametrize("role", EVERY, ids=ids)
def test_earlier_epoch_is_old_news(role: Role) -> None:
    assert hear(role, 4, 2) is None


@pytest.mark.parametrize("leader_id", [UNKNOWN, 2])
def test_epoch_that_none_could_follow_is_not_believed(leader_id: int) -> None:
    assert hear(waiting(), EPOCH_MAX, leader_id) is not None
    assert hear(waiting(), EPOCH_MAX + 1, leader_id) is None


@pytest.mark.parametrize("role", EVERY, ids=ids)
def test_later_epoch_without_a_leader_is_waited_in(role: Role) -> None:
    become = hear(role, 6, UNKNOWN)
    assert isinstance(become, Unattached)
    assert (become.epoch, become.voted, become.leader_id) == (6, None, None)


@pytest.mark.parametrize("role", EVERY, ids=ids)
def test_leader_of_a_later_epoch_is_followed(role: Role) -> None:
    become = hear(role, 6, 2)
    assert isinstance(become, Follower)
    assert (become.epoch, become.leader_id, become.voted) == (6, 2, None)


@pytest.mark.parametrize("role", EVERY, ids=ids)
def test_same_epoch_without_a_leader_is_nothing_new(role: Role) -> None:
    assert hear(role, 5, UNKNOWN) is None


@pytest.mark.parametrize("leader_id", [0, 2])
@pytest.mark.parametrize("role", [waiting(), standing()], ids=ids)
def test_leader_of_this_epoch_is_followed_by_who_knew_none(role: Role, leader_id: int) -> None:
    become = hear(role, 5, leader_id, SOMEWHERE)
    assert isinstance(become, Follower)
    assert (become.leader_id, become.voted) == (leader_id, role.voted)


@pytest.mark.parametrize("role", [waiting(), standing()], ids=ids)
def test_own_leadership_of_this_epoch_that_the_disk_forgot_is_not_believed(role: Role) -> None:
    assert hear(role, 5, 1) is None


@pytest.mark.parametrize("role", [asking(), following()], ids=ids)
def test_known_leader_is_nothing_new(role: Role) -> None:
    assert hear(role, 5, 3) is None


@pytest.mark.parametrize("role", [asking(), following(), resigned()], ids=ids)
def test_another_leader_of_the_same_epoch_is_fatal(role: Role) -> None:
    assert isinstance(hear(role, 5, 2), TwoLeaders)


def test_leader_of_unknown_address_is_remembered_by_id() -> None:
    become = hear(waiting(), 6, 9)
    assert isinstance(become, Unattached)
    assert become.leader_id == 9


def test_remembered_leader_is_followed_once_it_is_known_where_it_is() -> None:
    role = waiting(leader_id=9)
    assert hear(role, 5, 9) is None
    become = hear(role, 5, 9, SOMEWHERE)
    assert isinstance(become, Follower)
    assert become.leader_endpoint == SOMEWHERE


def test_own_leadership_that_the_disk_forgot_is_not_resumed_nor_voted_away() -> None:
    become = hear(waiting(), 6, 1)
    assert isinstance(become, Unattached)
    assert become.leader_id is None
    assert become.voted is not None
    assert become.voted.id == 1, "who led an epoch has voted in it, for itself"


def test_resigned_leader_hearing_of_its_own_past_stays() -> None:
    assert hear(resigned(), 5, 1) is None


def test_told_address_without_a_host_is_none() -> None:
    assert locate(replica(), 9, Endpoint(9, "", 0)) is None
