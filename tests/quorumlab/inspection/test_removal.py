"""Whether a node can be taken away, from made-up facts."""

import pytest

from quorumlab.inspection.diagnosis import removable
from quorumlab.inspection.facts import Holdings, Level, LiveVoter
from tests.quorumlab.inspection.made_up_facts import live


@pytest.mark.parametrize(
    ("behind_ms", "node_id", "is_safe"),
    [
        ((0, 0, 0), 3, True),
        ((0, 0, 60_000), 3, True),  # the one that is stuck
        ((0, 60_000, 0), 3, False),  # one of two would be left
        ((0,), 1, False),
        ((0, 0), 2, True),
        ((0, 0, 0, 60_000, -1), 1, False),
        ((0, 0, 0, 60_000, -1), 4, True),
    ],
)
def test_a_voter_may_go_if_a_majority_of_the_rest_is_caught_up(
    behind_ms: tuple[int, ...], node_id: int, is_safe: bool
) -> None:
    (found,) = removable(live(*behind_ms), Holdings(broker_id=node_id))
    assert (found.level is Level.FINE) == is_safe


@pytest.mark.parametrize(
    ("held", "level", "text"),
    [
        (Holdings(broker_id=9), Level.WARNING, "neither a voter nor a broker"),
        (Holdings(broker_id=9, is_registered=True), Level.FINE, "holds no replica"),
        (
            Holdings(broker_id=9, is_registered=True, replicas=5),
            Level.PROBLEM,
            "no: broker 9 holds replicas of 5 partitions",
        ),
        (
            Holdings(broker_id=9, is_registered=True, replicas=5, only_in_sync=2),
            Level.PROBLEM,
            "of 5 partitions, and of 2 the only one in sync",
        ),
    ],
)
def test_a_broker_may_go_when_nothing_is_on_it(held: Holdings, level: Level, text: str) -> None:
    (found,) = removable(live(0, 0, 0), held)
    assert found.level is level
    assert text in found.text


def test_a_node_of_both_roles_is_judged_in_both() -> None:
    held = Holdings(broker_id=3, is_registered=True, replicas=1)
    assert [found.level for found in removable(live(0, 0, 0), held)] == [Level.FINE, Level.PROBLEM]


@pytest.mark.parametrize(
    ("is_dynamic", "advice"),
    [(True, "quorumlab quorum remove-voter"), (False, "controller.quorum.voters")],
)
def test_how_a_voter_goes_depends_on_whether_voters_are_dynamic(
    is_dynamic: bool, advice: str
) -> None:
    """Static voters have directory ids, too: they only do not count."""
    voters = tuple(
        LiveVoter(id=number, end_offset=100, behind_ms=0, directory_id=f"d{number}")
        for number in (1, 2, 3)
    )
    (found,) = removable(live(voters=voters, is_dynamic=is_dynamic), Holdings(broker_id=3))
    assert advice in found.advice
