"""How soon a simulated node has its turn when something came in, and how much it takes in then.

A busy process reads its sockets when it is done with the last turn; what has arrived by then is the
next one. In one run of eight, a turn may leave some requests of clients waiting, as the driver does
after a long turn. In one run of eight time passes inside turns: what is to be sent leaves later
than what is written, and what comes in meanwhile waits. The draws have streams of their own, so
that they do not move others.
"""

from jepsen_like.sim.time.virtual_time import VirtualTime, below
from quorum.core.turn import CLIENTS_MAX, CONTROL_MAX

__all__ = ["AT_ONCE", "LASTS_US", "TURNS_US", "Pace", "limits_clients", "takes_time"]

AT_ONCE = (0,)  # as scripts want it: one event a turn
TURNS_US = (0, 0, 100, 1_000)  # of which a node draws one
_CONTROL_MAX = (1, 4, CONTROL_MAX)
_CLIENTS_MAX = (1, 2, CLIENTS_MAX)
_FEW_CLIENTS_SHARE = 1 / 8  # of runs
LASTS_US = (0, 0, 100, 1_000, 3_000)  # of which each turn draws one, if turns take time
_TAKES_TIME_SHARE = 1 / 8  # of runs


class Pace:
    """`turns_us`: at most how long events wait for a turn, in microseconds; one is drawn."""

    __slots__ = ("_clients_random", "_lasting_random", "_random", "_turn_us")

    def __init__(self, world: VirtualTime, node_id: int, turns_us: tuple[int, ...]) -> None:
        self._random = world.fork(f"turns/{node_id}")
        self._turn_us = self._random.choice(turns_us)
        is_limited = turns_us != AT_ONCE and limits_clients(world)
        self._clients_random = world.fork(f"turns/{node_id}/clients") if is_limited else None
        is_long = turns_us != AT_ONCE and takes_time(world)
        self._lasting_random = world.fork(f"turns/{node_id}/time") if is_long else None

    @property
    def limits_clients(self) -> bool:
        return self._clients_random is not None

    def wait_us(self) -> int:
        return below(self._random, self._turn_us) if self._turn_us else 0

    def lasts_us(self) -> int:
        """How much later than its writes the messages of a turn leave."""
        random = self._lasting_random
        return 0 if random is None else random.choice(LASTS_US)

    def control_max(self) -> int:
        """Events of the control plane in the next turn."""
        return _CONTROL_MAX[below(self._random, len(_CONTROL_MAX))] if self._turn_us else 1

    def clients_max(self) -> int:
        """Requests of clients in the next turn."""
        random = self._clients_random
        return CLIENTS_MAX if random is None else random.choice(_CLIENTS_MAX)

    def skip_turn(self) -> None:
        """Draw as for a turn, so that skipping one does not change later draws."""
        self.control_max()
        self.clients_max()
        self.lasts_us()


def limits_clients(world: VirtualTime) -> bool:
    """Does this run limit the requests of clients in a turn?"""
    return world.fork("turns/few clients").random() < _FEW_CLIENTS_SHARE


def takes_time(world: VirtualTime) -> bool:
    """Does time pass inside the turns of this run, between its writes and its messages?"""
    return world.fork("turns/lasting").random() < _TAKES_TIME_SHARE
