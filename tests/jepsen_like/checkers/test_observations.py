"""What nodes say of their partitions: each contradiction is found, and being behind is none."""

from collections.abc import Sequence
from typing import Any

import pytest

from jepsen_like.checkers import judge
from jepsen_like.history import Kind, MalformedHistory
from jepsen_like.verdict import Outcome
from tests.jepsen_like.play import Play

KEY = "chaos-0"


def observed(*samples: tuple[int, Any], **extra: Any) -> Play:
    play = Play(workload="observe")
    for node, state in samples:
        play.line(Kind.OK, f"node-{node}", "observe", {KEY: state}, None, extra)
    return play


@pytest.mark.parametrize(
    ("rule", "samples"),
    [
        ("two-leaders", [(1, [1, 5, 7, [1, 2]]), (2, [2, 5, 8, [1, 2]])]),
        ("two-states", [(1, [1, 5, 7, [1, 2]]), (2, [1, 5, 7, [1]])]),
        ("leader-epoch-backwards", [(1, [1, 5, 7, [1, 2]]), (1, [2, 4, 8, [1, 2]])]),
        ("partition-epoch-backwards", [(1, [1, 5, 7, [1, 2]]), (1, [1, 5, 6, [1]])]),
        ("leader-outside-isr", [(1, [3, 5, 7, [1, 2]])]),
    ],
)
def test_planted_contradiction_is_found(rule: str, samples: Sequence[tuple[int, Any]]) -> None:
    verdict = judge(observed(*samples).history)
    assert [finding.rule for finding in verdict.findings] == [rule]
    assert verdict.findings[0].ops == tuple(range(len(samples)))
    assert verdict.objects == {KEY: Outcome.VIOLATED}


def test_contradiction_is_told_once_however_often_it_is_seen() -> None:
    samples = [(1, [1, 5, 7, [1, 2]]), *[(2, [2, 5, 8, [1, 2]])] * 9]
    assert len(judge(observed(*samples).history).findings) == 1


def test_nodes_may_be_behind_each_other_and_a_partition_may_have_no_leader() -> None:
    verdict = judge(
        observed(
            (1, [1, 5, 7, [1, 2]]),
            (1, [-1, 6, 8, [1]]),
            (2, [1, 5, 7, [2, 1]]),
            (2, [1, 7, 9, [1]]),
            (1, [1, 7, 9, [1]]),
        ).history
    )
    assert verdict.outcome is Outcome.VALID
    assert verdict.counts["observations"] == 5


def test_node_that_was_started_again_may_be_behind_itself() -> None:
    play = observed((1, [1, 5, 7, [1, 2]]), incarnation=1)
    play.line(Kind.OK, "node-1", "observe", {KEY: [1, 4, 6, [1, 2]]}, None, {"incarnation": 2})
    assert judge(play.history).outcome is Outcome.VALID


def test_observation_that_is_none_says_where_it_is() -> None:
    with pytest.raises(MalformedHistory, match="operation 0"):
        judge(observed((1, [1, 2])).history)
