"""Rows of transactions that are too large for one worker, as their pieces hand them on.

tag         a row for
projection  what a transaction did to one key: `body` is a `Projection`
malformed   a transaction that makes no sense, without a key: `body` says why, in UTF-8
keys        what is wrong with some keys of a run: `body` is a `KeyFindings`
node        a transaction that has taken place: `source`; `body` is it, without what it did
edge        `source` came before `target`; `body` are the words for it
guess       `source` may have come before `target`
count       transactions of a run: so many, in `count`
doubt       why not all edges of a run are known: `body`, in UTF-8
label       of `target`, as another piece knows it
deep        a run: its labels do not come to rest within a piece
crowded     a run: it has more ties than a worker can hold
tie         an edge whose ends have one `label`; of a target in another piece that is a lower bound
span        the time from `begin` to `end`, in which there may be a cycle
cycles      what was found in a span: `body` is a `Found`
large       a span that is too large for one worker

A node is the call of its transaction, or a number below zero: one that stands for several.
`source_call` and `target_call` are calls, too; of one that stands for several, of the first
transaction behind it. `ret` is of a node; null: it never ended. Edges are in the order of
`key_order` and `edge_order`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pyarrow as pa

from jepsen_like.checkers.isolation_levels import Found
from jepsen_like.checkers.operations import Operation
from spark.schema import filled

__all__ = [
    "ROWS",
    "KeyFindings",
    "Projection",
    "Rows",
    "from_columns",
    "packed",
    "table_of",
    "unpacked",
]

_TEXTS = ("tag", "run", "key")
_NUMBERS = (
    *("source", "source_call", "target", "target_call", "ret", "kind", "key_order", "edge_order"),
    *("count", "label", "begin", "end", "span"),
)
ROWS = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in _TEXTS),
        *(pa.field(name, pa.int64()) for name in _NUMBERS),
        pa.field("body", pa.binary()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """A transaction that does nothing to other keys."""

    operation: Operation
    written: int | None  # the place of its first write among all of its steps


@dataclass(slots=True, kw_only=True)
class KeyFindings:
    """What is wrong with some keys of a run, each judged alone."""

    found: Found = field(default_factory=Found)
    lost_updates: Found = field(default_factory=Found)  # that count where nothing else is wrong
    reads: int = 0
    confirmed: list[int] = field(default_factory=list)  # that are not acknowledged, but were read
    doubts: list[str] = field(default_factory=list)

    def merge(self, other: "KeyFindings") -> None:
        self.found.merge(other.found)
        self.lost_updates.merge(other.lost_updates)
        self.reads += other.reads
        self.confirmed += other.confirmed
        self.doubts += other.doubts


class Rows:
    """Those of batches, one by one. After a MemoryError it goes on where it was, or raises again:
    a generator would end, as if there were no more."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = iter(batches)
        self._batch: pa.RecordBatch | None = None  # the next one
        self._left: Iterator[dict[str, Any]] = iter(())
        self._is_whole = True

    def __iter__(self) -> "Rows":
        return self

    def __next__(self) -> dict[str, Any]:
        while True:
            for row in self._left:
                return row
            if self._batch is None:
                self._batch = self._next_batch()
            self._left = iter(self._batch.to_pylist())
            self._batch = None

    def _next_batch(self) -> pa.RecordBatch:
        if not self._is_whole:
            raise MemoryError
        self._is_whole = False
        try:
            batch = next(self._batches)
        except StopIteration:
            self._is_whole = True
            raise
        self._is_whole = True
        return batch


def packed(body: Any) -> bytes:
    return msgspec.msgpack.encode(body)


def unpacked(body: bytes, kind: Any) -> Any:
    return msgspec.msgpack.decode(body, type=kind)


def from_columns(tag: str, run: str, columns: Mapping[str, Any]) -> pa.Table:
    """At least one column; the others are null."""
    size = len(next(iter(columns.values())))
    return filled(ROWS, size, {"tag": tag, "run": run, **columns})


def table_of(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), ROWS)
