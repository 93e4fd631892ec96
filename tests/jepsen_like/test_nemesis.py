"""A schedule of faults is played: in the history, and to the end."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from jepsen_like.faults.fault import (
    Course,
    Fault,
    InForce,
    Injector,
    Proof,
    Role,
    Scheduled,
    cannot,
)
from jepsen_like.faults.kinds import KINDS
from jepsen_like.faults.nemesis import Nemesis, Roles
from jepsen_like.histories.history import Op

BROKERS = (1, 2, 3)
VOTERS = (101, 102, 103)


class Down(Exception):
    """The node is."""


class Played:
    """A history in which time passes only by waiting."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.time_ms = 7_000

    def now_ms(self) -> int:
        return self.time_ms

    def enter(self, op: Op) -> Op:
        self.ops.append(replace(op, index=len(self.ops), time_ns=self.time_ms * 1_000_000))
        return self.ops[-1]


class Striking:
    """An injector that only remembers."""

    def __init__(self) -> None:
        self.in_force: list[int] = []

    def inject(self, fault: Fault, targets: Sequence[int]) -> InForce:
        if fault.parameters.get("refused"):
            raise Down("the node is down")
        return InForce(self.course(fault, targets))

    def course(self, fault: Fault, targets: Sequence[int]) -> Course:
        self.in_force += targets
        yield targets
        self.in_force.clear()
        return ["seen"]


def fault(
    at_ms: int, lasts_ms: int, role: Role = Role.ONE, kind: str = "kill", **parameters: Any
) -> Scheduled:
    wanted = Fault(kind=kind, role=role, parameters=parameters)
    return Scheduled(at_ms=at_ms, lasts_ms=lasts_ms, fault=wanted)


def played(
    schedule: Sequence[Scheduled],
    injector: Striking | Injector,
    *,
    until_ms: int = 60_000,
    recording: Played | None = None,
    **settings: Any,
) -> tuple[Nemesis, list[Op]]:
    recording = recording or Played()
    roles = Roles(
        controllers=VOTERS,
        brokers=BROKERS,
        active_controller=lambda: None,
        partition_leaders=tuple,
        random=Random(1),
    )
    known = injector if isinstance(injector, Injector) else Injector(injector.inject)
    nemesis = Nemesis(
        schedule,
        injectors=dict.fromkeys(KINDS, known),
        roles=roles,
        recording=recording,
        refusals=(Down,),
        **settings,
    )
    nemesis.begin()
    end_ms = recording.time_ms + until_ms
    try:
        while (wait_ms := nemesis.play()) is not None and recording.time_ms + wait_ms < end_ms:
            recording.time_ms += wait_ms
    finally:
        nemesis.end()
    assert nemesis.play() is None, "it is over"
    return nemesis, recording.ops


def test_fault_and_its_proof_are_in_the_history() -> None:
    nemesis, ops = played([fault(500, 10)], Striking())
    assert [(op.f, op.time_ns) for op in ops] == [
        ("inject", 7_500_000_000),
        ("heal", 7_510_000_000),
    ]
    assert all(op.process == "nemesis" for op in ops)
    assert ops[0].value == ops[1].value
    assert ops[0].value["kind"] == "kill"
    assert ops[1].extra == {"bit": True, "evidence": "seen"}
    [outcome] = nemesis.fault_outcomes
    assert outcome.nodes == tuple(ops[0].value["nodes"])
    assert (outcome.injected_ms, outcome.healed_ms) == (7_500, 7_510)


def test_what_is_in_force_is_healed_at_the_end() -> None:
    injector = Striking()
    nemesis, ops = played([fault(0, 60_000)], injector)
    assert [op.f for op in ops] == ["inject", "heal"]
    assert injector.in_force == []
    assert nemesis.active == []


def test_what_was_not_due_yet_never_happens() -> None:
    nemesis, ops = played([fault(60_000, 10)], Striking())
    assert (nemesis.fault_outcomes, ops) == ([], [])


def test_refused_injection_never_counts() -> None:
    nemesis, ops = played([fault(0, 10, refused=True), fault(20, 10)], Striking())
    assert [op.f for op in ops] == ["inject", "not-injected", "inject", "heal"]
    assert ops[1].extra == {"why": "the node is down"}
    assert len(nemesis.fault_outcomes) == 1


def test_kind_that_the_backend_cannot_do_says_why() -> None:
    nemesis, ops = played([fault(0, 10)], cannot("it has no processes"))
    assert [(op.f, op.extra) for op in ops] == [("not-injected", {"why": "it has no processes"})]
    assert nemesis.fault_outcomes == []


def test_role_that_nobody_has_is_waited_for() -> None:
    nobody = fault(0, 10, role=Role.ACTIVE_CONTROLLER)
    _, ops = played([nobody], Striking())
    [only] = ops
    assert (only.f, only.time_ns) == ("not-injected", 9_000_000_000)
    assert only.extra == {"why": "nobody is active-controller"}


class BitingLater(Striking):
    """Only the third time."""

    tries = 0

    def course(self, fault: Fault, targets: Sequence[int]) -> Course:
        self.tries += 1
        if self.tries == 2:
            raise Down("the node is down")
        proof = Proof(bit=self.tries == 3, evidence=f"try {self.tries}")
        yield targets
        return proof


def test_fault_is_tried_until_it_bites_if_it_takes_no_node_away() -> None:
    nemesis, ops = played([fault(0, 1, kind="delay")], BitingLater())
    told = ["inject", "heal", "inject", "not-injected", "inject", "heal"]
    assert [op.f for op in ops] == told
    assert [outcome.proof.bit for outcome in nemesis.fault_outcomes] == [False, True]


@pytest.mark.parametrize(("kind", "is_storm"), [("kill", False), ("delay", True)])
def test_fault_that_takes_a_node_away_or_of_a_storm_is_not_tried_again(
    kind: str, is_storm: bool
) -> None:
    """The schedule knows when enough nodes are left; a second try does not."""
    nemesis, ops = played([fault(0, 1, kind=kind)], BitingLater(), is_storm=is_storm)
    assert [op.f for op in ops] == ["inject", "heal"]
    assert len(nemesis.fault_outcomes) == 1


def test_no_fault_is_tried_for_ever() -> None:
    _, ops = played([fault(0, 1, kind="delay", refused=True)], Striking())
    assert [op.f for op in ops] == ["inject", "not-injected"] * 4


def test_links_of_nodes_in_a_rolling_restart_can_be_struck() -> None:
    """All brokers are struck already; for what takes them away nobody is left."""
    restart = fault(0, 60_000, role=Role.BROKERS, kind="rolling-restart")
    schedule = [restart, fault(10, 60_000, role=Role.ONE_BROKER, kind="reset")]
    _, ops = played(schedule, Striking(), until_ms=5_000)
    assert [op.f for op in ops] == ["inject", "inject", "heal", "heal"]


@pytest.mark.parametrize("is_storm", [False, True])
def test_node_that_is_late_to_return_puts_off_the_next_that_goes(is_storm: bool) -> None:
    """The schedule lets one go after the other; a stop that takes its time must not change that."""
    recording = Played()

    class Late(Striking):
        def course(self, fault: Fault, targets: Sequence[int]) -> Course:
            recording.time_ms += 50
            return (yield from super().course(fault, targets))

    schedule = [fault(0, 10), fault(20, 1), fault(21, 1, kind="delay")]
    _, ops = played(schedule, Late(), recording=recording, is_storm=is_storm)
    told = [(op.f, op.value["fault"]) for op in ops]
    assert (told.index(("heal", 0)) < told.index(("inject", 1))) is not is_storm
    assert told.index(("inject", 2)) < told.index(("heal", 0)), "a delay takes nobody away"


@pytest.mark.parametrize(("is_storm", "injected"), [(False, 1), (True, 2)])
def test_no_node_has_the_same_kind_twice_but_in_a_storm(is_storm: bool, injected: int) -> None:
    """Two that share a proxy rule or a control group would heal each other."""
    schedule = [
        fault(0, 60_000, role=Role.BROKERS, kind="delay"),
        fault(10, 60_000, role=Role.BROKERS, kind="delay"),
    ]
    _, ops = played(schedule, Striking(), until_ms=1_000, is_storm=is_storm)
    assert [op.f for op in ops].count("inject") == injected


@pytest.mark.parametrize("what", ["inject", "heal"])
def test_what_is_in_force_is_healed_though_another_fault_breaks(what: str) -> None:
    class Breaking(Striking):
        def course(self, fault: Fault, targets: Sequence[int]) -> Course:
            if "breaks" not in fault.parameters:
                return (yield from super().course(fault, targets))
            if what == "heal":
                yield targets
            raise ZeroDivisionError

    injector, recording = Breaking(), Played()
    with pytest.raises(ZeroDivisionError):
        played([fault(0, 60_000), fault(10, 10, breaks=True)], injector, recording=recording)
    assert injector.in_force == []
    assert [op.value["fault"] for op in recording.ops if op.f == "heal"] == [0]
