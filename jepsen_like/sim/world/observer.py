"""Observers of the hosts of a world: invariants, traces, digests, coverage, faults.

An observer is told of each moment by the method of that name. It returns nothing, and raises if a
rule is broken. A world asks its observers in the order in which they were added.

Most events and effects mean nothing to most observers. An observer therefore names the kinds that
`received` and `performing` look at, and is called for these only.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from jepsen_like.sim.logs.logtree import Tolerance
from jepsen_like.sim.logs.running_replica import RunningReplica
from jepsen_like.sim.time.virtual_time import VirtualTime
from quorum.core.effects import Core, Effect, Event, Reply, Request, Response, Send, StorageFailed
from quorum.core.types import ElectionState

__all__ = ["MOMENTS", "Companion", "Observer", "Observers", "ReplicaOf", "WatchedCore", "tolerated"]

MOMENTS = ("started", "received", "performing", "replying", "counted", "saved", "settled")
_OF_KINDS = ("received", "performing")
_OF_TWO = ("received", "performing", "saved", "settled")  # arguments: most calls are of these
_OF_ONE = ("started", "counted")
_EVERYTHING = (object,)
_CARRIERS = (Request, Response, Send, Reply)  # their kind is that of their body


Host = Any  # `jepsen_like.sim.world.host.Host`, which knows its observers
ReplicaOf = Callable[[Host], RunningReplica]
Kinds = tuple[type, ...]
Look = Callable[..., None]


class Observer:
    """Looks at nothing; subclasses name the moments that they look at.

    `received_kinds`, `performing_kinds`: of the events and effects that they look at then. Messages
    are of the kind of their body.
    """

    received_kinds: ClassVar[Kinds] = _EVERYTHING
    performing_kinds: ClassVar[Kinds] = _EVERYTHING

    def attach(self, world: VirtualTime, replica_of: ReplicaOf) -> None:
        """A run begins, on which it looks from now on."""

    def started(self, host: Host) -> None:
        """A new process; its core has recovered and emitted nothing yet."""

    def received(self, host: Host, event: Event) -> None:
        """The core is about to be given `event`."""

    def performing(self, host: Host, effect: Effect) -> None:
        """`effect` is about to be carried out."""

    def replying(self, host: Host, token: int, request: object, response: object) -> None:
        """The answer to `request` is about to leave."""

    def counted(self, host: Host) -> None:
        """The core has settled what came in, maybe within a turn; nothing is carried out yet."""

    def saved(self, host: Host, election: ElectionState) -> None:
        """The election is durable on its disk."""

    def settled(self, host: Host, effects: list[Effect]) -> None:
        """The core has had a turn, and everything that it asked for is under way."""


class Observers:
    """Several as one. A moment at which nobody looks costs a call that does nothing."""

    started: Callable[[Host], None]
    received: Callable[[Host, Event], None]
    performing: Callable[[Host, Effect], None]
    replying: Callable[[Host, int, object, object], None]
    counted: Callable[[Host], None]
    saved: Callable[[Host, ElectionState], None]
    settled: Callable[[Host, list[Effect]], None]

    def __init__(self) -> None:
        self._all: list[Observer] = []
        self._list()

    def add(self, observer: Observer) -> None:
        self._all.append(observer)
        self._list()

    def remove(self, observer: Observer) -> None:
        """Or do nothing, if it is not among them."""
        self._all = [each for each in self._all if each is not observer]
        self._list()

    def _list(self) -> None:
        for moment in MOMENTS:
            looking = [each for each in self._all if _looks_at(each, moment)]
            looks = [getattr(each, moment) for each in looking]
            kinds = [getattr(each, f"{moment}_kinds", _EVERYTHING) for each in looking]
            is_told_apart = any(each != _EVERYTHING for each in kinds)
            one = _by_kind(looks, kinds) if is_told_apart else _as_one(moment, looks)
            setattr(self, moment, one)


def _as_one(moment: str, looks: list[Look]) -> Look:
    """Call one after the other."""
    if not looks:
        return _nobody_looks
    if len(looks) == 1:
        return looks[0]

    def each_of(host: Host) -> None:
        for look in looks:
            look(host)

    def each_at(host: Host, seen: object) -> None:
        for look in looks:
            look(host, seen)

    def each(*seen: object) -> None:
        for look in looks:
            look(*seen)

    return each_of if moment in _OF_ONE else each_at if moment in _OF_TWO else each


def _by_kind(looks: list[Look], kinds: list[Kinds]) -> Look:
    """Call those who look at what is seen, one after the other."""
    of_kind: dict[type, list[Look]] = {}

    def each_at(host: Host, seen: Event | Effect) -> None:
        kind: type = type(seen)
        if kind in _CARRIERS:
            kind = type(seen.body)  # type: ignore[union-attr]
        looking = of_kind.get(kind)
        if looking is None:
            pairs = zip(looks, kinds, strict=True)
            looking = of_kind[kind] = [look for look, its in pairs if issubclass(kind, its)]
        for look in looking:
            look(host, seen)

    return each_at


def _nobody_looks(*_seen: Any) -> None:
    pass


def tolerated(observer: Observer, tolerance: Tolerance) -> Observer:
    """The same, but what it objects to is dropped."""
    found = Observer()
    for moment in MOMENTS:
        if _looks_at(observer, moment):
            kinds = f"{moment}_kinds"
            if moment in _OF_KINDS:
                setattr(found, kinds, getattr(observer, kinds))
            setattr(found, moment, _within(tolerance, getattr(observer, moment)))
    return found


def _within(tolerance: Tolerance, look: Callable[..., None]) -> Callable[..., None]:
    def looks(*seen: Any) -> None:
        with tolerance:
            look(*seen)

    return looks


def _looks_at(observer: Observer, moment: str) -> bool:
    shipped = getattr(Observer, moment)
    return getattr(getattr(observer, moment), "__func__", None) is not shipped


class WatchedCore:
    """A core of which who watches sees each event, each settlement and all that it asks for."""

    __slots__ = (
        "_core",
        "_host",
        "_watch",
        "deadline_ms",
        "ends_batch",
        "storage_failed",
    )

    def __init__(self, core: Core, host: Host, watch: Observer | Observers) -> None:
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


class Companion(Protocol):
    """A part of a node beside its core and disk: a client of ZooKeeper."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def die(self, *, silently: bool = False) -> None:
        """The process ends. `silently`: with its machine."""

    def close(self) -> None:
        """It ends in good order."""
