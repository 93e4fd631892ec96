"""A host is watched by observers, and may have a companion that comes and goes with its process.

A host is known here by no more than what the watched core tells it (`Watchable`).
"""

from typing import Generic, Protocol, TypeVar

from quorum.core.effects import Core, Effect, Event, StorageFailed

__all__ = ["Companion", "Watch", "WatchedCore"]


class Watchable(Protocol):
    asked_for: list[Effect]  # by the core, in this turn


HostT = TypeVar("HostT", bound=Watchable, contravariant=True)


class Companion(Protocol):
    """A part of a node beside its core and disk: a client of ZooKeeper."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def die(self, *, silently: bool = False) -> None:
        """The process ends. `silently`: with its machine."""

    def close(self) -> None:
        """It ends in good order."""


class Watch(Protocol[HostT]):
    """An observer of hosts: each method is called at the moment that it names."""

    def received(self, host: HostT, event: Event) -> None:
        """The core is about to be given `event`."""

    def performing(self, host: HostT, effect: Effect) -> None:
        """`effect` is about to be carried out."""

    def replying(self, host: HostT, token: int, request: object, response: object) -> None:
        """The answer to `request` is about to leave."""

    def counted(self, host: HostT) -> None:
        """The core has settled what came in, maybe within a turn; nothing is carried out yet."""

    def settled(self, host: HostT, effects: list[Effect]) -> None:
        """The core has had a turn, and everything that it asked for is under way."""


class WatchedCore(Generic[HostT]):
    """A core of which who watches sees each event, each settlement and all that it asks for."""

    __slots__ = (
        "_core",
        "_host",
        "_watch",
        "deadline_ms",
        "ends_batch",
        "storage_failed",
    )

    def __init__(self, core: Core, host: HostT, watch: Watch[HostT]) -> None:
        self._core, self._host, self._watch = core, host, watch
        self.ends_batch, self.deadline_ms = core.ends_batch, core.deadline_ms
        self.storage_failed = False  # the core has been told so

    def receive(self, event: Event, now_ms: int) -> None:
        if isinstance(event, StorageFailed):
            self.storage_failed = True
        self._watch.received(self._host, event)
        self._core.receive(event, now_ms)

    def settle(self, now_ms: int) -> None:
        self._core.settle(now_ms)
        self._watch.counted(self._host)

    def take_effects(self) -> list[Effect]:
        effects = self._core.take_effects()
        if effects:
            self._host.asked_for += effects
        return effects
