"""A schedule of faults is played: in the history, and to the end."""

import threading
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from jepsen_like.faults import Fault, Injected, Proof, Role, Scheduled
from jepsen_like.history import Header, Op, read_history
from jepsen_like.in_force import InForce
from jepsen_like.real.layout import ClusterError
from jepsen_like.real.runs.nemesis import Nemesis
from jepsen_like.real.runs.workers import Recording
from jepsen_like.roles import Roles
from jepsen_like.schedule import KINDS

BROKERS = (1, 2, 3)
VOTERS = (101, 102, 103)


class Striking:
    """An injector that only remembers."""

    def __init__(self, bites: bool = True) -> None:
        self.in_force: list[int] = []
        self.healed = threading.Event()
        self._bites = bites

    def why_not(self) -> str:
        return ""

    def inject(self, fault: Fault, targets: Sequence[int]) -> Injected:
        if fault.parameters.get("refused"):
            raise ClusterError("the node is down")
        self.in_force += targets

        def heal() -> None:
            self.in_force.clear()
            self.healed.set()

        return InForce(targets, heal=heal, prove=lambda: Proof(bit=self._bites, evidence="seen"))


def fault(
    at_ms: int, lasts_ms: int, role: Role = Role.ONE, kind: str = "kill", **parameters: Any
) -> Scheduled:
    wanted = Fault(kind=kind, role=role, parameters=parameters)
    return Scheduled(at_ms=at_ms, lasts_ms=lasts_ms, fault=wanted)


def played(
    path: Path, schedule: Sequence[Scheduled], injector: Striking, seconds: float = 0.2
) -> tuple[Nemesis, list[Op]]:
    with Recording(path, Header(workload="log", seed=0)) as recording:
        roles = Roles(
            controllers=VOTERS,
            brokers=BROKERS,
            active_controller=lambda: None,
            partition_leaders=tuple,
            random=Random(1),
        )
        injectors = dict.fromkeys(KINDS, injector)
        nemesis = Nemesis(
            schedule, injectors=injectors, roles=roles, recording=recording, again_ms=1
        )
        nemesis.start()
        try:
            injector.healed.wait(seconds)
        finally:
            nemesis.stop()
    return nemesis, list(read_history(path.read_bytes()).ops)


def test_fault_and_its_proof_are_in_the_history(tmp_path: Path) -> None:
    nemesis, ops = played(tmp_path / "history", [fault(0, 10)], Striking(), seconds=5.0)
    assert [op.f for op in ops] == ["inject", "heal"]
    assert all(op.process == "nemesis" for op in ops)
    assert ops[0].value == ops[1].value
    assert ops[0].value["kind"] == "kill"
    assert ops[1].extra == {"bit": True, "evidence": "seen"}
    [struck] = nemesis.fault_outcomes
    assert struck.nodes == tuple(ops[0].value["nodes"])
    assert struck.healed_ms >= struck.injected_ms + 10


def test_what_is_in_force_is_healed_at_the_end(tmp_path: Path) -> None:
    injector = Striking()
    nemesis, ops = played(tmp_path / "history", [fault(0, 60_000)], injector)
    assert [op.f for op in ops] == ["inject", "heal"]
    assert injector.in_force == []
    assert nemesis.active == []


def test_what_was_not_due_yet_never_happens(tmp_path: Path) -> None:
    nemesis, ops = played(tmp_path / "history", [fault(60_000, 10)], Striking(), seconds=0.05)
    assert (nemesis.fault_outcomes, ops) == ([], [])


def test_refused_injection_never_counts(tmp_path: Path) -> None:
    schedule = [fault(0, 10, refused=True), fault(20, 10)]
    nemesis, ops = played(tmp_path / "history", schedule, Striking(), seconds=5.0)
    assert [op.f for op in ops] == ["inject", "not-injected", "inject", "heal"]
    assert ops[1].extra == {"why": "the node is down"}
    assert len(nemesis.fault_outcomes) == 1


class BitingLater(Striking):
    """Only the third time."""

    def inject(self, fault: Fault, targets: Sequence[int]) -> Injected:
        self.tries = getattr(self, "tries", 0) + 1
        if self.tries == 2:
            raise ClusterError("the node is down")
        proof = Proof(bit=self.tries == 3, evidence=f"try {self.tries}")
        done = self.healed if proof.bit else threading.Event()
        return InForce(targets, heal=done.set, prove=lambda: proof)


def test_fault_is_tried_until_it_bites_if_it_takes_no_node_away(tmp_path: Path) -> None:
    schedule = [fault(0, 1, kind="delay")]
    nemesis, ops = played(tmp_path / "history", schedule, BitingLater(), seconds=5.0)
    told = ["inject", "heal", "inject", "not-injected", "inject", "heal"]
    assert [op.f for op in ops] == told
    assert [struck.proof.bit for struck in nemesis.fault_outcomes] == [False, True]


def test_fault_that_takes_a_node_away_is_not_tried_again(tmp_path: Path) -> None:
    """The schedule knows when enough nodes are left; a second try does not."""
    nemesis, ops = played(tmp_path / "history", [fault(0, 1)], BitingLater())
    assert [op.f for op in ops] == ["inject", "heal"]
    assert len(nemesis.fault_outcomes) == 1


def test_no_fault_is_tried_for_ever(tmp_path: Path) -> None:
    schedule = [fault(0, 1, kind="delay", refused=True)]
    _, ops = played(tmp_path / "history", schedule, Striking())
    assert [op.f for op in ops] == ["inject", "not-injected"] * 4


def test_links_of_nodes_in_a_rolling_restart_can_be_struck(tmp_path: Path) -> None:
    """All brokers are struck already; for what takes them away nobody is left."""
    restart = fault(0, 60_000, role=Role.BROKERS, kind="rolling-restart")
    schedule = [restart, fault(10, 60_000, role=Role.ONE_BROKER, kind="reset")]
    _, ops = played(tmp_path / "history", schedule, Striking())
    assert [op.f for op in ops] == ["inject", "inject", "heal", "heal"]


def test_node_that_is_late_to_return_puts_off_the_next_that_goes(tmp_path: Path) -> None:
    """The schedule lets one go after the other; a stop that takes its time must not change that."""

    class Late(Striking):
        returned = 0

        def inject(self, fault: Fault, targets: Sequence[int]) -> Injected:
            threading.Event().wait(0.05)
            return InForce(targets, heal=self.heal, prove=lambda: Proof(bit=True, evidence=""))

        def heal(self) -> None:
            self.returned += 1
            if self.returned == 3:
                self.healed.set()

    schedule = [fault(0, 10), fault(20, 1), fault(21, 1, kind="delay")]
    _, ops = played(tmp_path / "history", schedule, Late(), seconds=5.0)
    told = [(op.f, op.value["fault"]) for op in ops]
    assert told.index(("heal", 0)) < told.index(("inject", 1))
    assert told.index(("inject", 2)) < told.index(("heal", 0)), "a delay takes nobody away"


def test_no_node_has_the_same_kind_twice(tmp_path: Path) -> None:
    """Two that share a proxy rule or a control group would heal each other."""
    schedule = [
        fault(0, 60_000, role=Role.BROKERS, kind="delay"),
        fault(10, 60_000, role=Role.ONE_BROKER, kind="delay"),
    ]
    _, ops = played(tmp_path / "history", schedule, Striking(), seconds=0.1)
    assert [op.f for op in ops][:1] == ["inject"]
    assert [op.f for op in ops].count("inject") == 1


def test_broken_injector_is_told_to_whoever_stops(tmp_path: Path) -> None:
    class Broken(Striking):
        def inject(self, fault: Fault, targets: Sequence[int]) -> Injected:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        played(tmp_path / "history", [fault(0, 10)], Broken())


@pytest.mark.parametrize("what", ["inject", "heal"])
def test_what_is_in_force_is_healed_though_another_fault_breaks(tmp_path: Path, what: str) -> None:
    class Breaking(Striking):
        def inject(self, fault: Fault, targets: Sequence[int]) -> Injected:
            if "breaks" not in fault.parameters:
                return super().inject(fault, targets)
            if what == "inject":
                raise ZeroDivisionError

            def heal() -> None:
                raise ZeroDivisionError

            return InForce(targets, heal=heal, prove=lambda: Proof(bit=True, evidence="seen"))

    injector = Breaking()
    with pytest.raises(ZeroDivisionError):
        played(tmp_path / "history", [fault(0, 60_000), fault(10, 10, breaks=True)], injector)
    assert injector.healed.is_set()
    ops = read_history((tmp_path / "history").read_bytes()).ops
    assert [op.value["fault"] for op in ops if op.f == "heal"] == [0]
