"""What can be learned from an answer, however little it says."""

import pytest

from quorum.core.types import Endpoint
from quorum.raft.messages import fetch_response, vote_response
from quorum.raft.responses import CommonFields, KnownLeader, common_fields, news_of, only_partition
from tests.quorum.replicas import endpoint
from wire.errors import ErrorCode
from wire.messages.fetching import FetchResponse
from wire.messages.quorum_epochs import VoteResponse

KNOWN = KnownLeader(leader_id=2, epoch=7, endpoint=endpoint(2))


def test_answer_names_the_leader_and_where_it_is() -> None:
    answer = vote_response(KNOWN, error=ErrorCode.FENCED_LEADER_EPOCH, granted=False)
    assert common_fields(answer, endpoint(3)) == CommonFields(
        error=ErrorCode.FENCED_LEADER_EPOCH, epoch=7, leader_id=2, endpoint=endpoint(2)
    )


def test_refusal_as_a_whole_says_nothing_of_epochs() -> None:
    answer = VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID, topics=())
    assert common_fields(answer, endpoint(3)) == CommonFields(
        error=ErrorCode.INCONSISTENT_CLUSTER_ID
    )
    assert only_partition(answer.topics) is None


def test_answer_without_our_partition_is_an_error() -> None:
    assert common_fields(VoteResponse(topics=()), endpoint(3)).error is ErrorCode.INVALID_REQUEST
    assert (
        common_fields(FetchResponse(responses=()), endpoint(3)).error is ErrorCode.INVALID_REQUEST
    )


def test_who_serves_a_fetch_is_the_leader_even_if_it_names_no_address() -> None:
    answer = fetch_response(KnownLeader(leader_id=2, epoch=7))
    found = common_fields(answer, Endpoint(-3, "somewhere", 9))
    assert found.endpoint == Endpoint(2, "somewhere", 9)


def test_who_refuses_a_fetch_is_not_taken_for_the_leader() -> None:
    answer = fetch_response(
        KnownLeader(leader_id=2, epoch=7), error=ErrorCode.NOT_LEADER_OR_FOLLOWER
    )
    assert common_fields(answer, Endpoint(-3, "somewhere", 9)).endpoint is None


@pytest.mark.parametrize(
    ("answer", "is_news"),
    [
        (fetch_response(KNOWN), True),
        (fetch_response(KNOWN, error=ErrorCode.FENCED_LEADER_EPOCH), False),
        (fetch_response(KnownLeader(leader_id=3, epoch=7)), False),
        (fetch_response(KnownLeader(leader_id=2, epoch=8)), False),
        (FetchResponse(responses=()), False),
    ],
)
def test_only_the_leader_of_the_epoch_has_news(answer: FetchResponse, *, is_news: bool) -> None:
    found = news_of(answer, leader_id=2, epoch=7)
    assert found == (only_partition(answer.responses) if is_news else None)
