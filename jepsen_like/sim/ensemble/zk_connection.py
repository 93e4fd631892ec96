"""A connection between a simulated client and one ZooKeeper server: two ordered streams of calls.

What is sent arrives later, in its order, or not at all. Bytes that meet a link that is cut, or a
process that is paused, wait as TCP lets them wait; they are lost with the connection.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from jepsen_like.sim.time.virtual_time import VirtualTime
from wire.zk.session import WatchFired

__all__ = ["Connection", "Delays", "Stream"]

_Arrival = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """One way, between any two; a mean of an exponential distribution comes on top."""

    us_min: int = 100
    us_mean: int = 300

    def draw(self, random: Random) -> int:
        return self.us_min + int(random.expovariate(1 / self.us_mean))


class Stream:
    """One direction."""

    def __init__(self, world: VirtualTime, draw_us: Callable[[], int]) -> None:
        self._world = world
        self._draw_us = draw_us
        self._due_us = 0
        self._held: deque[_Arrival] = deque()
        self.is_open = True
        self.is_held = False

    def send(self, arrival: _Arrival) -> None:
        self._due_us = max(self._due_us, self._world.now_us + self._draw_us())
        self._world.at(self._due_us, lambda: self._arrive(arrival))

    def release(self) -> None:
        """Nothing holds it any longer: what has waited arrives, in its order."""
        self.is_held = False
        while self._held and self.is_open and not self.is_held:
            self._held.popleft()()

    def close(self) -> None:
        """Nobody reads it any longer."""
        self.is_open = False
        self._held.clear()

    def _arrive(self, arrival: _Arrival) -> None:
        if not self.is_open:
            return
        if self.is_held:
            self._held.append(arrival)
        else:
            arrival()


class Connection:
    """`session_id` is 0 until the server has said whose it is."""

    def __init__(
        self,
        world: VirtualTime,
        draw_us: Callable[[], int],
        *,
        heard: Callable[[WatchFired, int], None],
        reset: Callable[[], None],
    ) -> None:
        self.to_server = Stream(world, draw_us)
        self.to_client = Stream(world, draw_us)
        self.session_id = 0
        self.heard = heard  # at the client: an event, and the zxid at which the server was
        self._reset = reset  # at the client: the server has hung up

    def close_at_server(self) -> None:
        """What it has said before still arrives."""
        if self.to_server.is_open:
            self.to_server.close()
            self.to_client.send(self._reset)
