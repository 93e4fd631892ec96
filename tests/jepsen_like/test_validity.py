"""Void runs: each reason by itself, and none where a run has something to show."""

from dataclasses import replace

import pytest

from jepsen_like.faults.fault import Fault, Proof, Role, Scheduled
from jepsen_like.faults.validity import FaultOutcome, Figures, operations_during, why_void
from jepsen_like.histories.history import NEMESIS, Kind, Op


def outcome(kind: str = "kill", role: Role = Role.ACTIVE_CONTROLLER) -> FaultOutcome:
    return FaultOutcome(
        scheduled=Scheduled(at_ms=0, lasts_ms=0, fault=Fault(kind=kind, role=role)),
        nodes=(1,),
        injected_ms=1_000,
        healed_ms=4_000,
        proof=Proof(bit=True, evidence="seen"),
    )


KILL = outcome()
GOOD = Figures(
    seconds=20,
    kinds=("kill",),
    faults=(KILL, KILL),
    operations=(7, 7),
    ok_a_second=30.0,
    ok_a_second_without_faults=100.0,
    controller_elections=2,
)


def test_run_with_something_to_show_counts() -> None:
    assert why_void(GOOD) == ()


def test_run_without_faults_needs_none() -> None:
    assert why_void(replace(GOOD, kinds=(), faults=(), operations=(), controller_elections=0)) == ()


@pytest.mark.parametrize(
    ("figures", "reason"),
    [
        (replace(GOOD, kinds=("kill", "pause")), "pause never bit"),
        (replace(GOOD, seconds=60), "2 faults are proven, and 6 are due"),
        (replace(GOOD, operations=(7, 0)), "under way during 1"),
        (replace(GOOD, controller_elections=1), "2 elections of a controller were due"),
        (replace(GOOD, ok_a_second=24.9), "below the floor of 25.0"),
        (
            replace(GOOD, ok_a_second=0.0, ok_a_second_without_faults=0.0),
            "nothing succeeded without faults",
        ),
    ],
)
def test_void_run_says_why(figures: Figures, reason: str) -> None:
    (said,) = why_void(figures)
    assert reason in said


def test_fault_that_did_not_bite_counts_for_nothing() -> None:
    blunt = replace(KILL, proof=Proof(bit=False, evidence=""))
    assert why_void(replace(GOOD, faults=(blunt, blunt))) == (
        "kill never bit (it was tried 2 times)",
        "0 faults are proven, and 2 are due in 20 s",
    )


@pytest.mark.parametrize(
    "fault",
    [
        replace(KILL, healed_ms=2_000),
        outcome(role=Role.LEADER),
        outcome(kind="delay"),
    ],
)
def test_no_election_is_due_where_the_controller_was_not_away(fault: FaultOutcome) -> None:
    assert not fault.wants_election


def op(kind: Kind, process: int | str, at_ms: int) -> Op:
    return Op(index=0, time_ns=at_ms * 1_000_000, kind=kind, process=process, f="send")


def test_operations_are_counted_where_they_were_under_way() -> None:
    ops = [
        op(Kind.INVOKE, 1, 0),
        op(Kind.INFO, NEMESIS, 5),
        op(Kind.INVOKE, 2, 10),
        op(Kind.OK, 1, 20),
        op(Kind.INVOKE, 3, 30),  # never ends
        op(Kind.FAIL, 2, 40),
        op(Kind.INFO, "node-1", 60),
    ]
    spans = [(0, 5), (15, 25), (41, 50), (61, 70)]
    faults = [replace(KILL, injected_ms=begin, healed_ms=end) for begin, end in spans]
    assert operations_during(ops, faults) == [1, 2, 1, 0]
