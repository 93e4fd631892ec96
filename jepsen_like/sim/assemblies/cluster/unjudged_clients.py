"""A judge of clients that says nothing: their history is judged later, when the run is over.

See `jepsen_like.sim.logs.tolerance`.
"""

from jepsen_like.sim.assemblies.cluster.client import Acknowledged, Judge, Key
from jepsen_like.sim.logs.tolerance import Tolerance

__all__ = ["UnjudgedClients"]


class UnjudgedClients:
    def __init__(self, judge: Judge, tolerance: Tolerance) -> None:
        self._judge = judge
        self._tolerance = tolerance

    def acknowledged(self, key: Key, batch: Acknowledged) -> None:
        with self._tolerance:
            self._judge.acknowledged(key, batch)

    def has_read(self, key: Key, offset: int, value: bytes) -> None:
        with self._tolerance:
            self._judge.has_read(key, offset, value)

    def refused_position(self, key: Key, offset: int) -> None:
        with self._tolerance:
            self._judge.refused_position(key, offset)
