"""Which refusals are worth a line, and when the voters are of another cluster."""

import pytest

from quorum.raft.refusals import Refusals
from wire.errors import ErrorCode

FOREIGN = ErrorCode.INCONSISTENT_CLUSTER_ID


def test_ordinary_refusal_is_not_news() -> None:
    refusals = Refusals()
    assert not refusals.heard(1, ErrorCode.NONE)
    assert not refusals.heard(1, ErrorCode.FENCED_LEADER_EPOCH)


def test_refusal_is_news_once_until_the_node_answers_otherwise() -> None:
    refusals = Refusals()
    heard = [
        refusals.heard(1, error)
        for error in (FOREIGN, FOREIGN, ErrorCode.INVALID_REQUEST, ErrorCode.NONE, FOREIGN)
    ]
    assert heard == [True, False, True, False, True]


@pytest.mark.parametrize(
    ("voters", "foreign", "is_hopeless"),
    [
        ((1,), (1,), True),
        ((1, 2), (2,), True),
        ((1, 2, 3), (2,), False),
        ((1, 2, 3), (2, 3), True),
        ((1, 2, 3, 4, 5), (3, 4), False),
        ((1, 2, 3, 4, 5), (3, 4, 5), True),
        ((-2, -3), (-3, -2), True),
    ],
)
def test_no_majority_may_be_left(
    voters: tuple[int, ...], foreign: tuple[int, ...], is_hopeless: bool
) -> None:
    refusals = Refusals()
    for node_id in foreign:
        refusals.heard(node_id, FOREIGN)
    assert refusals.leave_no_majority(voters) is is_hopeless
