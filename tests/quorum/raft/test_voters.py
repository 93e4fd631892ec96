"""Majorities, against a dumb twin, and the voter set."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.core.types import Endpoint, ReplicaKey
from quorum.raft.voters import (
    Voter,
    VoteResult,
    VoterSet,
    majority_count,
    majority_offset,
    vote_result,
)
from tests.quorum.replicas import voter_set
from wire.primitives import METADATA_TOPIC_ID, ZERO_UUID

ends = st.dictionaries(st.integers(1, 50), st.integers(0, 30), min_size=1, max_size=9)
votes = st.dictionaries(
    st.integers(1, 50), st.sampled_from([True, False, None]), min_size=1, max_size=9
)


def is_majority(count: int, of: int) -> bool:
    return 2 * count > of


@given(ends)
def test_majority_offset_is_the_largest_that_more_than_half_reached(ends: dict[int, int]) -> None:
    reached = [
        offset
        for offset in range(31)
        if is_majority(sum(end >= offset for end in ends.values()), len(ends))
    ]
    assert majority_offset(ends) == max(reached)


@given(votes)
def test_vote_result_is_decided_when_no_further_vote_can_change_it(
    votes: dict[int, bool | None],
) -> None:
    granted = sum(vote is True for vote in votes.values())
    missing = sum(vote is None for vote in votes.values())
    if is_majority(granted, len(votes)):
        expected = VoteResult.WON
    elif is_majority(granted + missing, len(votes)):
        expected = VoteResult.PENDING
    else:
        expected = VoteResult.LOST
    assert vote_result(votes) is expected


@pytest.mark.parametrize(
    ("voter_count", "needed"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 4), (7, 4)]
)
def test_two_majorities_share_a_voter(voter_count: int, needed: int) -> None:
    assert majority_count(voter_count) == needed
    assert 2 * needed > voter_count


def test_voters_are_ordered_by_id() -> None:
    assert VoterSet.of(reversed(voter_set([1, 2, 3]).voters)).ids == (1, 2, 3)


def test_one_id_cannot_vote_twice() -> None:
    with pytest.raises(AssertionError, match="distinct"):
        VoterSet.of([*voter_set([1]), *voter_set([1])])


def test_another_disk_under_the_same_id_is_no_voter() -> None:
    voter = Voter(ReplicaKey(1, METADATA_TOPIC_ID), Endpoint(1, "a", 1))
    voters = VoterSet.of([voter])
    assert voters.contains(ReplicaKey(1, METADATA_TOPIC_ID))
    assert not voters.contains(ReplicaKey(1, ZERO_UUID)), "who does not say may be another"
    assert not voters.contains(ReplicaKey(1, ReplicaKey(1).directory_id.__class__(int=9)))
    assert not voters.contains(ReplicaKey(2, METADATA_TOPIC_ID))


def test_describe_draws_a_bar_for_every_voter_and_the_majority() -> None:
    text = voter_set([1, 2, 3]).describe({1: 12, 2: 6, 3: 0})
    assert text.splitlines() == [
        "       1 |========================| 12",
        "       2 |============            | 6",
        "       3 |                        | 0",
        "  majority             ^ 6",
    ]
