"""What nodes say of their partitions: each contradiction is found, and being behind is none."""

from collections.abc import Sequence
from typing import Any

import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories.history import Kind, MalformedHistory
from tests.jepsen_like.play import Play

KEY = "chaos-0"


def observed(*samples: tuple[int, Any], **extra: Any) -> Play:
    play = Play(workload="observe")
    for node, state in samples:
        play.line(Kind.OK, f"node-{node}", "observe", {KEY: state}, None, extra)
    return play


PLANTED: list[tuple[str, Sequence[tuple[int, Any]]]] = [
    ("two-leaders", [(1, [1, 5, 7, [1, 2]]), (2, [2, 5, 8, [1, 2]])]),
    ("two-states", [(1, [1, 5, 7, [1, 2]]), (2, [1, 5, 7, [1]])]),
    ("leader-epoch-backwards", [(1, [1, 5, 7, [1, 2]]), (1, [2, 4, 8, [1, 2]])]),
    ("partition-epoch-backwards", [(1, [1, 5, 7, [1, 2]]), (1, [1, 5, 6, [1]])]),
    ("leader-outside-isr", [(1, [3, 5, 7, [1, 2]])]),
    ("epochs-disagree", [(1, [1, 5, 7, [1, 2]]), (2, [2, 4, 9, [2]])]),
    ("epochs-disagree", [(2, [2, 4, 9, [2]]), (1, [1, 5, 7, [1, 2]])]),
    ("isr-outside-replicas", [(1, [1, 5, 7, [1, 4], {"replicas": [1, 2, 3]}])]),
    ("isr-outside-replicas", [(1, [1, 5, 7, [1], {"replicas": [1, 2], "elr": [3]}])]),
    ("isr-outside-replicas", [(1, [1, 5, 7, [1], {"elr": [1]}])]),
    ("high-watermark-beyond-log", [(2, [1, 5, 7, [1, 2], {"high_watermark": 9, "log_end": 8}])]),
    (
        "high-watermark-backwards",
        [
            (1, [1, 5, 7, [1, 2], {"high_watermark": 9}]),
            (1, [1, 5, 8, [1], {"high_watermark": 8}]),
        ],
    ),
]


@pytest.mark.parametrize(("rule", "samples"), PLANTED)
def test_planted_contradiction_is_found(rule: str, samples: Sequence[tuple[int, Any]]) -> None:
    verdict = judge(observed(*samples).history)
    assert [finding.rule for finding in verdict.findings] == [rule]
    assert verdict.findings[0].ops == tuple(range(len(samples)))
    assert verdict.objects == {KEY: Outcome.VIOLATED}


def test_contradiction_is_told_once_however_often_it_is_seen() -> None:
    samples = [(1, [1, 5, 7, [1, 2]]), *[(2, [2, 5, 8, [1, 2]])] * 9]
    assert len(judge(observed(*samples).history).findings) == 1


def test_epoch_that_went_back_is_told_of_its_neighbours_alone() -> None:
    samples = [(1, [1, 5, 7, [1, 2]]), (2, [1, 5, 8, [1]]), (3, [2, 4, 9, [2]])]
    for order in (samples, [samples[1], samples[2], samples[0]]):
        (finding,) = judge(observed(*order).history).findings
        assert finding.rule == "epochs-disagree"
        assert "epoch 8 has leader epoch 5, and 9 has 4" in finding.detail


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


def test_new_leader_and_followers_may_know_of_a_lower_high_watermark() -> None:
    verdict = judge(
        observed(
            (1, [1, 5, 7, [1, 2], {"high_watermark": 9, "log_end": 9}]),
            (2, [1, 5, 7, [1, 2], {"high_watermark": 7, "log_end": 10}]),
            (2, [2, 6, 8, [2], {"high_watermark": 7, "log_end": 10, "replicas": [1, 2]}]),
            (1, [1, 5, 7, [1, 2], {"high_watermark": 10, "log_end": 12, "elr": []}]),
        ).history
    )
    assert verdict.outcome is Outcome.VALID


def test_node_that_was_started_again_may_be_behind_itself() -> None:
    play = observed((1, [1, 5, 7, [1, 2]]), incarnation=1)
    play.line(Kind.OK, "node-1", "observe", {KEY: [1, 4, 6, [1, 2]]}, None, {"incarnation": 2})
    assert judge(play.history).outcome is Outcome.VALID


@pytest.mark.parametrize("more", [{"elr": None}, {"elr": 5}, {"replicas": [[1]]}, {"elr": ["a"]}])
def test_nodes_that_are_none_are_refused(more: dict[str, Any]) -> None:
    with pytest.raises(MalformedHistory, match="operation 0"):
        judge(observed((1, [1, 5, 7, [1, 2], more])).history)


def test_observation_that_is_none_says_where_it_is() -> None:
    with pytest.raises(MalformedHistory, match="operation 0"):
        judge(observed((1, [1, 2])).history)


def test_partition_epoch_that_nobody_could_tell_is_none_that_went_back() -> None:
    told = [(1, [1, 5, epoch, [1, 2]]) for epoch in (7, -1)]
    assert judge(observed(*told).history).outcome is Outcome.VALID
    went_back = judge(observed(*told, (1, [1, 5, 6, [1, 2]])).history).findings
    assert [each.rule for each in went_back] == ["partition-epoch-backwards"]


def test_high_watermark_went_back_though_it_was_not_told_in_between() -> None:
    marks: list[dict[str, int]] = [{"high_watermark": 9}, {}, {"high_watermark": 8}]
    history = observed(*((1, [1, 5, 7, [1, 2], more]) for more in marks)).history
    (finding,) = judge(history).findings
    assert (finding.rule, finding.ops) == ("high-watermark-backwards", (0, 2))
