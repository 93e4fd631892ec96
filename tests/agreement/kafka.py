"""A Kafka in memory, honest or not: logs with transactions and gaps, groups, idempotent producers.

What is sent gets an offset at once, but is read only when its transaction is committed, and so is
what lies behind it. An aborted record leaves a gap, and so does the marker of a transaction. A lie
is one broken promise, at a place that the random generator chooses.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from jepsen_like.histories.history import Value

__all__ = ["KEYS", "Fenced", "Kafka", "Record"]

KEYS = ("a", "b")


class Fenced(Exception):
    """Somebody with a newer epoch has the id, or the group a newer generation."""


@dataclass(slots=True)
class Record:
    offset: int
    value: Value
    is_open: bool = True
    is_there: bool = True


@dataclass
class Kafka:
    random: Random
    lying: float  # the share of promises that are broken
    reads_open: bool = False  # a lie: what is not committed is read
    logs: dict[str, list[Record]] = field(default_factory=lambda: {key: [] for key in KEYS})
    ends: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KEYS, 0))
    epochs: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    generation: int = 1
    offsets: dict[str, int | None] = field(default_factory=lambda: dict.fromkeys(KEYS))
    old_offsets: dict[str, list[int | None]] = field(
        default_factory=lambda: {key: [None] for key in KEYS}
    )
    seen: dict[tuple[int, str], int] = field(default_factory=dict)  # of the old, by a node

    def lies(self, share: float = 1.0) -> bool:
        return self.random.random() < self.lying * share

    def append(self, key: str, value: Value, producer: tuple[int, int] | None = None) -> Record:
        if producer is not None and producer[1] < self.epochs[producer[0]] and not self.lies():
            raise Fenced
        if self.random.random() < 0.1:
            self.ends[key] += 1
        record = Record(self.ends[key], value)
        if self.lies(0.2):
            record.is_there = False
        elif self.lies(0.2) and self.logs[key]:
            record.offset = max(0, record.offset - self.random.choice([1, 2]))
        self.ends[key] = max(self.ends[key], record.offset + 1)
        self.logs[key].append(record)
        self.logs[key].sort(key=lambda each: each.offset)
        return record

    def settle(self, records: Iterable[Record], *, is_committed: bool) -> None:
        for record in [each for each in records if each.is_open]:
            record.is_open = False
            record.is_there &= is_committed or self.lies(0.3)

    def mark(self, key: str) -> None:
        """The end of a transaction, one offset."""
        self.ends[key] += 1

    def readable(self, key: str) -> list[Record]:
        """What lies before the first record whose transaction is open."""
        found: list[Record] = []
        for record in self.logs[key]:
            if record.is_open and not self.reads_open:
                break
            found += [record] if record.is_there and not self.lies(0.1) else []
        return found

    def is_settled(self, key: str) -> bool:
        return not any(record.is_open for record in self.logs[key])

    def end(self, key: str) -> int:
        return max(0, self.ends[key] - (self.random.choice([1, 2]) if self.lies(0.3) else 0))

    def commit(self, offsets: dict[str, int], generation: int) -> None:
        if generation < self.generation and not self.lies():
            raise Fenced
        for key, offset in offsets.items():
            if not self.lies(0.3):
                self.offsets[key] = offset
                self.old_offsets[key].append(offset)

    def committed(self, key: str, node: int | None = None) -> int | None:
        """As the coordinator says, or a node that may be behind it, but does not go back."""
        if self.lies(0.2):
            return self.random.randrange(4)
        old = self.old_offsets[key]
        if node is None and not self.lies(0.2):
            return self.offsets[key]
        least = 0 if node is None or self.lies() else self.seen.get((node, key), 0)
        self.seen[node or 0, key] = at = self.random.randrange(least, len(old))
        return old[at]
