"""Operations on queues as columns, and what first in, first out demands of them.

    enqueue [key, v]      v is never None
    dequeue [key, None]   ok [key, v]; ok [key, None] if the queue was found empty

An operation that failed did nothing. An enqueue of unknown end counts if its value was dequeued; if
it was not, it need not have happened. A dequeue of unknown end may have taken any value, once.

Let x come before y if the enqueue of x ended before that of y began. Then:

    order    the dequeue of y must not end before that of x begins; and if y was dequeued, so was x
    empty    a dequeue that found nothing had a moment at which no value was surely there: a value
             is, from the return of its enqueue to the call of its dequeue

With a value of its own for every enqueue, these and what `queues` checks of single values are
exact. A dequeue of unknown end may have taken a value that had to leave: the i-th such value by its
deadline needs the i-th such dequeue by its call. What else these took is not known: then a queue
that was found empty may be left open.

Moments of several queues lie in one column, each queue's in a stretch of its own.
Source: Henzinger, Sezgin and Vafeiadis 2013; Bouajjani, Emmi, Enea and Hamza 2015.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jepsen_like.checkers.log_columns import CODES, FAIL, INFO, OK, Values
from jepsen_like.checkers.operations import NEVER, Operation, exact, malformed, not_of, pair_of
from jepsen_like.checkers.pairing import Column, Mask, filled, first_rows
from jepsen_like.checkers.verdict import place
from jepsen_like.histories.history import Kind, Value

__all__ = ["NOTHING", "Covered", "QueueColumns", "QueueEnds", "QueueOrder", "Spans", "taken_at"]

NOTHING = -1  # a value: found empty, or nobody knows; a row: there is none


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueueEnds:
    """One end of the queues: their enqueues, or their dequeues. In the order of their calls."""

    operation: Column  # where in the history: a place, see `verdict`
    key: Column
    value: Column  # equal values of two keys have two numbers
    call: Column
    ret: Column
    kind: Column


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Taken:
    """The enqueue and the dequeue of each value: NOTHING and NEVER where there is none."""

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
    values: Values
    enqueues: QueueEnds
    dequeues: QueueEnds

    @classmethod
    def of(cls, operations: Sequence[Operation]) -> "QueueColumns":
        keys: dict[str, int] = {}
        values: dict[tuple[int, Value], int] = {}
        tables: dict[str, list[tuple[int, ...]]] = {"enqueue": [], "dequeue": []}
        for each in operations:
            if each.f not in tables:
                raise not_of(each, "a queue")
            key, value = _told(each)
            number = keys.setdefault(key, len(keys))
            code = NOTHING
            if value is not None:
                code = values.setdefault((number, exact(value)), len(values))
            kind = CODES[each.kind]
            tables[each.f].append((place(each), number, code, each.call, each.ret, kind))
        return cls(
            keys=list(keys),
            values=[value for _, value in values],
            enqueues=filled(QueueEnds, tables["enqueue"]),
            dequeues=filled(QueueEnds, tables["dequeue"]),
        )

    @cached_property
    def taken(self) -> Taken:
        enqueues, dequeues, size = self.enqueues, self.dequeues, len(self.values)
        able = np.flatnonzero(enqueues.kind != FAIL)
        took = np.flatnonzero((dequeues.kind == OK) & (dequeues.value != NOTHING))
        enqueue = _rows(able, first_rows(enqueues.value[able], size))
        dequeue = _rows(took, first_rows(dequeues.value[took], size))
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
    def is_repeated(self) -> Mask:
        """For each key: was one of its values enqueued twice?"""
        able = self.enqueues.kind != FAIL
        counts = np.bincount(self.enqueues.value[able], minlength=len(self.values))
        repeated = np.zeros(len(self.keys), dtype=bool)
        repeated[self.taken.key[counts > 1]] = True
        return repeated


def _rows(rows: Column, at: Column) -> Column:
    return np.where(at >= 0, rows[at], NOTHING) if len(rows) else at


def _at(moments: Column, rows: Column) -> Column:
    if not len(moments):
        return np.full(len(rows), NEVER, dtype=np.int64)
    return np.where(rows == NOTHING, NEVER, moments[rows])


def _told(operation: Operation) -> tuple[str, Value]:
    """The key, and the value that was brought or taken."""
    try:
        key, value = pair_of(operation.argument)
        if operation.f == "dequeue":
            value = pair_of(operation.result)[1] if operation.kind is Kind.OK else None
        elif value is None:
            raise ValueError(value)
        exact(value)
    except (TypeError, ValueError) as error:
        raise malformed(operation, f"an {operation.f}") from error
    return str(key), value


def taken_at(deadline: Column, calls: Column, at: Column) -> Column:
    """When a dequeue of unknown end took each value; NOTHING: none can have, in time.

    `at`: which of these calls, in their order, is left for each.
    """
    padded = np.append(calls, NEVER)[np.minimum(at, len(calls))]
    return np.where(padded < deadline, padded, NOTHING)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spans:
    """When values were surely there, by their begin; those that follow one another in groups."""

    value: Column
    begin: Column
    end: Column
    group_end: Column  # until when, without a gap, some value was there

    @classmethod
    def of(cls, value: Column, begin: Column, end: Column) -> "Spans":
        order = np.flatnonzero(begin < end)
        order = order[np.argsort(begin[order], kind="stable")]
        begin, end = begin[order], end[order]
        latest = np.maximum.accumulate(end)
        starts = np.flatnonzero(begin[1:] > latest[:-1]) + 1
        sizes = np.diff(np.concatenate([[0], starts, [len(begin)]]))
        lasts = latest[np.cumsum(sizes) - 1] if len(begin) else latest
        return cls(value=value[order], begin=begin, end=end, group_end=np.repeat(lasts, sizes))

    def cover(self, call: Column, ret: Column) -> Mask:
        """For each interval: is a value there at every moment of it?"""
        if not len(self.begin):
            return np.zeros(len(call), dtype=bool)
        before = np.searchsorted(self.begin, call) - 1
        return (before >= 0) & (self.group_end[np.maximum(before, 0)] > ret)

    def chain(self, call: int, ret: int) -> list[int]:
        """The fewest values that cover it, one after the other."""
        found, until = list[int](), call
        while until <= ret:
            before = int(np.searchsorted(self.begin, until))
            best = int(np.argmax(self.end[:before]))
            assert self.end[best] > until, (call, ret, until)
            found.append(int(self.value[best]))
            until = int(self.end[best])
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Covered:
    """Rows of dequeues that found nothing though something was there: surely, or perhaps."""

    surely: Column
    perhaps: Column
    spans: Spans  # that cover the former


class QueueOrder:
    def __init__(self, columns: QueueColumns) -> None:
        taken, self._columns = columns.taken, columns
        is_there = (taken.enqueue != NOTHING) & (
            (taken.enqueue_ret < NEVER) | (taken.dequeue != NOTHING)
        )
        self.value = np.flatnonzero(is_there)  # of each row
        self._key = taken.key[self.value]
        calls = columns.enqueues.call, columns.dequeues.call
        known = *calls, columns.enqueues.ret, columns.dequeues.ret
        last = max((int(each[each < NEVER].max(initial=0)) for each in known), default=0)
        self._never, self._stretch = last + 1, last + 2
        self._begin = self._moments(taken.enqueue_call[self.value], self._key)
        self._in = self._moments(taken.enqueue_ret[self.value], self._key)
        self._out = self._moments(taken.dequeue_call[self.value], self._key)
        self._gone = self._moments(taken.dequeue_ret[self.value], self._key)
        self._is_taken = taken.dequeue[self.value] != NOTHING

    def _moments(self, moments: Column, key: Column) -> Column:
        lifted: Column = np.minimum(moments, self._never) + key * self._stretch
        return lifted

    @cached_property
    def _deadline(self) -> tuple[Column, Column]:
        """When each value has left at the latest, and the row of the later one that says so."""
        order = np.argsort(self._begin, kind="stable")
        backwards = self._gone[order][::-1]
        earliest = np.minimum.accumulate(backwards)
        places = np.where(backwards == earliest, np.arange(len(order)), 0)
        by = order[::-1][np.maximum.accumulate(places)][::-1]
        earliest = earliest[::-1]
        after = np.searchsorted(self._begin[order], self._in, side="right")
        has_later = after < len(order)
        after = np.minimum(after, max(len(order) - 1, 0))
        # Those of later queues are never earlier than the end of the stretch.
        deadline = np.where(has_later, earliest[after], NEVER) if len(order) else earliest
        return deadline, by[after] if len(order) else by

    def out_of_order(self) -> tuple[Column, Column]:
        """Values that left too late, and for each the later one that was gone before."""
        deadline, by = self._deadline
        rows = np.flatnonzero(self._is_taken & (deadline < self._out))
        rows = rows[np.argsort(self._in[rows])]
        return self.value[rows], self.value[by[rows]]

    def lost(self) -> tuple[Column, Column]:
        """Values that nobody can have taken in time, and for each a later one that was taken."""
        _, by = self._deadline
        rows, taken_at = self._matched
        late = rows[taken_at == NOTHING]
        return self.value[late], self.value[by[late]]

    @cached_property
    def _matched(self) -> tuple[Column, Column]:
        """Rows of values that had to leave and were not seen to; when a dequeue took each."""
        deadline, _ = self._deadline
        rows = np.flatnonzero(~self._is_taken & (deadline < self._out))
        rows = rows[np.lexsort((self._in[rows], deadline[rows]))]
        dequeues = self._columns.dequeues
        unknown = np.flatnonzero(dequeues.kind == INFO)
        calls = np.sort(self._moments(dequeues.call[unknown], dequeues.key[unknown]))
        key = self._key[rows]
        first = np.searchsorted(calls, key * self._stretch)
        rank = np.arange(len(rows)) - np.searchsorted(key, key)
        return rows, taken_at(deadline[rows], calls, first + rank)

    def due(self) -> tuple[Column, Column, Column]:
        """Values that had to leave and were not seen to; the later ones that say so, and when."""
        deadline, by = self._deadline
        rows, _ = self._matched
        until = deadline[rows] - self._key[rows] * self._stretch
        return self.value[rows], self.value[by[rows]], until

    def covered(self) -> Covered:
        dequeues = self._columns.dequeues
        empty = np.flatnonzero((dequeues.kind == OK) & (dequeues.value == NOTHING))
        call = self._moments(dequeues.call[empty], dequeues.key[empty])
        ret = self._moments(dequeues.ret[empty], dequeues.key[empty])
        has_unknown = np.zeros(len(self._columns.keys), dtype=bool)
        has_unknown[dequeues.key[dequeues.kind == INFO]] = True
        sure = self._is_taken | ~has_unknown[self._key]
        spans = Spans.of(self.value[sure], self._in[sure], self._out[sure])
        surely = spans.cover(call, ret)
        rows, taken_at = self._matched
        out = self._out.copy()
        out[rows] = np.where(taken_at == NOTHING, out[rows], taken_at)
        perhaps = Spans.of(self.value, self._in, out).cover(call, ret) & ~surely
        return Covered(surely=empty[surely], perhaps=empty[perhaps], spans=spans)

    def chain(self, covered: Covered, row: int) -> list[int]:
        """The values that were there while this dequeue found nothing."""
        dequeues = self._columns.dequeues
        lift = int(dequeues.key[row]) * self._stretch
        return covered.spans.chain(int(dequeues.call[row]) + lift, int(dequeues.ret[row]) + lift)
