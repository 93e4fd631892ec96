"""Votes, beginnings and ends of epochs as requests: checks in order, and what changes."""

from collections.abc import Callable
from uuid import UUID

import pytest

from quorum.core.types import EPOCH_MAX, Endpoint, OffsetAndEpoch, ReplicaKey
from quorum.raft.answering import Ask, Judgement, judge
from quorum.raft.messages import begin_request, end_request, vote_request
from quorum.raft.roles import Follower, Prospective, Role, Unattached
from quorum.raft.transitions import TwoLeaders
from tests.quorum.builders import LAST, US, following, replica, waiting
from tests.quorum.replicas import config, endpoint
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.quorum_epochs import BeginQuorumEpochRequest, EndQuorumEpochRequest, VoteRequest


def ask(epoch: int, voter: ReplicaKey = US, *, pre_vote: bool = False) -> VoteRequest:
    return vote_request(config(2), voter, epoch=epoch, last=LAST, pre_vote=pre_vote)


def begin(epoch: int, leader: int = 2, voter: ReplicaKey = US) -> BeginQuorumEpochRequest:
    return begin_request(config(leader), voter, epoch=epoch, leader=endpoint(leader))


def end(epoch: int, leader: int = 2, preferred: tuple[int, ...] = ()) -> EndQuorumEpochRequest:
    return end_request(
        config(leader),
        epoch=epoch,
        preferred=[ReplicaKey(node_id) for node_id in preferred],
        leader=endpoint(leader),
    )


def judged(role: Role, request: Ask) -> Judgement:
    return judge(replica(), role, request, now_ms=100)


# --- Vote -----------------------------------------------------------------------------------


def test_granted_vote_is_remembered_and_restarts_the_timer() -> None:
    found = judged(waiting(), ask(5))
    assert found.granted
    assert isinstance(found.become, Unattached)
    assert found.become.voted == ReplicaKey(2, UUID(int=1002))
    assert found.become.election_deadline_ms is not None
    assert 1100 <= found.become.election_deadline_ms < 2100


def test_vote_in_a_later_epoch_is_adopted_and_judged_at_once() -> None:
    found = judged(following(epoch=5), ask(6))
    assert found.granted
    assert isinstance(found.become, Unattached)
    assert (found.become.epoch, found.become.leader_id) == (6, None)


def test_later_epoch_is_adopted_even_if_the_vote_is_refused() -> None:
    request = vote_request(
        config(2), US, epoch=6, last=OffsetAndEpoch(offset=99, epoch=3), pre_vote=False
    )
    found = judged(waiting(), request)
    assert not found.granted
    assert isinstance(found.become, Unattached)
    assert (found.become.epoch, found.become.voted) == (6, None)
    assert found.become.election_deadline_ms == 700, "it keeps its place in the queue"


@pytest.mark.parametrize("make", [ask, begin, end])
def test_epoch_that_none_could_follow_is_refused(make: Callable[[int], Ask]) -> None:
    assert judged(waiting(), make(EPOCH_MAX)).become is not None
    assert judged(waiting(), make(EPOCH_MAX + 1)) == Judgement(error=ErrorCode.INVALID_REQUEST)


def test_pre_vote_changes_nothing() -> None:
    found = judged(waiting(), ask(5, pre_vote=True))
    assert found.granted
    assert found.become is None


@pytest.mark.parametrize(("offset", "granted", "again"), [(9, False, None), (10, True, False)])
def test_who_refused_us_for_its_leader_is_asked_again_when_it_looks_for_votes_in_vain(
    offset: int, granted: bool, again: bool | None
) -> None:
    """Ours is the longer log; it cannot win, and follows nobody any more."""
    role = Prospective(epoch=5, election_deadline_ms=700, votes={1: True, 2: False, 3: None})
    last = OffsetAndEpoch(offset=offset, epoch=4)
    found = judged(role, vote_request(config(2), US, epoch=5, last=last, pre_vote=True))
    assert (found.granted, found.become) == (granted, None)
    assert role.votes == {1: True, 2: again, 3: None}


def test_repeated_vote_changes_nothing() -> None:
    found = judged(waiting(voted=ReplicaKey(2)), ask(5))
    assert found.granted
    assert found.become is None


def test_vote_of_an_earlier_epoch_is_fenced() -> None:
    found = judged(waiting(epoch=6), ask(5))
    assert (found.error, found.granted, found.become) == (
        ErrorCode.FENCED_LEADER_EPOCH,
        False,
        None,
    )


@pytest.mark.parametrize("voter", [ReplicaKey(2), ReplicaKey(1, UUID(int=5))])
def test_vote_meant_for_another_replica_is_refused(voter: ReplicaKey) -> None:
    found = judged(waiting(), ask(6, voter))
    assert (found.error, found.granted) == (ErrorCode.INVALID_VOTER_KEY, False)
    assert found.become is not None, "the epoch is adopted before"


# --- all of them ----------------------------------------------------------------------------


@pytest.mark.parametrize("request_", [ask(6), begin(6), end(6)])
def test_other_cluster_is_refused_as_a_whole(
    request_: Ask,
) -> None:
    found = judged(waiting(), replace(request_, cluster_id="another"))
    assert found == Judgement(top_level=ErrorCode.INCONSISTENT_CLUSTER_ID)


@pytest.mark.parametrize("request_", [ask(6), begin(6), end(6)])
def test_no_cluster_is_taken_for_ours(
    request_: Ask,
) -> None:
    assert judged(waiting(), replace(request_, cluster_id=None)).become is not None


@pytest.mark.parametrize("request_", [ask(6), begin(6), end(6)])
def test_other_topics_are_refused_as_a_whole(
    request_: Ask,
) -> None:
    expected = Judgement(top_level=ErrorCode.INVALID_REQUEST)
    for topics in ((), request_.topics * 2):
        assert judged(waiting(), replace(request_, topics=topics)) == expected


# --- BeginQuorumEpoch -------------------------------------------------------------------------


def test_leader_of_a_later_epoch_is_followed() -> None:
    found = judged(following(epoch=5), begin(6))
    assert isinstance(found.become, Follower)
    assert (found.become.epoch, found.become.leader_id) == (6, 2)
    assert not found.become.has_fetched


def test_leader_of_this_epoch_is_followed_by_who_knew_none_and_the_vote_is_kept() -> None:
    found = judged(waiting(voted=ReplicaKey(3)), begin(5))
    assert isinstance(found.become, Follower)
    assert found.become.voted == ReplicaKey(3)


def test_announcement_of_the_known_leader_changes_nothing() -> None:
    assert judged(following(leader_id=2), begin(5)) == Judgement()


def test_announcement_calls_back_who_was_about_to_depose_the_leader() -> None:
    role = Prospective(
        epoch=5, leader_id=2, leader_endpoint=endpoint(2), election_deadline_ms=700, votes={}
    )
    found = judged(role, begin(5))
    assert isinstance(found.become, Follower)


def test_earlier_epoch_is_fenced() -> None:
    assert judged(waiting(), begin(4)).error is ErrorCode.FENCED_LEADER_EPOCH
    assert judged(waiting(), end(4)).error is ErrorCode.FENCED_LEADER_EPOCH


@pytest.mark.parametrize("leader", [-1, 1])
def test_nobody_else_says_that_we_lead(leader: int) -> None:
    request = begin(6)
    partition = replace(request.topics[0].partitions[0], leader_id=leader)
    topic = replace(request.topics[0], partitions=(partition,))
    found = judged(waiting(), replace(request, topics=(topic,)))
    assert found == Judgement(error=ErrorCode.INVALID_REQUEST)


def test_key_of_the_receiver_is_checked_after_the_epoch_is_adopted() -> None:
    found = judged(waiting(), begin(6, voter=ReplicaKey(1, UUID(int=5))))
    assert found.error is ErrorCode.INVALID_VOTER_KEY
    assert isinstance(found.become, Follower)


def test_node_zero_may_lead() -> None:
    found = judged(waiting(), begin(6, leader=0))
    assert found.error is ErrorCode.NONE


def test_second_leader_of_an_epoch_is_fatal() -> None:
    found = judged(following(leader_id=3), begin(5, leader=2))
    assert found.become == TwoLeaders(epoch=5, known=3, told=2)


def test_static_voter_is_where_the_configuration_says() -> None:
    request = begin_request(config(2), US, epoch=6, leader=Endpoint(2, "elsewhere", 1))
    found = judged(waiting(), request)
    assert isinstance(found.become, Follower)
    assert found.become.leader_endpoint == endpoint(2)


def test_dynamic_voter_is_where_it_says_itself() -> None:
    request = begin_request(config(2), US, epoch=6, leader=Endpoint(2, "elsewhere", 1))
    found = judge(replica(dynamic=True), waiting(), request, now_ms=0)
    assert isinstance(found.become, Follower)
    assert found.become.leader_endpoint == Endpoint(2, "elsewhere", 1)


# --- EndQuorumEpoch ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preferred", "backoff_ms"),
    [((1, 3), 0), ((3, 1), 500), ((3, 4, 1), 500), ((3, 1, 4), 250), ((3,), 1000), ((), 1000)],
)
def test_end_of_the_epoch_lets_the_best_voter_stand_first(
    preferred: tuple[int, ...], backoff_ms: int
) -> None:
    role = following(leader_id=2)
    assert judged(role, end(5, preferred=preferred)) == Judgement()
    assert role.fetch_deadline_ms == 100 + backoff_ms
    assert not role.has_fetched, "it grants pre-votes now: the leader itself said that it is gone"


def test_end_of_an_epoch_that_was_not_known_is_the_same() -> None:
    found = judged(waiting(), end(6, preferred=(1,)))
    assert isinstance(found.become, Follower)
    assert found.become.fetch_deadline_ms == 100


def test_end_does_not_lengthen_the_time_out() -> None:
    role = following(leader_id=2)
    role.fetch_deadline_ms = 150
    judged(role, end(5))
    assert role.fetch_deadline_ms == 150
