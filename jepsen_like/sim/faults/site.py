"""The interface of an assembly for the injectors that break it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from jepsen_like.faults.fault import Injector
from jepsen_like.sim.world.world import World

__all__ = ["Site"]


class Site(Protocol):
    @property
    def world(self) -> World: ...

    @property
    def controllers(self) -> Sequence[int]: ...

    @property
    def brokers(self) -> Sequence[int]: ...

    @property
    def keeps_power(self) -> Collection[int]:
        """Nodes that lose nothing when their power fails: they are killed, no more."""
        ...

    @property
    def injectors(self) -> Mapping[str, Injector]:
        """The injectors of kinds that this assembly treats by itself, or refuses by itself."""
        ...

    def shut_down(self, node: int) -> None:
        """Ask a process to stop in good order."""
        ...

    def resign(self, node: int) -> None:
        """Make a leader resign."""
        ...

    def wipe(self, node: int) -> None:
        """Take away what a node that is down has stored."""
        ...
