"""What generated requests are made of: values that are mostly right, and sometimes not.

Every request has a Random of its own, seeded by the run's seed and its number, so that an answer
changes what is sent later as little as possible. What each side names for itself (ids of topics and
members) goes into requests as `Both`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar
from uuid import UUID

from wire.api_table import Versions

__all__ = ["Both", "Draw", "Known", "Producer", "resolved"]

T = TypeVar("T")

# Topics that every run begins with, and how many partitions they have.
TOPICS = {
    "alpha": 3,
    "beta": 1,
    "gamma": 2,
    "compacted": 1,
    "gzipped": 1,
    "narrow": 1,
    "stamped": 1,
    "careful": 1,
}
PASSING = ("t0", "t1", "t2", "t3")  # topics that come and go
ODD_NAMES = ("nowhere", "", ".", "..", "a b", "a/b", "é", "x" * 250, "al.pha", "__cluster_metadata")
GROUPS = ("g0", "g1", "g2")
TRANSACTIONAL_IDS = ("x0", "x1", "x2")
ZERO_ID, STRANGE_ID = UUID(int=0), UUID(int=0xDEAD_BEEF_0000_0000_DEAD_BEEF)
METADATA_ID = UUID(int=1)
INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1


@dataclass(frozen=True, slots=True)
class Both:
    """One thing, as ours and as Kafka calls it."""

    ours: Any
    kafka: Any


@dataclass(frozen=True, slots=True)
class Producer:
    """Who a transactional id belongs to."""

    producer: Any  # its id, as each side calls it
    epoch: int


@dataclass(slots=True)
class Known:
    """What answers have told so far, for later requests to use."""

    cluster_id: str = ""
    topics: dict[str, Both] = field(default_factory=dict)  # ids, also of topics deleted since
    members: dict[str, list[Both]] = field(default_factory=dict)  # by group
    generations: dict[str, int] = field(default_factory=dict)
    producers: list[Both] = field(default_factory=list)
    transactions: dict[str, Producer] = field(default_factory=dict)  # by transactional id
    sessions: list[Both] = field(default_factory=list)
    directory: Both = field(default_factory=lambda: Both(ZERO_ID, ZERO_ID))
    log_dir: Both = field(default_factory=lambda: Both("", ""))  # its path
    broker_epoch: Both = field(default_factory=lambda: Both(0, 0))


@dataclass(slots=True)
class Draw:
    random: Random
    known: Known
    version: int = 0
    listener: str = "broker"
    repeats: bool = False  # something is named twice

    def pick(self, *options: T) -> T:
        return self.random.choice(options)

    def chance(self, percent: int) -> bool:
        return self.random.random() * 100 < percent

    def mostly(self, usual: T, *odd: Any) -> Any:
        """One of the odd values now and then."""
        return self.random.choice(odd) if self.chance(25) else usual

    def some(self, make: Callable[[], T], most: int = 3, *, twice: int = 3) -> list[T]:
        """Mostly one or a few of different names; none, or one of them twice, now and then."""
        made: dict[str, T] = {}
        for _ in range(self.mostly(1, 0, *range(2, most + 1))):
            element = make()
            made.setdefault(_name(element), element)
        elements = list(made.values())
        if elements and self.chance(twice):
            self.repeats = True
            elements.append(elements[0])
        return elements

    def nullable(self, value: T) -> T | None:
        return None if self.chance(10) else value

    # --- names and numbers of this run --------------------------------------------------------

    def topic(self) -> Any:
        return self.mostly(self.pick(*TOPICS), *ODD_NAMES, *PASSING, *PASSING)

    def passing(self) -> Any:
        """A topic that the run makes and deletes."""
        return self.mostly(self.pick(*PASSING), *ODD_NAMES, "alpha")

    def topic_id(self, name: str) -> Any:
        """The id of the topic, if it ever had one."""
        return self.mostly(self.known.topics.get(name, STRANGE_ID), ZERO_ID, STRANGE_ID)

    def partition(self) -> Any:
        return self.mostly(0, 0, 1, 1, 2, 7, -1, INT32_MAX)

    def group(self) -> Any:
        return self.mostly(self.pick(*GROUPS), "", "idle", "idle", "unseen")

    def member(self, group: str) -> Any:
        members = self.known.members.get(group)
        return self.mostly(self.pick(*members) if members else "", "", "stranger")

    def generation(self, group: str) -> Any:
        now = self.known.generations.get(group, 0)
        return self.mostly(now, -1, 0, now + 1, now - 1, INT32_MAX)

    def producer_id(self) -> Any:
        return self.mostly(self.pick(-1, *self.known.producers), 987_654, -2)

    def transactional_id(self) -> Any:
        return self.mostly(self.pick(*TRANSACTIONAL_IDS), "", "unseen")

    def transaction(self, name: str) -> Producer:
        return self.known.transactions.get(name, Producer(-1, -1))

    def broker(self) -> Any:
        return self.mostly(1, 2, 7, -1, 0, INT32_MAX)

    def broker_epoch(self) -> Any:
        return self.mostly(self.known.broker_epoch, -1, 0, INT64_MAX)

    def cluster_id(self) -> Any:
        return self.mostly(self.known.cluster_id, None, "", "AAAAAAAAAAAAAAAAAAAAAA")

    def directory(self) -> Any:
        return self.mostly(self.known.directory, ZERO_ID, STRANGE_ID)

    def timeout(self) -> Any:
        return self.mostly(5000, 5000, 30_000)

    def served(self, versions: Versions) -> Any:
        """Mostly the newest."""
        return self.mostly(versions.newest, *versions)


# What names an element of a request: the first of these that it has.
_NAMES = (
    ("resource_type", "resource_name"),
    ("name", "topic_id"),
    *((name,) for name in ("topic", "path", "partition_index", "partition", "index")),
    *((name,) for name in ("group_id", "entity_type", "transactional_id", "producer_id")),
)


def _name(element: Any) -> str:
    for names in _NAMES:
        if isinstance(element, dict) and names[0] in element:
            named = [element.get(name) for name in names]
            return str(named[:1] if names[0] == "name" and named[0] is not None else named)
    return str(element)


def resolved(value: Any, side: str) -> Any:
    """The same value with each `Both` as that side ("ours" or "kafka") says it."""
    match value:
        case Both():
            return getattr(value, side)
        case Mapping():
            return {key: resolved(inner, side) for key, inner in value.items()}
        case str() | bytes():
            return value
        case Sequence():
            return [resolved(inner, side) for inner in value]
        case _:
            return value
