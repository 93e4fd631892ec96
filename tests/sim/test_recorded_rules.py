"""Runs record what the rules on clients and nodes need: what is spoiled in one is found."""

import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories.history import History, Kind
from jepsen_like.sim.chaos.plan import Plan
from jepsen_like.sim.chaos.workload_run import run_plan
from tests.jepsen_like.spoiled import SPOILED, spoiled


@pytest.fixture(scope="module")
def history() -> History:
    plan = Plan(seed=6, workload="kafka", faults=("kill", "pause"), seconds=12, pause_ms=50)
    outcome = run_plan(plan)
    assert outcome.verdict.outcome is Outcome.VALID, outcome.verdict
    return outcome.history


def test_sends_tell_their_sequences_and_commits_their_generations(history: History) -> None:
    ok = [op for op in history.ops if op.kind is Kind.OK]
    assert all("sequence" in op.extra for op in ok if op.f == "send")
    assert all("generation" in op.extra for op in ok if op.f == "commit")
    counts = judge(history).counts
    assert counts["records with sequences"] > 100
    assert counts["commits"] > 10


@pytest.mark.parametrize("how", SPOILED)
def test_violation_planted_in_a_recorded_history_is_found(history: History, how: str) -> None:
    rule, spoil = SPOILED[how]
    verdict = judge(spoiled(history, spoil))
    assert rule in {finding.rule for finding in verdict.findings}
