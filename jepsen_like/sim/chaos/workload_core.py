"""The processes of a workload as one core: each asks what to do, does it, and tells the end.

A client whose operation ended as `info` is thrown away, and another takes its place under a process
number that was never used: as with the threads of a real run
(`jepsen_like.real.runs.worker_threads`).

The clients' work comes in steps (`jepsen_like.clients.steps`), which are carried out here.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from jepsen_like.clients.steps import Ask, Clock, Pause, Steps
from jepsen_like.histories.history import Kind
from jepsen_like.sim.assemblies.quorum.clients.asking import AskingCore
from jepsen_like.sim.open_history import Recording
from jepsen_like.workloads.workload import (
    Done,
    Wish,
    Workload,
    completion,
    invocation,
    is_to_be_repeated,
)
from quorum.core.effects import Event

__all__ = ["OpenClient", "Performs", "Workers"]

_NOTHING_TO_DO_MS = 5
_AGAIN_MS = 50  # before a final wish is done once more


Performs = Callable[[Wish], Steps[Done]]
OpenClient = Callable[[int, Clock], Performs]  # by process


@dataclass(slots=True)
class _Slot:
    """One of so many processes that work at a time."""

    process: int
    perform: Performs  # by its client
    due_ms: int = 0  # when to look what to do, or when a pause ends; while nothing is asked
    wish: Wish | None = None  # that is being done
    steps: Steps[Done] | None = None
    is_asking: bool = False
    final: deque[Wish] = field(default_factory=deque)  # what is left to do at the very end
    given_up: bool = False


class Workers(AskingCore):
    """A `Core` that sends requests and serves none."""

    def __init__(self, workload: Workload, open_client: OpenClient, recording: Recording) -> None:
        super().__init__(timeout_ms=0)  # each question has its own
        self.works = False  # on what the workload wishes
        self.operations_max: int | None = None  # of it
        self._workload = workload
        self._open_client = open_client
        self._recording = recording
        self._now_ms = 0
        self._next_process = workload.processes
        self._is_final = False
        self._has_settled = False  # what the next turn would
        self._slots = [
            _Slot(process, open_client(process, self._clock))
            for process in range(workload.processes)
        ]

    def begin_final(self) -> None:
        """The final wishes, by fresh processes, once what is under way has ended."""
        self.works, self._is_final = False, True
        for slot in self._slots:
            self._renew(slot)
            slot.final.extend(self._workload.final(slot.process))
            slot.due_ms = 0

    @property
    def is_idle(self) -> bool:
        """Is nothing under way, and nothing left to do at the end?"""
        return all(slot.wish is None and not slot.final for slot in self._slots)

    @property
    def unfinished(self) -> Sequence[int]:
        """Whose final wishes came to nothing."""
        return [slot.process for slot in self._slots if slot.given_up or slot.final]

    # --- Core ---------------------------------------------------------------------------

    def receive(self, event: Event, now_ms: int) -> None:
        self._now_ms = now_ms
        super().receive(event, now_ms)

    def settles_idly(self, now_ms: int) -> bool:
        """Settle; True if nothing came of it. Most deadlines find nothing to do, and need no turn.

        If something did, the turn that follows must not settle a second time.
        """
        self.settle(now_ms)
        self._has_settled = bool(self._outbox.effects)
        return not self._has_settled

    def settle(self, now_ms: int) -> None:
        self._now_ms = now_ms
        if self._has_settled:
            self._has_settled = False
            return
        for slot in self._slots:
            if slot.is_asking or now_ms < slot.due_ms:
                continue
            if slot.wish is not None:
                self._go_on(slot, None)
            else:
                self._find_work(slot)

    def deadline_ms(self) -> int | None:
        if not self.works and self.is_idle:
            return None
        first_ms = None
        for slot in self._slots:
            if not slot.is_asking and (first_ms is None or slot.due_ms < first_ms):
                first_ms = slot.due_ms
        return first_ms

    # --- one process --------------------------------------------------------------------

    def _clock(self) -> int:
        return self._now_ms

    def _find_work(self, slot: _Slot) -> None:
        wish: Wish | None = None
        if self._is_final:
            wish = slot.final[0] if slot.final else None
        elif self.works and self.operations_max != 0:
            wish = self._workload.next(slot.process, self._recording.now_ms())
        slot.due_ms = self._now_ms + _NOTHING_TO_DO_MS
        if wish is not None:
            if self.operations_max is not None and not self._is_final:
                self.operations_max -= 1
            self._recording.enter(invocation(slot.process, wish))
            slot.wish = wish
            slot.steps = slot.perform(wish)
            self._go_on(slot, None)

    def _go_on(self, slot: _Slot, told: object) -> None:
        assert slot.steps is not None, slot.process
        try:
            step = slot.steps.send(told)
        except StopIteration as end:
            self._completed(slot, end.value)
            return
        match step:
            case Pause(ms=ms):
                slot.due_ms = self._now_ms + ms
            case Ask(node=node, body=body, timeout_ms=timeout_ms):
                slot.is_asking = True
                self.ask(node, body, partial(self._has_answer, slot), timeout_ms)

    def _has_answer(self, slot: _Slot, body: object, now_ms: int) -> None:
        slot.is_asking = False
        self._go_on(slot, body)

    def _completed(self, slot: _Slot, done: Done) -> None:
        assert slot.wish is not None, slot.process
        wish, slot.wish, slot.steps = slot.wish, None, None
        ended = self._recording.enter(completion(slot.process, wish, done))
        self._workload.completed(ended)
        slot.due_ms = self._now_ms + _NOTHING_TO_DO_MS
        if self._is_final:
            slot.due_ms = self._now_ms + _AGAIN_MS
            if ended.kind is Kind.OK and not is_to_be_repeated(wish, ended):
                slot.final.popleft()
            if ended.kind is Kind.INFO:
                slot.given_up = True
                slot.final.clear()
        if ended.kind is Kind.INFO:
            self._renew(slot)

    def _renew(self, slot: _Slot) -> None:
        """Another client, under a number that nobody has had, of the same slot."""
        count = len(self._slots)
        own = slot.process % count
        while self._next_process % count != own:
            self._next_process += 1
        slot.process = self._next_process
        self._next_process += 1
        slot.perform = self._open_client(slot.process, self._clock)
