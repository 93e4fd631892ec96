"""Plays a schedule of faults on virtual time, and writes what it does into the history.

As on real processes (`jepsen_like.real.runs.nemesis`), in the words of
`jepsen_like.fault_outcomes`; but a fault that did not bite is not tried again.
"""

from collections.abc import Mapping, Sequence

from jepsen_like.fault_outcomes import FaultOutcome, healed, injected, not_injected
from jepsen_like.faults import Injected, Injector, Scheduled
from jepsen_like.roles import Roles
from jepsen_like.sim.chaos.recording import Recording
from jepsen_like.sim.virtual_time import Action, VirtualTime

__all__ = ["Nemesis"]

_LOOKS = 20  # for somebody who has a role
_LOOK_US = 100_000


class Nemesis:
    def __init__(
        self,
        world: VirtualTime,
        schedule: Sequence[Scheduled],
        *,
        injectors: Mapping[str, Injector],
        roles: Roles,
        recording: Recording,
    ) -> None:
        self.fault_outcomes: list[FaultOutcome] = []
        self._schedule = schedule
        self._injectors = injectors
        self._world = world
        self._roles = roles
        self._recording = recording
        self._in_force: dict[int, tuple[Injected, int]] = {}  # and since when
        self._is_over = False

    def start(self) -> None:
        for number, each in enumerate(self._schedule):
            self._world.after(each.at_ms * 1000, self._striking(number))

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
        nodes = self._roles.nodes_of(fault.role, self._struck())
        if not nodes and looks:
            self._world.after(_LOOK_US, self._striking(number, looks - 1))
            return
        injector = self._injectors.get(fault.kind)
        if not nodes or injector is None:
            why = "the simulator has no such fault" if nodes else f"nobody is {fault.role.value}"
            self._recording.enter(not_injected(number, fault, nodes, why=why))
            return
        self._recording.enter(injected(number, fault, nodes))
        self._in_force[number] = injector.inject(fault, nodes), self._recording.now_ms()
        self._world.after(scheduled.lasts_ms * 1000, lambda: self._heal(number))

    def _heal(self, number: int) -> None:
        if number not in self._in_force:
            return
        in_force, since_ms = self._in_force.pop(number)
        in_force.heal()
        proof = in_force.proof()
        scheduled = self._schedule[number]
        self._recording.enter(healed(number, scheduled.fault, in_force.nodes, proof))
        self.fault_outcomes.append(
            FaultOutcome(
                number=number,
                scheduled=scheduled,
                nodes=tuple(in_force.nodes),
                injected_ms=since_ms,
                healed_ms=self._recording.now_ms(),
                proof=proof,
            )
        )

    def _struck(self) -> set[int]:
        return {node for in_force, _ in self._in_force.values() for node in in_force.nodes}
