"""How soon a simulated node has its turn when something came in, and how much it takes in then.

A busy process looks at its sockets when it is done with what came before: what has come by then is
one turn. In one run of eight it may not take all the requests of clients that wait, as the driver
does after a turn that lasted long. Drawn from streams of its own, so that other draws keep their
order.
"""

from jepsen_like.sim.time.virtual_time import VirtualTime, below
from quorum.core.turn import CLIENTS_MAX, CONTROL_MAX

__all__ = ["AT_ONCE", "TURNS_US", "Pace", "draws_clients"]

AT_ONCE = (0,)  # as scripts want it: one event a turn
TURNS_US = (0, 0, 100, 1_000)  # of which a node draws one
_CONTROL_MAX = (1, 4, CONTROL_MAX)
_CLIENTS_MAX = (1, 2, CLIENTS_MAX)
_FEW_CLIENTS_SHARE = 1 / 8  # of runs


class Pace:
    """`turns_us`: at most how long events wait for a turn, in microseconds; one is drawn."""

    __slots__ = ("_clients", "_random", "_turn_us")

    def __init__(self, world: VirtualTime, node_id: int, turns_us: tuple[int, ...]) -> None:
        self._random = world.fork(f"turns/{node_id}")
        self._turn_us = self._random.choice(turns_us)
        is_drawn = turns_us != AT_ONCE and draws_clients(world)
        self._clients = world.fork(f"turns/{node_id}/clients") if is_drawn else None

    def wait_us(self) -> int:
        return below(self._random, self._turn_us) if self._turn_us else 0

    def control_max(self) -> int:
        """Events of the control plane in the next turn."""
        return _CONTROL_MAX[below(self._random, 3)] if self._turn_us else 1

    def clients_max(self) -> int:
        """Requests of clients in the next turn."""
        return CLIENTS_MAX if self._clients is None else self._clients.choice(_CLIENTS_MAX)

    def skip_turn(self) -> None:
        """Draw for a turn in which nothing happens as for any other."""
        self.control_max()
        self.clients_max()


def draws_clients(world: VirtualTime) -> bool:
    """May turns of this run have fewer requests of clients than wait?"""
    return world.fork("turns/few clients").random() < _FEW_CLIENTS_SHARE
