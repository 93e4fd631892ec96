"""Plays a schedule of faults on virtual time, and writes what it does into the history.

As on real processes (`jepsen_like.real.runs.nemesis`): `inject` and `heal` with the fault's number,
kind, role and nodes; `not-injected` where nobody has the role.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from jepsen_like.faults import Injected, Injector, Proof, Role, Scheduled
from jepsen_like.history import Value
from jepsen_like.sim.chaos.recording import Recording
from jepsen_like.sim.chaos.stages import Stage
from jepsen_like.sim.world import Action
from jepsen_like.validity import Strike

__all__ = ["Nemesis", "Struck"]

_LOOKS = 20  # for somebody who has a role
_LOOK_US = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Struck:
    """A fault of the schedule, and what came of it."""

    scheduled: Scheduled
    nodes: Sequence[int]
    injected_ms: int
    healed_ms: int
    proof: Proof

    def strike(self, operations: int) -> Strike:
        return Strike(
            kind=self.scheduled.fault.kind,
            role=self.scheduled.fault.role,
            injected_ms=self.injected_ms,
            healed_ms=self.healed_ms,
            bit=self.proof.bit,
            operations=operations,
        )


class Nemesis:
    def __init__(
        self,
        schedule: Sequence[Scheduled],
        known: Mapping[str, Injector],
        stage: Stage,
        recording: Recording,
        random: Random,
    ) -> None:
        self.struck: list[Struck] = []
        self._schedule = schedule
        self._injectors = known
        self._stage = stage
        self._recording = recording
        self._random = random
        self._in_force: dict[int, tuple[Injected, int]] = {}  # and since when
        self._is_over = False

    def start(self) -> None:
        for number, each in enumerate(self._schedule):
            self._stage.world.after(each.at_ms * 1000, self._striking(number))

    def heal(self) -> None:
        """No further fault, and all that is in force ends."""
        self._is_over = True
        for number in list(self._in_force):
            self._heal(number)

    def _striking(self, number: int, looks: int = _LOOKS) -> Action:
        return lambda: self._inject(number, looks)

    def _inject(self, number: int, looks: int) -> None:
        if self._is_over:
            return
        scheduled = self._schedule[number]
        fault = scheduled.fault
        nodes = self._nodes_of(fault.role)
        if not nodes and looks:
            self._stage.world.after(_LOOK_US, self._striking(number, looks - 1))
            return
        described = self._described(number, nodes)
        injector = self._injectors.get(fault.kind)
        if not nodes or injector is None:
            why = "the simulator has no such fault" if nodes else f"nobody is {fault.role.value}"
            self._recording.nemesis("not-injected", described, {"why": why})
            return
        self._recording.nemesis("inject", described)
        self._in_force[number] = injector.inject(fault, nodes), self._recording.now_ms()
        self._stage.world.after(scheduled.lasts_ms * 1000, lambda: self._heal(number))

    def _heal(self, number: int) -> None:
        if number not in self._in_force:
            return
        injected, since_ms = self._in_force.pop(number)
        injected.heal()
        proof = injected.proof()
        self._recording.nemesis(
            "heal",
            self._described(number, injected.nodes),
            {"bit": proof.bit, "evidence": proof.evidence},
        )
        self.struck.append(
            Struck(
                scheduled=self._schedule[number],
                nodes=tuple(injected.nodes),
                injected_ms=since_ms,
                healed_ms=self._recording.now_ms(),
                proof=proof,
            )
        )

    def _described(self, number: int, nodes: Sequence[int]) -> Value:
        fault = self._schedule[number].fault
        return {
            "fault": number,
            "kind": fault.kind,
            "role": fault.role.value,
            "nodes": list(nodes),
            "parameters": {
                name: list(value) if isinstance(value, tuple) else value
                for name, value in fault.parameters.items()
            },
        }

    # --- whom a role means now ----------------------------------------------------------

    def _nodes_of(self, role: Role) -> Sequence[int]:
        """Who is struck already is no longer "any" node."""
        struck = {node for injected, _ in self._in_force.values() for node in injected.nodes}
        voters, brokers = self._stage.controllers, self._stage.brokers or self._stage.controllers
        everybody = (*self._stage.controllers, *self._stage.brokers)
        match role:
            case Role.ACTIVE_CONTROLLER:
                active = self._stage.active_controller()
                return [] if active is None else [active]
            case Role.LEADER:
                return self._some(self._stage.partition_leaders() or brokers, 1, struck)
            case Role.ONE:
                return self._some(everybody, 1, struck)
            case Role.ONE_BROKER:
                return self._some(brokers, 1, struck)
            case Role.ONE_CONTROLLER:
                return self._some(voters, 1, struck)
            case Role.MINORITY:
                return self._some(voters, (len(voters) - 1) // 2, ())
            case Role.MAJORITY:
                return self._some(voters, len(voters) // 2 + 1, ())
            case Role.BROKERS:
                return brokers
            case Role.ALL:
                return everybody

    def _some(self, nodes: Collection[int], count: int, struck: Collection[int]) -> Sequence[int]:
        left = sorted(set(nodes) - set(struck))
        return sorted(self._random.sample(left, min(count, len(left))))
