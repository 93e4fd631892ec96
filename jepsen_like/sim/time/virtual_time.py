"""Virtual time: one heap of future events, one clock, and a random stream for each component.

Nothing here knows of nodes or messages. Events of the same microsecond run in the order in which
they were scheduled, so a run is a function of its seed alone. Every component forks its own
`Random` by name: drawing once more in one does not change what the others see.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from random import Random

from jepsen_like.sim.counts import Counts

__all__ = ["Action", "EventsSpent", "Streams", "VirtualTime", "below"]

Action = Callable[[], None]
Streams = Callable[[str], Random]


def below(random: Random, bound: int) -> int:
    """As `random.randrange(bound)`, the same draws included, at less than half of its cost.

    Streams of another kind (`jepsen_like.scenarios.stage.steady_streams`) have draws of their own.
    """
    if type(random) is not Random:
        return random.randrange(bound)
    bits = bound.bit_length()
    drawn = random.getrandbits(bits)
    while drawn >= bound:
        drawn = random.getrandbits(bits)
    return drawn


class EventsSpent(Exception):
    """The run has had all the events that it may have."""


class VirtualTime:
    """The clock (in microseconds), the events to come, and counts of the faults among them."""

    __slots__ = ("_heap", "_sequence", "_streams", "counts", "events_done", "now_us", "seed")

    def __init__(self, seed: int, streams: Streams | None = None) -> None:
        """`streams` gives the stream of each name in the place of those of the seed."""
        self.seed = seed
        self._streams = streams
        self.counts = Counts()
        self.now_us = 0
        self.events_done = 0
        self._heap: list[tuple[int, int, Action]] = []
        self._sequence = 0

    @property
    def now_ms(self) -> int:
        return self.now_us // 1000

    def fork(self, name: str) -> Random:
        """A stream of its own. Seeding by text does not depend on PYTHONHASHSEED."""
        return Random(f"{self.seed}/{name}") if self._streams is None else self._streams(name)

    def after(self, delay_us: int, action: Action) -> None:
        assert delay_us >= 0, delay_us
        self._sequence += 1
        heappush(self._heap, (self.now_us + delay_us, self._sequence, action))

    def at(self, time_us: int, action: Action) -> None:
        assert time_us >= self.now_us, (time_us, self.now_us)
        self._sequence += 1
        heappush(self._heap, (time_us, self._sequence, action))

    def sequence(self) -> int:
        """A number that nobody else in this world has."""
        self._sequence += 1
        return self._sequence

    def run_until(self, end_us: int, *, events_max: int) -> None:
        """Run every event up to and including `end_us`, then let the time be `end_us`.

        Raises `EventsSpent` once `events_max` events have been run since the world began.
        """
        heap = self._heap
        while heap and heap[0][0] <= end_us:
            if self.events_done >= events_max:
                raise EventsSpent(self.events_done)
            self.now_us, _, action = heappop(heap)
            self.events_done += 1
            action()
        self.now_us = end_us
