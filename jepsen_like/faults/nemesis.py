"""Plays a schedule of faults: injects each when its time comes, heals it, and keeps the proof.

A kind that leaves its nodes in use is tried again when it was not injected or did not bite; one
that takes them away is not, since the schedule saw to it that enough nodes are left. For the same
reason a node that is late to return puts off the next one that goes. A storm spares nobody, so that
none of this holds there.

The nemesis has no clock, no thread and no timer: `play` does what is due, and says when it wants to
be called again. Pure.

The history has `inject` and `heal` of each fault; `heal` has what shows whether it bit. A fault
that cannot be injected (nobody has the role, or the node is down by an earlier fault) is
`not-injected`, with the reason: it never counts.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random
from typing import Protocol

from jepsen_like.faults.fault import InForce, Injector, Role, Scheduled
from jepsen_like.faults.fault_schedule import BACK_MS
from jepsen_like.faults.kinds import KINDS
from jepsen_like.faults.validity import FaultOutcome
from jepsen_like.histories.history import Op, Value
from jepsen_like.workloads.workload import deed

__all__ = ["Nemesis", "Roles"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    controllers: Sequence[int]
    brokers: Sequence[int]  # none: in a quorum alone, its voters stand in for them
    active_controller: Callable[[], int | None]
    partition_leaders: Callable[[], Collection[int]]  # of the workload's partitions
    random: Random
    zookeepers: Sequence[int] = ()

    def nodes_of(self, role: Role, faulty: Collection[int] = ()) -> Sequence[int]:
        """Empty if no node has the role now. A node that is `faulty` already is not "any" node."""
        voters, brokers = self.controllers, self.brokers or self.controllers
        pools: Mapping[Role, Collection[int]] = {
            Role.ONE: {*voters, *brokers},
            Role.ONE_BROKER: brokers,
            Role.ONE_CONTROLLER: voters,
            Role.ONE_ZOOKEEPER: self.zookeepers,
        }
        match role:
            case Role.ACTIVE_CONTROLLER:
                active = self.active_controller()
                return [] if active is None else [active]
            case Role.LEADER:
                return self._one(self.partition_leaders() or brokers, faulty)
            case Role.MINORITY:
                return self._some(voters, (len(voters) - 1) // 2)
            case Role.MAJORITY:
                return self._some(voters, len(voters) // 2 + 1)
            case Role.BROKERS:
                return sorted(brokers)
            case Role.ALL:
                return sorted({*voters, *brokers})
            case _:
                return self._one(pools[role], faulty)

    def _one(self, nodes: Collection[int], faulty: Collection[int]) -> Sequence[int]:
        return self._some(set(nodes) - set(faulty), 1)

    def _some(self, nodes: Collection[int], count: int) -> Sequence[int]:
        ordered = sorted(nodes)
        return sorted(self.random.sample(ordered, min(count, len(ordered))))


_LOOKS = 20  # for somebody who has a role, over two seconds
_LOOK_MS = 100
_TRIES = 4  # of one fault of the schedule
_AGAIN_MS = 500


class Recording(Protocol):
    """The history of a run, and its clock."""

    def now_ms(self) -> int: ...

    def enter(self, op: Op) -> Op: ...


class Nemesis:
    def __init__(
        self,
        schedule: Sequence[Scheduled],
        *,
        injectors: Mapping[str, Injector],
        roles: Roles,
        recording: Recording,
        refusals: tuple[type[Exception], ...] = (),
        is_storm: bool = False,
    ) -> None:
        """`refusals`: what an injector raises that cannot do it just now."""
        self.fault_outcomes: list[FaultOutcome] = []
        self._schedule = schedule
        self._injectors = injectors
        self._roles = roles
        self._recording = recording
        self._refusals = refusals
        self._is_storm = is_storm
        self._due: list[tuple[int, int, str]] = []  # when, which of the schedule, what
        self._tries = Counter[int]()
        self._looks = Counter[int]()  # of the present try
        self._in_force: dict[int, tuple[InForce, int]] = {}  # and since when
        self._healed_ms: dict[int, int] = {}
        self._began_ms = 0

    def begin(self) -> None:
        """The time of the schedule begins now."""
        self._began_ms = self._recording.now_ms()
        self._due = [(each.at_ms, number, "inject") for number, each in enumerate(self._schedule)]
        heapq.heapify(self._due)

    def play(self) -> int | None:
        """Do one thing that is due, if any is. In how many ms to be called again; None: never."""
        if self._due and self._due[0][0] <= self._now_ms():
            _, number, what = heapq.heappop(self._due)
            if what == "inject":
                self._inject(number)
            else:
                self._heal(number)
        return max(0, self._due[0][0] - self._now_ms()) if self._due else None

    def end(self) -> None:
        """Heal all that is in force, though one of them breaks; nothing is played after that."""
        try:
            with ExitStack() as stack:
                for number in reversed(self._in_force):
                    stack.callback(self._heal, number)
        finally:
            self._due.clear()

    @property
    def active(self) -> Sequence[str]:
        """The faults in force, as "kill 2". Any thread may ask."""
        return [
            f"{self._schedule[number].fault.kind} {','.join(map(str, in_force.nodes))}"
            for number, (in_force, _) in sorted(self._in_force.copy().items())
        ]

    def _now_ms(self) -> int:
        return self._recording.now_ms() - self._began_ms

    def _later(self, number: int, what: str, delay_ms: int) -> None:
        heapq.heappush(self._due, (self._now_ms() + delay_ms, number, what))

    # --- a fault begins -----------------------------------------------------------------------

    def _inject(self, number: int) -> None:
        scheduled = self._schedule[number]
        fault, injector = scheduled.fault, self._injectors[scheduled.fault.kind]
        if (wait_ms := self._may_begin_ms(number) - self._now_ms()) > 0:
            self._later(number, "inject", wait_ms)
            return
        nodes = self._nodes(number)
        if not nodes and self._looks[number] < _LOOKS:
            self._looks[number] += 1
            self._later(number, "inject", _LOOK_MS)
            return
        self._looks[number] = 0
        self._tries[number] += 1
        why = injector.why_not if nodes else f"nobody is {fault.role.value}"
        if not why:
            self._enter("inject", number, nodes)
            try:
                in_force = injector.inject(fault, nodes)
            except self._refusals as error:
                why = str(error)
        if why:
            self._enter("not-injected", number, nodes, why=why)
            self._again(number)
            return
        self._in_force[number] = in_force, self._recording.now_ms()
        self._later(number, "heal", scheduled.lasts_ms)

    def _may_begin_ms(self, number: int) -> int:
        """Where nodes are taken away one after another, a late return puts off what comes next."""
        mine = self._schedule[number]
        begins_ms = 0
        if self._is_storm or not self._takes_away(number):
            return begins_ms
        for other, its in enumerate(self._schedule):
            gap_ms = mine.at_ms - its.at_ms - its.lasts_ms
            if gap_ms < 0 or not self._takes_away(other):
                continue
            if other in self._in_force:
                return self._now_ms() + _LOOK_MS
            begins_ms = max(begins_ms, self._healed_ms.get(other, 0) + min(gap_ms, BACK_MS))
        return begins_ms

    def _nodes(self, number: int) -> Sequence[int]:
        """Nodes that have no other fault; if there are none, as in a rolling restart, any that
        do not have the same kind already.
        """
        fault = self._schedule[number].fault
        nodes = self._roles.nodes_of(fault.role, self._faulty())
        if self._is_storm:
            return nodes
        alike = self._faulty(fault.kind)
        if not nodes and not self._takes_away(number):
            nodes = self._roles.nodes_of(fault.role, alike)
        return nodes if alike.isdisjoint(nodes) else ()

    def _faulty(self, kind: str | None = None) -> set[int]:
        """Nodes that have a fault, or one of a kind."""
        return {
            node
            for number, (in_force, _) in self._in_force.items()
            if kind in (None, self._schedule[number].fault.kind)
            for node in in_force.nodes
        }

    def _takes_away(self, number: int) -> bool:
        return KINDS[self._schedule[number].fault.kind].takes_away

    def _again(self, number: int) -> None:
        """Try again, if that cannot take away more nodes than the schedule would."""
        spent = self._is_storm or self._takes_away(number) or self._tries[number] == _TRIES
        if not spent:
            self._later(number, "inject", _AGAIN_MS)

    # --- and ends -----------------------------------------------------------------------------

    def _heal(self, number: int) -> None:
        in_force, since_ms = self._in_force.pop(number)
        in_force.heal()
        proof = in_force.proof()
        self._healed_ms[number] = self._now_ms()
        self._enter("heal", number, in_force.nodes, bit=proof.bit, evidence=proof.evidence)
        self.fault_outcomes.append(
            FaultOutcome(
                scheduled=self._schedule[number],
                nodes=in_force.nodes,
                injected_ms=since_ms,
                healed_ms=self._recording.now_ms(),
                proof=proof,
            )
        )
        if not proof.bit:
            self._again(number)

    def _enter(self, f: str, number: int, nodes: Sequence[int], **extra: Value) -> None:
        fault = self._schedule[number].fault
        described = {
            "fault": number,
            "kind": fault.kind,
            "role": fault.role.value,
            "nodes": list(nodes),
            "parameters": {
                name: list(value) if isinstance(value, tuple) else value
                for name, value in fault.parameters.items()
            },
        }
        self._recording.enter(deed(f, described, **extra))
