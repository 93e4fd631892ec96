"""Workloads on virtual time: quiet where nothing is wrong, and the same from the same plan."""

import pytest

from jepsen_like.checkers.lint import lint
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.faults.fault_schedule import draw_schedule
from jepsen_like.histories.history import Kind
from jepsen_like.sim.chaos.plan import ChaosOutcome, Plan, plan_as_json, plan_from_json, schedule_of
from jepsen_like.sim.chaos.workload_core import Workers
from jepsen_like.sim.chaos.workload_run import run_plan

SHORT = 4  # seconds of faults


def valid(plan: Plan) -> ChaosOutcome:
    outcome = run_plan(plan)
    assert not outcome.broken
    assert outcome.verdict.outcome is Outcome.VALID, outcome.verdict
    assert any(op.kind is Kind.OK for op in outcome.history.ops)
    return outcome


@pytest.mark.parametrize(
    ("workload", "faults"),
    [
        ("log", ("kill", "pause")),
        ("log", ("partition", "drop-rpc")),
        ("register", ("isolate-controller",)),
        ("cas-register", ("power-loss:majority", "kill")),
        ("set", ("kill",)),
        ("kafka", ("kill", "partition")),
    ],
)
def test_shipped_rules_are_valid_under_faults(workload: str, faults: tuple[str, ...]) -> None:
    outcome = valid(Plan(seed=3, workload=workload, faults=faults, seconds=SHORT))
    assert any(each.proof.bit for each in outcome.fault_outcomes)


def test_storm_spares_nobody_and_breaks_nothing() -> None:
    faults = ("power-loss", "kill", "partition", "pause", "torn-write", "clock-jump")
    valid(
        Plan(
            seed=5,
            workload="cas-register",
            faults=faults,
            storm=True,
            seconds=SHORT,
            unit_ms=60,
            sync_us=5_000,
        )
    )


def test_invariants_hold_too() -> None:
    valid(Plan(seed=6, faults=("kill",), seconds=SHORT, judges_invariants=True))


def test_same_plan_gives_the_same_run() -> None:
    plan = Plan(seed=4, faults=("kill", "delay"), seconds=SHORT)
    first = run_plan(plan)
    again = run_plan(plan_from_json(plan_as_json(plan)))
    assert (first.digest, first.history) == (again.digest, again.history)
    assert run_plan(Plan(seed=5, faults=("kill", "delay"), seconds=SHORT)).digest != first.digest


def test_a_look_at_what_to_do_that_finds_nothing_is_a_turn_without_effects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = Plan(seed=10, design="zk-kip497", faults=("pause",), seconds=2)
    idle = run_plan(plan)
    monkeypatch.setattr(Workers, "settles_idly", lambda _workers, _now_ms: False)
    told = run_plan(plan)
    assert (idle.digest, idle.events, idle.history) == (told.digest, told.events, told.history)


def test_history_is_honest() -> None:
    history = run_plan(Plan(seed=7, faults=("kill", "partition"), seconds=SHORT)).history
    assert lint(history.ops) == []


def test_every_node_says_what_it_believes_of_the_partitions() -> None:
    ops = run_plan(Plan(seed=8, workload="observe", faults=("kill",), seconds=SHORT)).history.ops
    seen = [op for op in ops if op.f == "observe"]
    assert {op.process for op in seen} == {f"node-{node}" for node in range(1, 7)}
    assert {key for op in seen for key in op.value} == {f"chaos-{number}" for number in range(3)}
    assert len({(op.process, op.extra["incarnation"]) for op in seen}) > 6, "one was started again"


def test_run_without_a_bite_is_void() -> None:
    outcome = run_plan(Plan(seed=1, faults=("full-disk",), seconds=SHORT))
    assert any("full-disk never bit" in reason for reason in outcome.void)


@pytest.mark.parametrize("wrong", [{"seed": 1}, {"seed": 1, "cluster": 3}, {"schedule": 5}])
def test_plan_that_is_none_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="no plan of a simulated run"):
        plan_from_json(wrong)


def test_schedule_is_that_of_real_runs() -> None:
    plan = Plan(seed=9, faults=("kill", "pause"), seconds=30)
    assert schedule_of(plan) == draw_schedule(seed=9, kinds=("kill", "pause"), seconds=30)
