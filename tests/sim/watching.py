"""Observers of one moment, for tests that look on."""

from collections.abc import Callable

from jepsen_like.sim.host import Host
from jepsen_like.sim.observer import Observer
from quorum.core.effects import Effect

__all__ = ["WhenSettled"]


class WhenSettled(Observer):
    """Calls `look` after each turn of a node."""

    def __init__(self, look: Callable[[Host, list[Effect]], None]) -> None:
        self._look = look

    def settled(self, host: Host, effects: list[Effect]) -> None:
        self._look(host, effects)
