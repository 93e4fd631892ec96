"""Rows of transactions that are too large for one worker, as their pieces hand them on.

tag      a row for
step     what a transaction did to one key: `told` is a `Projection`
keys     what is wrong with some keys of a run: `told` is an `OfKeys`
node     a transaction that has taken place: `source`; `told` is it, without what it did
edge     `source` came before `target`; `told` are the words for it
guess    `source` may have come before `target`
count    transactions of a run: so many, in `first`
label    of `target`, as another piece knows it
deep     a run: its labels do not come to rest within a piece
tie      an edge of which both ends have one `label`, or perhaps
span     the time from `begin` to `until`, in which there may be a cycle; `label` is one in it
cycles  what was found in a span: `told` is a `Found`
large    a span of more than one worker can hold

A node is the call of its transaction, or a number below zero: one that stands for several. `begin`
and `until` are the times of the source and of the target: a call, of one that stands for several
the first call behind it. `ret` is of a node; null: it never ended.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pyarrow as pa

from jepsen_like.checkers.isolation_levels import Found
from jepsen_like.checkers.operations import Operation

__all__ = ["ROWS", "OfKeys", "Projection", "filled", "packed", "table_of", "unpacked"]

_TEXTS = ("tag", "run", "key")
_NUMBERS = (
    *("source", "begin", "target", "until", "ret", "kind", "first", "second", "label", "span"),
)
ROWS = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in _TEXTS),
        *(pa.field(name, pa.int64()) for name in _NUMBERS),
        pa.field("told", pa.binary()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """A transaction that does nothing to other keys."""

    operation: Operation
    written: int  # the place of its first write among all of its steps; 0: there is none


@dataclass(slots=True, kw_only=True)
class OfKeys:
    found: Found = field(default_factory=Found)
    lost_updates: Found = field(default_factory=Found)  # that count where nothing else is wrong
    reads: int = 0
    seen: list[int] = field(default_factory=list)  # transactions not known to be ok that were read
    doubts: list[str] = field(default_factory=list)

    def merge(self, other: "OfKeys") -> None:
        self.found.merge(other.found)
        self.lost_updates.merge(other.lost_updates)
        self.reads += other.reads
        self.seen += other.seen
        self.doubts += other.doubts


def packed(told: Any) -> bytes:
    return msgspec.msgpack.encode(told)


def unpacked(told: bytes, kind: Any) -> Any:
    return msgspec.msgpack.decode(told, type=kind)


def filled(tag: str, run: str, columns: Mapping[str, Any]) -> pa.Table:
    """Rows with these columns; the rest is null."""
    count = len(next(iter(columns.values())))
    told = {"tag": pa.repeat(tag, count), "run": pa.repeat(run, count), **columns}
    arrays = [
        pa.array(told[each.name], each.type) if each.name in told else pa.nulls(count, each.type)
        for each in ROWS
    ]
    return pa.Table.from_arrays(arrays, schema=ROWS)


def table_of(rows: Iterable[Mapping[str, Any]] | Sequence[Mapping[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), ROWS)
