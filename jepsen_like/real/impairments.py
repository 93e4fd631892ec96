"""A proxy impairs the bytes of one direction between two nodes, and counts what proves it.

A flow is all that one node says to another: its requests on its own links, and its answers on the
other's. A cut of the flow from 1 to 2 therefore lets 2's requests arrive at 1 and loses the
answers, and never lets 1's requests arrive. A frame that meets a cut waits, as TCP would send it
again: it arrives when the cut heals, even if the asker has long given up.

Several impairments may lie on a flow at a time; each counts for itself.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from jepsen_like.faults.cut_links import Direction

__all__ = ["Cut", "Delay", "Flow", "Flows", "Impairment", "Imposed", "Refuse", "SlowClose"]


@dataclass(frozen=True, slots=True)
class Cut:
    """Nothing gets through, and nobody is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """Every frame comes so much later, by `jitter_ms` more at most; the order stays."""

    delay_ms: int
    jitter_ms: int = 0


@dataclass(frozen=True, slots=True)
class Refuse:
    """Connections are reset, those that are there and every new one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowClose:
    """The end of a connection is told so much later."""

    delay_ms: int


Kind = TypeVar("Kind", bound="Impairment")
Impairment = Cut | Delay | Refuse | SlowClose


@dataclass(slots=True, eq=False)
class Imposed:
    """An impairment that lies on some flows, until it is lifted."""

    impairment: Impairment
    directions: frozenset[Direction]
    counts: Counter[str] = field(default_factory=Counter)  # what it did, by kind

    @property
    def is_proven(self) -> bool:
        return self.counts.total() > 0

    def describe(self) -> str:
        """`cut 4 flows: 12 frames waited, 3 connections waited`."""
        did = ", ".join(f"{count} {what}" for what, count in sorted(self.counts.items()))
        name = type(self.impairment).__name__.lower()
        return f"{name} on {len(self.directions)} flows: {did or 'nothing came'}"


class Flow:
    """One direction between two nodes."""

    def __init__(self, random: Random) -> None:
        self.imposed: list[Imposed] = []
        self._random = random
        self._changed = asyncio.Event()

    def changed(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def refusal(self) -> Imposed | None:
        return self._first(Refuse)

    async def pass_cut(self, what: str) -> None:
        """Wait until nothing cuts the flow; `what` is counted by each cut that it met."""
        met: list[Imposed] = []
        while (cut := self._first(Cut)) is not None:
            if cut not in met:
                cut.counts[f"{what} waited"] += 1
                met.append(cut)
            await self._changed.wait()

    def later_seconds(self) -> float:
        """How much later a frame that comes now shall go."""
        total_ms = 0
        for delay in self._counted(Delay, "frames delayed"):
            total_ms += delay.delay_ms + self._random.randint(0, delay.jitter_ms)
        return total_ms / 1000

    def close_seconds(self) -> float:
        """How much later the end of a connection shall be told."""
        return sum(each.delay_ms for each in self._counted(SlowClose, "closes told late")) / 1000

    def _counted(self, kind: type[Kind], what: str) -> Iterator[Kind]:
        """The impairments of a kind that lie on the flow; each counts what it does now."""
        for imposed in self.imposed:
            if isinstance(imposed.impairment, kind):
                imposed.counts[what] += 1
                yield imposed.impairment

    def _first(self, kind: type[Impairment]) -> Imposed | None:
        return next((each for each in self.imposed if isinstance(each.impairment, kind)), None)


class Flows:
    """All flows, made when they are first asked for. Lives in the loop of the proxies."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._flows: dict[Direction, Flow] = {}

    def __getitem__(self, direction: Direction) -> Flow:
        if direction not in self._flows:
            self._flows[direction] = Flow(self._random)
        return self._flows[direction]

    def impose(self, impairment: Impairment, directions: Collection[Direction]) -> Imposed:
        imposed = Imposed(impairment, frozenset(directions))
        for direction in imposed.directions:
            self[direction].imposed.append(imposed)
            self[direction].changed()
        return imposed

    def lift(self, imposed: Imposed) -> None:
        for direction in imposed.directions:
            flow = self[direction]
            if imposed in flow.imposed:
                flow.imposed.remove(imposed)
                flow.changed()

    def lift_all(self) -> None:
        for flow in self._flows.values():
            flow.imposed.clear()
            flow.changed()
