"""The clock of a simulated node, which may be off and run too fast or too slowly, and its timer,
which rings at the deadline of a core, as late as a busy process may.

There is one timer at a time, not later than the deadline. A core whose deadline has moved on finds
that the timer rings too early, and has it set again. Time is that of the node's own clock.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from jepsen_like.sim.time.virtual_time import VirtualTime, below
from jepsen_like.sim.violation import Crash

__all__ = ["Clock", "DeadlineTimer"]

_EPOCH_MS = 1_700_000_000_000  # virtual time begins at a plausible wall clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A node's own clock: offset and rate against virtual time."""

    offset_ms: int = 0
    drift_ppm: int = 0

    def local_ms(self, world_us: int) -> int:
        elapsed_us = world_us + world_us * self.drift_ppm // 1_000_000
        return _EPOCH_MS + self.offset_ms + elapsed_us // 1000

    def world_us(self, local_ms: int) -> int:
        """The first moment at which the local clock shows `local_ms` or more."""
        elapsed_us = (local_ms - _EPOCH_MS - self.offset_ms) * 1000
        return elapsed_us * 1_000_000 // (1_000_000 + self.drift_ppm) + 1


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
