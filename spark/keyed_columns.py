"""Rows of registers and queues as columns: those whose operations each are one plain access."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jepsen_like.checkers.operations import NEVER
from jepsen_like.checkers.pairing import Pairing, numbered, order_of
from jepsen_like.checkers.queue_columns import NOTHING, Ends, QueueColumns
from jepsen_like.checkers.verdict import places
from jepsen_like.checkers.zones import Accesses, RegisterColumns
from jepsen_like.histories.history import Value
from spark.columns import Values, kinds, numbers, objects, values

__all__ = ["plain", "queue_columns", "register_columns"]

Column = NDArray[np.int64]
_NEVER_WRITTEN = -1


def plain(rows: pa.Table, *fs: str) -> tuple[pa.Table, pa.Table]:
    """The rows of objects that have only accesses of these kinds, and those of the others."""
    is_access = pc.equal(rows.column("what"), "access")
    fits = pc.and_(is_access, pc.is_in(rows.column("f").cast(pa.string()), pa.array(fs)))
    if pc.all(fits).as_py():
        return rows, rows.slice(0, 0)
    names, key = objects(rows)
    is_mixed = np.zeros(len(names), dtype=bool)
    is_mixed[key[~np.asarray(fits)]] = True
    mixed = pa.array(is_mixed[key])
    return rows.filter(pc.invert(mixed)), rows.filter(mixed)


def register_columns(rows: pa.Table) -> RegisterColumns:
    """Takes rows of reads and writes."""
    is_write = np.asarray(pc.equal(rows.column("f"), "write"))
    is_ok = np.asarray(pc.equal(rows.column("kind"), "ok"))
    has_failed = np.asarray(pc.equal(rows.column("kind"), "fail"))
    says = np.where(is_write, ~has_failed, is_ok)
    names, key = objects(rows)
    found, value = values(rows)
    accesses = Accesses(
        key=key[says],
        value=np.where(value == found.nil, _NEVER_WRITTEN, value)[says],
        call=numbers(rows, "call")[says],
        ret=numbers(rows, "ret", missing=NEVER)[says],
    )
    return RegisterColumns(keys=names, accesses=accesses, is_write=is_write[says])


def queue_columns(rows: pa.Table) -> QueueColumns:
    """Takes rows of enqueues and dequeues."""
    names, key = objects(rows)
    found, value = values(rows)
    value = np.where(value == found.nil, NOTHING, value)
    pairing = Pairing.of(key, value)
    pairs, number = numbered(pairing.pairs(key, value), pairing.size)
    of_pair = pairing.second(pairs)
    is_value = of_pair != NOTHING
    order = order_of(numbers(rows, "call"))
    columns = {
        "operation": places(numbers(rows, "invoked"), numbers(rows, "completed")),
        "key": key,
        "value": np.where(is_value, np.cumsum(is_value) - 1, NOTHING)[number],
        "call": numbers(rows, "call"),
        "ret": numbers(rows, "ret", missing=NEVER),
        "kind": kinds(rows),
    }
    is_enqueue = np.asarray(pc.equal(rows.column("f"), "enqueue"))[order]

    def ends(mine: Column) -> Ends:
        return Ends(**{name: column[mine] for name, column in columns.items()})

    return QueueColumns(
        keys=names,
        values=_Chosen(found, of_pair[is_value]),
        enqueues=ends(order[is_enqueue]),
        dequeues=ends(order[~is_enqueue]),
    )


@dataclass(frozen=True, slots=True)
class _Chosen(Sequence[Value]):
    """Some of the values, again and in an order of their own."""

    values: Values
    codes: Column

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, at: int) -> Value: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Value]: ...
    def __getitem__(self, at: int | slice) -> Value:
        if isinstance(at, slice):
            return _Chosen(self.values, self.codes[at])
        return self.values[int(self.codes[at])]
