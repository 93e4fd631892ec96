"""A history of sends and polls as columns: what all checks of the log workload work on.

One row a send, one row a polled record, one row a key of which a reader has seen the end. Keys and
values are numbers here, so that a check is a few NumPy passes over all keys at once, whoever filled
the columns.

What an operation says, and what a session is: see `log_steps`.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, assert_never

import numpy as np

from jepsen_like.checkers.log_steps import UNKNOWN, Ended, LogSteps, Read, Sent, Step
from jepsen_like.checkers.operations import NEVER, Operation, exact
from jepsen_like.checkers.pairing import (
    Column,
    Mask,
    Pairing,
    filled,
    first_rows,
    is_close,
    order_of,
    running_maximum,
)
from jepsen_like.checkers.verdict import place
from jepsen_like.histories.history import Kind, Value

__all__ = [
    "CODES",
    "FAIL",
    "INFO",
    "OK",
    "UNKNOWN",
    "Column",
    "Ends",
    "LogColumns",
    "Mask",
    "Reads",
    "Sends",
    "Values",
    "has_passed",
]

OK, INFO, FAIL = 0, 1, 2
CODES = {Kind.OK: OK, Kind.INFO: INFO, Kind.FAIL: FAIL}


class Values(Protocol):
    """The values by their numbers; nearly none of them is ever asked for."""

    def __getitem__(self, number: int, /) -> Value: ...
    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sends:
    operation: Column  # where in the history: a place, see `verdict`
    key: Column
    process: Column
    call: Column
    ret: Column
    kind: Column
    value: Column
    offset: Column


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reads:
    """In the order in which each poll returned them. Only of polls that are ok."""

    operation: Column
    key: Column
    session: Column
    call: Column
    ret: Column
    value: Column
    offset: Column
    since: Column  # the first offset of a session that sought another place than zero; else UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ends:
    """Where a reader saw a key end, or only that it has caught up (`end` UNKNOWN)."""

    operation: Column
    key: Column
    session: Column
    start: Column  # call of the assignment from the beginning that it read from; else UNKNOWN
    assigned: Column  # where in the history that is
    call: Column
    ret: Column
    end: Column


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Codes:
    """Equal sends and reads have equal numbers; all are less than `size`."""

    sends: Column
    reads: Column
    size: int

    @classmethod
    def of(cls, sends: tuple[Column, Column], reads: tuple[Column, Column]) -> "Codes":
        """Codes pairs of a key and something of it: in that order, the keys one after the other."""
        pairing = Pairing.of(*sends, *reads)
        pairs = pairing.pairs(*sends), pairing.pairs(*reads)
        count = len(pairs[0])
        if is_close(pairing.size, count + len(pairs[1])):
            return cls(sends=pairs[0], reads=pairs[1], size=pairing.size)
        known, codes = np.unique(np.concatenate(pairs), return_inverse=True)
        return cls(sends=codes[:count], reads=codes[count:], size=len(known))


@dataclass(frozen=True, kw_only=True, eq=False)
class LogColumns:
    """Derived columns are made once, for all rules."""

    keys: Sequence[str]  # name of each key
    values: Values  # what was sent as each value
    sends: Sends
    reads: Reads
    ends: Ends

    @cached_property
    def by_value(self) -> Codes:
        sends, reads = self.sends, self.reads
        return Codes.of((sends.key, sends.value), (reads.key, reads.value))

    @cached_property
    def by_offset(self) -> Codes:
        """A send that was told none has one of its own, before all offsets of its key."""
        sends, reads = self.sends, self.reads
        return Codes.of((sends.key, sends.offset), (reads.key, reads.offset))

    @cached_property
    def is_told(self) -> Mask:
        """For each send: was its offset acknowledged?"""
        is_told: Mask = (self.sends.kind == OK) & (self.sends.offset != UNKNOWN)
        return is_told

    @cached_property
    def first_read(self) -> Column:
        """The first row that reads each value; -1: none."""
        return first_rows(self.by_value.reads, self.by_value.size)

    @cached_property
    def unread(self) -> Column:
        """Rows of acknowledged sends that no poll ever returned."""
        is_unread = self.first_read[self.by_value.sends] < 0
        return np.flatnonzero((self.sends.kind == OK) & is_unread)

    @classmethod
    def of(cls, operations: Sequence[Operation]) -> "LogColumns":
        loading = _Loading()
        steps = LogSteps()
        for operation in operations:
            if found := steps.of(operation):
                loading.add(operation, found)
        return cls(
            keys=[str(key) for key in loading.keys],
            values=list(loading.values),
            sends=filled(Sends, loading.sends),
            reads=filled(Reads, loading.reads),
            ends=filled(Ends, loading.ends),
        )

    @cached_property
    def reached(self) -> Column:
        """Rows of the reads that reached furthest (a value at two offsets counts at its first): of
        each key one of those that read from zero, and one of each offset that others read since.

        Sorted by key and by where they began.
        """
        reads, value = self.reads, self.by_value.reads
        lowest = np.full(self.by_value.size, NEVER)
        np.minimum.at(lowest, value, reads.offset)
        first = np.flatnonzero(reads.offset == lowest[value])
        from_zero = first[reads.since[first] == UNKNOWN]
        top = np.full(len(self.keys), UNKNOWN)
        np.maximum.at(top, reads.key[from_zero], reads.offset[from_zero])
        highest = from_zero[reads.offset[from_zero] == top[reads.key[from_zero]]]
        few = np.concatenate([highest, first[reads.since[first] != UNKNOWN]])
        order = few[np.lexsort((-few, reads.offset[few], reads.since[few], reads.key[few]))]
        is_last = np.ones(len(order), dtype=bool)
        is_last[:-1] = (np.diff(reads.key[order]) != 0) | (np.diff(reads.since[order]) != 0)
        return order[is_last]

    @cached_property
    def passing(self) -> Column:
        """For each unread send: a row that read from its offset, or before, to it or beyond.

        -1: none. In the order of `reached`, those that begin at or before an offset are all up to
        some place; for each place the furthest of these is known.
        """
        sends, reads, reached = self.sends, self.reads, self.reached
        passing = np.full(len(self.unread), -1)
        if not len(reached) or not len(self.unread):
            return passing
        key, offset = sends.key[self.unread], sends.offset[self.unread]
        begins = Pairing.of(reads.key[reached], reads.since[reached], key, offset)
        _, at = running_maximum(reads.offset[reached], reads.key[reached])
        place = np.searchsorted(
            begins.pairs(reads.key[reached], reads.since[reached]),
            begins.pairs(key, offset),
            side="right",
        )
        found = np.where(place > 0, reached[at[place - 1]], -1)
        is_passed = (found >= 0) & (offset != UNKNOWN)
        is_passed &= (reads.key[found] == key) & has_passed(reads.offset[found], offset)
        passing[is_passed] = found[is_passed]
        return passing

    @cached_property
    def in_sessions(self) -> Column:
        """Rows of reads that are followed, session by session, as one process read them."""
        followed = np.flatnonzero(self.reads.session != UNKNOWN)
        # Sessions are of one key each; rows stand in the order of the polls, and within them.
        return followed[order_of(self.reads.session[followed])]


def has_passed(read: Column, offset: Column) -> Mask:
    """Must a reader that has read one offset have read what was acknowledged at another?

    At the same one, too: the offset is taken, and the reader found another value there.
    """
    passed: Mask = read >= offset
    return passed


def _no_rows() -> "array[int]":
    """Holds rows of numbers behind one another: as tuples they would take five times the memory."""
    return array("q")


@dataclass(slots=True)
class _Loading:
    keys: dict[Value, int] = field(default_factory=dict)
    values: dict[Value, int] = field(default_factory=dict)
    processes: dict[Value, int] = field(default_factory=dict)
    sends: "array[int]" = field(default_factory=_no_rows)
    reads: "array[int]" = field(default_factory=_no_rows)
    ends: "array[int]" = field(default_factory=_no_rows)

    def add(self, operation: Operation, steps: Sequence[Step]) -> None:
        number, call, ret = place(operation), operation.call, operation.ret
        for step in steps:
            key = _code(self.keys, step.key)
            match step:
                case Sent():
                    process = _code(self.processes, operation.process)
                    value = _code(self.values, step.value)
                    kind = CODES[operation.kind]
                    self.sends.extend((number, key, process, call, ret, kind, value, step.offset))
                case Read():
                    value = _code(self.values, step.value)
                    where = step.offset, step.since
                    self.reads.extend((number, key, step.session, call, ret, value, *where))
                case Ended():
                    began = step.start, step.assigned
                    self.ends.extend((number, key, step.session, *began, call, ret, step.end))
                case other:
                    assert_never(other)


def _code(codes: dict[Value, int], value: Value) -> int:
    told = value if type(value) is int else exact(value)
    return codes.setdefault(told, len(codes))
