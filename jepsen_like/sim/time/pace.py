"""How soon a simulated node has its turn when something came in, and how much it takes in then.

A busy process looks at its sockets when it is done with what came before: what has come by then is
one turn. Drawn from a stream of its own, so that other draws keep their order.
"""

from random import Random

from jepsen_like.sim.time.virtual_time import below
from quorum.core.turn import CONTROL_MAX

__all__ = ["AT_ONCE", "TURNS_US", "Pace"]

AT_ONCE = (0,)  # as scripts want it: one event a turn
TURNS_US = (0, 0, 100, 1_000)  # of which a node draws one
_CONTROL_MAX = (1, 4, CONTROL_MAX)


class Pace:
    """`turns_us`: at most how long events wait for a turn, in microseconds; one is drawn."""

    __slots__ = ("_random", "_turn_us")

    def __init__(self, random: Random, turns_us: tuple[int, ...]) -> None:
        self._random = random
        self._turn_us = random.choice(turns_us)

    def wait_us(self) -> int:
        return below(self._random, self._turn_us) if self._turn_us else 0

    def control_max(self) -> int:
        """Events of the control plane in the next turn."""
        return _CONTROL_MAX[below(self._random, 3)] if self._turn_us else 1
