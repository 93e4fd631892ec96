"""What clients are told is kept, and judged later, from their history: see `sim.unjudged`."""

from contextlib import suppress

from jepsen_like.sim.cluster.client import Acknowledged, Judge, Key
from jepsen_like.sim.violation import Violation

__all__ = ["UnjudgedClients"]


class UnjudgedClients:
    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def acknowledged(self, key: Key, batch: Acknowledged) -> None:
        with suppress(Violation):
            self._judge.acknowledged(key, batch)

    def has_read(self, key: Key, offset: int, value: bytes) -> None:
        with suppress(Violation):
            self._judge.has_read(key, offset, value)

    def refused_position(self, key: Key, offset: int) -> None:
        with suppress(Violation):
            self._judge.refused_position(key, offset)
