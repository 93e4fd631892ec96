"""Streams without chance: every draw is the lowest one, but for the time-outs of replicas.

A scenario must tell the same story whatever the random streams of the simulator are like. Messages
take equally long, and so do syncs. Only the random part of a replica's time-outs matters to the
protocol (Raft thesis 9.3), so a scenario says it: `shares` has for each node how much of the random
part it waits, from 0 (nothing) up to, but not including, 1 (all of it).
"""

from collections.abc import Callable, Sequence
from random import Random

__all__ = ["SteadyStreams"]

_REPLICA = "raft"  # a replica's stream is called `raft/NODE/LIFE`
_BROKER = "broker"  # its stream gives ids, each of which must be a new one
_CONTROLLER = "controller"
_IN_ORDER = 0.99  # the draw with which replicas are placed in the order of the brokers


class SteadyStreams:
    def __init__(self) -> None:
        self.shares: dict[int, float] = {}

    def order_timers(self, nodes: Sequence[int]) -> None:
        """The random parts of time-outs grow in this order of the nodes."""
        for place, node in enumerate(nodes):
            self.shares[node] = place / len(nodes)

    def __call__(self, name: str) -> Random:
        component, *place = name.split("/")
        if component == _BROKER:
            return Random(name)
        if component == _CONTROLLER:
            return _Steady(name, lambda: _IN_ORDER)
        if component != _REPLICA:
            return _Steady(name, lambda: 0.0)
        node = int(place[0])
        return _Steady(name, lambda: self.shares.get(node, 0.0))


class _Steady(Random):
    """Each number drawn lies at the same share of its range. Ids have bits of their own."""

    def __init__(self, name: str, share: Callable[[], float]) -> None:
        super().__init__(name)
        self._share = share

    def random(self) -> float:
        return self._share()

    def _randbelow(self, n: int) -> int:
        """What draws of whole numbers and choices rest on."""
        return int(self._share() * n)
