"""The timer of a simulated node: it rings at the deadline of a core, as late as a busy process may.

There is one timer at a time, not later than the deadline. A core whose deadline has moved on finds
that the timer rings too early, and has it set again. Time is that of the node's own clock.
"""

from collections.abc import Callable
from functools import partial

from jepsen_like.sim.time.node_clock import Clock
from jepsen_like.sim.time.virtual_time import VirtualTime, below
from jepsen_like.sim.violation import Crash

__all__ = ["DeadlineTimer"]

_LATE_US = 1_000  # how late a busy process may be with a timer
_IDLE_MAX = 100  # times in a row that it rings and moves nothing, before we call it a loop


class DeadlineTimer:
    def __init__(self, node_id: int, world: VirtualTime, ring: Callable[[], None]) -> None:
        """`ring` is called when the timer ends."""
        self._node_id = node_id
        self._world = world
        self._ring = ring
        self._random = world.fork(f"host/{node_id}")
        self._rings_at_us: int | None = None
        self._deadline_ms: int | None = None  # of the core after its last turn
        self._generation = 0
        self._idle = 0  # times in a row, each with a deadline in the past after it

    def stop(self) -> None:
        self._generation += 1
        self._rings_at_us = self._deadline_ms = None

    def set(self, deadline_ms: int | None, clock: Clock) -> None:
        self._deadline_ms = deadline_ms
        if deadline_ms is None:
            return
        late_us = below(self._random, _LATE_US)
        due_us = max(self._world.now_us, clock.world_us(deadline_ms)) + late_us
        if self._rings_at_us is not None and self._rings_at_us <= due_us:
            return
        self._rings_at_us = due_us
        self._generation += 1
        self._world.at(due_us, partial(self._end, self._generation))

    def _end(self, generation: int) -> None:
        if generation == self._generation:
            self._rings_at_us = None
            self._ring()

    def is_due(self, now_ms: int) -> bool:
        return self._deadline_ms is not None and self._deadline_ms <= now_ms

    def check_progress(self, now_ms: int) -> None:
        """A core whose deadline stays in the past would keep a real process busy for nothing."""
        self._idle = self._idle + 1 if self.is_due(now_ms) else 0
        if self._idle > _IDLE_MAX:
            raise Crash("loop", f"node {self._node_id}: the deadline stays in the past")
