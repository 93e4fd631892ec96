"""Which checkers judge which workload, and what shrinking leaves."""

import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.judges import JUDGED
from jepsen_like.checkers.shrink import smallest
from jepsen_like.history import Kind
from jepsen_like.verdict import Outcome, Verdict, as_json, compose
from jepsen_like.workloads.registry import WORKLOADS
from tests.jepsen_like.play import Play


def test_every_workload_has_a_judge() -> None:
    assert set(WORKLOADS) <= set(JUDGED)


@pytest.mark.parametrize("workload", sorted(JUDGED))
def test_nothing_that_happened_is_valid(workload: str) -> None:
    assert judge(Play(workload=workload).history).outcome is Outcome.VALID


def test_unknown_workload_is_undecided_and_the_known_ones_are_named() -> None:
    verdict = judge(Play(workload="bank").history)
    assert verdict.outcome is Outcome.UNDECIDED
    assert "cas-register" in verdict.reason


def test_observations_are_judged_beside_every_workload() -> None:
    play = Play(workload="log")
    play.line(Kind.OK, "node-1", "observe", {"chaos-0": [1, 1, 1, [1]]})
    play.line(Kind.OK, "node-2", "observe", {"chaos-0": [2, 1, 1, [2]]})
    assert {each.rule for each in judge(play.history).findings} == {"two-leaders", "two-states"}


def test_strings_of_porcupine_are_judged() -> None:
    play = Play(workload="kv")
    play.did(0, "append", ["k", "x"], None)
    play.did(1, "put", ["other", "z"], None)
    play.did(0, "append", ["k", "y"], None)
    play.did(0, "get", ["k", None], ["k", "xy"])
    assert judge(play.history).outcome is Outcome.VALID
    play.did(0, "get", ["k", None], ["k", "yx"])
    verdict = judge(play.history)
    assert verdict.objects == {"k": Outcome.VIOLATED, "other": Outcome.VALID}


def test_worst_verdict_of_an_object_stays() -> None:
    parts = [
        Verdict.of([], objects=["a", "b"]),
        Verdict.of([], objects=["b"], doubts={"a": "why"}),
        Verdict.of([], objects=["a"]),
    ]
    verdict = compose(parts)
    assert verdict.objects == {"a": Outcome.UNDECIDED, "b": Outcome.VALID}
    assert as_json(verdict)["outcome"] == "undecided"
    assert as_json(verdict)["reason"] == "a: why"


def test_shrinking_leaves_what_it_takes_wherever_it_is() -> None:
    for wanted in ({3}, {0, 99}, {10, 11, 50}):
        assert set(smallest(range(100), lambda part, w=wanted: w <= set(part))) == wanted  # type: ignore[misc] # a default argument of a lambda
