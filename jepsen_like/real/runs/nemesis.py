"""Plays a schedule of faults: injects each when its time comes, heals it, and keeps the proof.

Says it in the words of `jepsen_like.fault_outcomes`. A kind that leaves its nodes in use is tried
again when it was not injected or did not bite; one that takes them away is not, since the schedule
saw to it that enough nodes are left.
"""

import heapq
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

from jepsen_like.fault_outcomes import FaultOutcome, healed, injected, not_injected
from jepsen_like.faults import Injected, Injector, Scheduled
from jepsen_like.real.layout import ClusterError
from jepsen_like.real.runs.workers import Recording
from jepsen_like.roles import Roles
from jepsen_like.schedule import BACK_MS, KINDS

__all__ = ["Nemesis"]

_LOOKS = 20  # for somebody who has a role, over two seconds
_LOOK_SECONDS = 0.1
_TRIES = 4  # of one fault of the schedule
_AGAIN_MS = 500
_LOOK_MS = 100


class Nemesis:
    def __init__(
        self,
        schedule: Sequence[Scheduled],
        *,
        injectors: Mapping[str, Injector],
        roles: Roles,
        recording: Recording,
        again_ms: int = _AGAIN_MS,
    ) -> None:
        self._injectors = injectors
        self._roles = roles
        self._recording = recording
        self._again_ms = again_ms
        self._due = [(each.at_ms, number, "inject") for number, each in enumerate(schedule)]
        heapq.heapify(self._due)
        self._schedule = schedule
        self._tries = Counter[int]()
        self._in_force: dict[int, tuple[Injected, int]] = {}  # and since when
        self._healed_ms: dict[int, int] = {}
        self.fault_outcomes: list[FaultOutcome] = []
        self._stop = threading.Event()
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="nemesis")
        self._playing: Future[None] | None = None

    def start(self) -> None:
        self._began_ms = self._recording.now_ms()
        self._playing = self._threads.submit(self._run)

    def stop(self) -> None:
        """No further fault, and all that is in force is healed. Raises what went wrong."""
        self._stop.set()
        self._threads.shutdown()
        if self._playing is not None:
            self._playing.result()

    @property
    def active(self) -> Sequence[str]:
        """What is in force: "kill 2"."""
        return [
            f"{self._schedule[number].fault.kind} {','.join(map(str, in_force.nodes))}"
            for number, (in_force, _) in sorted(self._in_force.copy().items())
        ]

    def _run(self) -> None:
        try:
            self._play()
        finally:
            with ExitStack() as stack:  # one that breaks keeps none of the others in force
                for number in reversed(self._in_force):
                    stack.callback(self._heal, number)

    def _play(self) -> None:
        while self._due and not self._stop.is_set():
            at_ms, number, what = self._due[0]
            wait_ms = at_ms - self._now_ms()
            if wait_ms > 0:
                self._stop.wait(wait_ms / 1000)
                continue
            heapq.heappop(self._due)
            if what == "inject":
                self._inject(number)
            else:
                self._heal(number)

    def _inject(self, number: int) -> None:
        scheduled = self._schedule[number]
        fault = scheduled.fault
        if (begins_ms := self._may_begin_ms(number)) > self._now_ms():
            heapq.heappush(self._due, (begins_ms, number, "inject"))
            return
        nodes = self._nodes(number)
        self._tries[number] += 1
        if not nodes:
            self._not_injected(number, nodes, f"nobody is {fault.role.value}")
            return
        self._recording.enter(injected(number, fault, nodes))
        try:
            in_force = self._injectors[fault.kind].inject(fault, nodes)
        except ClusterError as error:
            self._not_injected(number, nodes, str(error))
            return
        self._in_force[number] = in_force, self._recording.now_ms()
        heapq.heappush(self._due, (self._now_ms() + scheduled.lasts_ms, number, "heal"))

    def _may_begin_ms(self, number: int) -> int:
        """Where nodes are taken away one after another, a late return puts off what comes next."""
        mine = self._schedule[number]
        begins_ms = 0
        for other, its in enumerate(self._schedule):
            gap_ms = mine.at_ms - its.at_ms - its.lasts_ms
            if gap_ms < 0 or not (self._takes_away(number) and self._takes_away(other)):
                continue
            if other in self._in_force:
                return self._now_ms() + _LOOK_MS
            begins_ms = max(begins_ms, self._healed_ms.get(other, 0) + min(gap_ms, BACK_MS))
        return begins_ms

    def _now_ms(self) -> int:
        """Since the first fault could begin."""
        return self._recording.now_ms() - self._began_ms

    def _not_injected(self, number: int, nodes: Sequence[int], why: str) -> None:
        fault = self._schedule[number].fault
        self._recording.enter(not_injected(number, fault, nodes, why=why))
        self._again(number)

    def _again(self, number: int) -> None:
        """If that cannot take away more than the schedule would."""
        if self._takes_away(number) or self._tries[number] == _TRIES:
            return
        heapq.heappush(self._due, (self._now_ms() + self._again_ms, number, "inject"))

    def _takes_away(self, number: int) -> bool:
        return KINDS[self._schedule[number].fault.kind].takes_away

    def _nodes(self, number: int) -> Sequence[int]:
        """Those that nothing else strikes; where there are none, as in a rolling restart, any but
        those that have the same kind already.
        """
        fault = self._schedule[number].fault
        for _ in range(_LOOKS):
            alike = self._struck(fault.kind)
            nodes = self._roles.nodes_of(fault.role, self._struck())
            if not nodes and not self._takes_away(number):
                nodes = self._roles.nodes_of(fault.role, alike)
            if alike.isdisjoint(nodes) and nodes:
                return nodes
            if self._stop.wait(_LOOK_SECONDS):
                break
        return []

    def _struck(self, kind: str | None = None) -> set[int]:
        """Nodes that something strikes, or something of a kind."""
        return {
            node
            for number, (in_force, _) in self._in_force.items()
            if kind in (None, self._schedule[number].fault.kind)
            for node in in_force.nodes
        }

    def _heal(self, number: int) -> None:
        in_force, since_ms = self._in_force.pop(number)
        in_force.heal()
        proof = in_force.proof()
        self._healed_ms[number] = self._now_ms()
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
        if not proof.bit:
            self._again(number)
