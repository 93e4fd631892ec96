"""Observers of one moment, for tests that look on."""

from collections.abc import Callable

from jepsen_like.sim.host import Host
from jepsen_like.sim.observer import Observer
from quorum.core.effects import Effect

__all__ = ["WhenSettled", "in_place_of"]


class WhenSettled(Observer):
    """Calls `look` after each turn of a node."""

    def __init__(self, look: Callable[[Host, list[Effect]], None]) -> None:
        self._look = look

    def settled(self, host: Host, effects: list[Effect]) -> None:
        self._look(host, effects)


def in_place_of(observer: Observer, settled: Callable[[Host, list[Effect]], None]) -> Observer:
    """The same, but for what it does after a turn."""
    other = Observer()
    for moment in ("started", "received", "performing", "replying", "counted", "saved"):
        setattr(other, moment, getattr(observer, moment))
    other.settled = settled  # type: ignore[method-assign]
    return other
