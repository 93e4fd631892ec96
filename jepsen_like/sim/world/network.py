"""A network between nodes: delay, loss, duplication, reordering, cuts in one or both directions.

Requests and responses are separate messages, so a cut in one direction lets a request arrive and
loses its answer. A connection is what the contract says: requests of one channel between two nodes
stay in order, and so do their responses. A *reordered* message escapes that, as the bytes of a
broken connection do that arrive after the retry on a new one.

The network does not know what it carries, when a sender gives up, or whether a node lives: it hands
every message that gets through to `deliver`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import NamedTuple

from jepsen_like.sim.time.virtual_time import VirtualTime

__all__ = ["Link", "LinkCut", "LinkFaults", "Message", "Network"]

Link = tuple[int, int]  # from whom to whom


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFaults:
    """What every link does to messages. Chances are per message."""

    delay_us_min: int = 100
    delay_us_mean: int = 500  # on top of the minimum, exponentially distributed
    loss: float = 0.0
    duplication: float = 0.0
    reordering: float = 0.0
    slow: float = 0.0  # the chance of `slow_us` more
    slow_us: int = 0


class Message(NamedTuple):
    """One request or response on its way."""

    source: int
    target: int
    channel: str
    correlation: int  # a response carries that of its request
    is_request: bool
    body: object
    version: int | None = None  # of a request that was said in one of the sender's own


@dataclass(slots=True, eq=False, kw_only=True)
class LinkCut:
    """Links that let nothing through."""

    kind: str  # counted for every message that is stopped
    links: Sequence[Link]
    stopped: int = 0


class Network:
    """All links, one direction each."""

    def __init__(
        self,
        *,
        world: VirtualTime,
        random: Random,
        faults: LinkFaults,
        deliver: Callable[[Message], None],
    ) -> None:
        self.faults = faults
        self.takes: Callable[[Message], bool] = lambda _message: (
            False
        )  # a script that keeps this message
        self.once: tuple[str, ...] = ()  # channels, by prefix, on which nothing comes twice
        self._world = world
        self._random = random
        self._deliver = deliver
        self._cut: dict[Link, list[LinkCut]] = {}  # the cuts over it
        self._holding: dict[Link, list[Message]] = {}
        self._last_us: dict[tuple[int, int, str, bool], int] = {}

    def cut(self, links: Sequence[Link], *, kind: str, holding: bool = False) -> LinkCut:
        """Let nothing through. `holding` keeps what arrives for when the cut heals, as TCP may."""
        cut = LinkCut(kind=kind, links=links)
        for link in links:
            self._cut.setdefault(link, []).append(cut)
            if holding:
                self._holding.setdefault(link, [])
        return cut

    def heal(self, cut: LinkCut) -> None:
        for link in cut.links:
            self._cut[link].remove(cut)
            if not self._cut[link]:
                del self._cut[link]
                for message in self._holding.pop(link, []):
                    self._world.counts.fired("held")
                    self.schedule(message, self._delay_us())

    def is_cut(self, source: int, target: int) -> bool:
        return (source, target) in self._cut

    def send(self, message: Message) -> None:
        if self.takes(message):
            return
        faults, random = self.faults, self._random
        if faults.loss and random.random() < faults.loss:
            self._world.counts.fired("lost")
            return
        delay_us = self._delay_us()
        if faults.reordering and random.random() < faults.reordering:
            self._world.counts.fired("reordered")
            self.schedule(message, delay_us * random.randint(1, 20))
        else:
            self._world.at(self._due_us(message, delay_us), partial(self._arrive, message))
        if (
            faults.duplication
            and random.random() < faults.duplication
            and self._may_repeat(message)
        ):
            self._world.counts.fired("duplicated")
            self.schedule(message, delay_us * random.randint(1, 50))

    def _may_repeat(self, message: Message) -> bool:
        return not (self.once and message.channel.startswith(self.once))

    def _delay_us(self) -> int:
        faults, random = self.faults, self._random
        delay_us = faults.delay_us_min + int(random.expovariate(1 / faults.delay_us_mean))
        if faults.slow and random.random() < faults.slow:
            self._world.counts.fired("delayed")
            delay_us += random.randint(0, faults.slow_us)
        return delay_us

    def _due_us(self, message: Message, delay_us: int) -> int:
        """When it arrives: not before the message that went before it on its connection."""
        connection = (message.source, message.target, message.channel, message.is_request)
        due_us = max(self._world.now_us + delay_us, self._last_us.get(connection, 0))
        self._last_us[connection] = due_us
        return due_us

    def schedule(self, message: Message, delay_us: int) -> None:
        """Let it arrive then, unless the link is cut by that time."""
        self._world.after(delay_us, partial(self._arrive, message))

    def _arrive(self, message: Message) -> None:
        link = (message.source, message.target)
        if link not in self._cut:
            self._deliver(message)
            return
        cut = self._cut[link][-1]
        cut.stopped += 1
        self._world.counts.fired(cut.kind)
        if link in self._holding:
            self._holding[link].append(message)
