"""Operations on queues as columns, and what happened to each value: who brought it, who took it.

    enqueue [key, v]      v is never None
    dequeue [key, None]   ok [key, v]; ok [key, None] if the queue was found empty

What failed did nothing. An enqueue of unknown end counts if its value was dequeued; if it was not,
it need not have happened. A dequeue of unknown end may have taken any value, once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jepsen_like.checkers.exactness import exact
from jepsen_like.checkers.operations import NEVER, Operation
from jepsen_like.checkers.reporting import place
from jepsen_like.histories.history import Kind, MalformedHistory, Value

__all__ = ["FAIL", "INFO", "NOTHING", "OK", "Column", "Ends", "QueueColumns", "Taken"]

Column = NDArray[np.int64]
Rows = list[tuple[int, ...]]
OK, INFO, FAIL = 0, 1, 2
_CODES = {Kind.OK: OK, Kind.INFO: INFO, Kind.FAIL: FAIL}
NOTHING = -1  # a value: found empty, or nobody knows; a row: there is none


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ends:
    """One end of the queues: their enqueues, or their dequeues. In the order of their calls."""

    operation: Column  # where in the history: see `reporting`
    key: Column
    value: Column  # equal values of two keys have two numbers
    call: Column
    ret: Column
    kind: Column

    @classmethod
    def of(cls, rows: Rows) -> "Ends":
        matrix = np.array(rows, dtype=np.int64).reshape(len(rows), 6)
        operation, key, value, call, ret, kind = (
            np.ascontiguousarray(matrix[:, at]) for at in range(6)
        )
        return cls(operation=operation, key=key, value=value, call=call, ret=ret, kind=kind)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Taken:
    """What took each value; rows are NOTHING where nothing did, moments of a dequeue then NEVER."""

    key: Column
    enqueue: Column  # row of the first that has not failed
    dequeue: Column  # row of the first that is ok
    enqueue_call: Column
    enqueue_ret: Column
    dequeue_call: Column
    dequeue_ret: Column

    def in_order(self, values: Column) -> Column:
        """Values that were dequeued, as they were: their numbers depend on who gave them."""
        return values[np.argsort(self.dequeue[values])]


@dataclass(frozen=True, kw_only=True, eq=False)
class QueueColumns:
    keys: Sequence[str]
    values: Sequence[Value]
    enqueues: Ends
    dequeues: Ends

    @classmethod
    def of(cls, operations: Sequence[Operation]) -> "QueueColumns":
        keys: dict[str, int] = {}
        values: dict[tuple[int, Value], int] = {}
        tables: dict[str, Rows] = {"enqueue": [], "dequeue": []}
        for each in operations:
            if each.f not in tables:
                raise MalformedHistory(f"operation {each.index}: a queue has no {each.f!r}")
            key, value = _told(each)
            number = keys.setdefault(key, len(keys))
            code = NOTHING
            if value is not None:
                code = values.setdefault((number, exact(value)), len(values))
            kind = _CODES[each.kind]
            tables[each.f].append((place(each), number, code, each.call, each.ret, kind))
        return cls(
            keys=list(keys),
            values=[value for _, value in values],
            enqueues=Ends.of(tables["enqueue"]),
            dequeues=Ends.of(tables["dequeue"]),
        )

    @cached_property
    def taken(self) -> Taken:
        enqueues, dequeues, size = self.enqueues, self.dequeues, len(self.values)
        able = np.flatnonzero(enqueues.kind != FAIL)
        took = np.flatnonzero((dequeues.kind == OK) & (dequeues.value != NOTHING))
        enqueue = _first(able, enqueues.value[able], size)
        dequeue = _first(took, dequeues.value[took], size)
        key = np.zeros(size, dtype=np.int64)
        key[enqueues.value], key[dequeues.value[took]] = enqueues.key, dequeues.key[took]
        return Taken(
            key=key,
            enqueue=enqueue,
            dequeue=dequeue,
            enqueue_call=_at(enqueues.call, enqueue),
            enqueue_ret=_at(enqueues.ret, enqueue),
            dequeue_call=_at(dequeues.call, dequeue),
            dequeue_ret=_at(dequeues.ret, dequeue),
        )

    @cached_property
    def is_repeated(self) -> NDArray[np.bool_]:
        """For each key: was one of its values enqueued twice?"""
        able = self.enqueues.kind != FAIL
        counts = np.bincount(self.enqueues.value[able], minlength=len(self.values))
        repeated = np.zeros(len(self.keys), dtype=bool)
        repeated[self.taken.key[counts > 1]] = True
        return repeated


def _first(rows: Column, values: Column, size: int) -> Column:
    first = np.full(size, NOTHING, dtype=np.int64)
    first[values[::-1]] = rows[::-1]  # of several writes to one place the last one stays
    return first


def _at(moments: Column, rows: Column) -> Column:
    if not len(moments):
        return np.full(len(rows), NEVER, dtype=np.int64)
    return np.where(rows == NOTHING, NEVER, moments[rows])


def _told(operation: Operation) -> tuple[str, Value]:
    """The key, and the value that was brought or taken."""
    try:
        key, value = operation.argument
        if operation.f == "dequeue":
            value = operation.result[1] if operation.kind is Kind.OK else None
        elif value is None:
            raise ValueError(value)
        exact(value)
    except (IndexError, TypeError, ValueError) as error:
        raise MalformedHistory(
            f"operation {operation.index}: not what an {operation.f} looks like: "
            f"{operation.argument!r:.100} -> {operation.result!r:.100}"
        ) from error
    return str(key), value
