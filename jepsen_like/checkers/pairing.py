"""Columns of numbers: two as one, sorting, finding rows of one in another without a hash table.

Numbers that lie close together are looked up in an array that has a place for each of them, which
costs a few nanoseconds a row; others are sorted. The numbers of pairs lie close together wherever
the second numbers of each first one do, as offsets of a partition.
Source: counting sort, and NumPy's sort and searchsorted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Column",
    "Mask",
    "Pairing",
    "filled",
    "first_rows",
    "is_close",
    "numbered",
    "order_of",
    "positions",
    "running_maximum",
]

Column = NDArray[np.int64]
Mask = NDArray[np.bool_]
Table = TypeVar("Table")
_LARGEST = 1 << 62
_PLACES_A_ROW = 4  # in an array with a place for every number there may be
_PLACES_MIN = 1024
_DIGIT = 16  # bits: NumPy counts such numbers instead of comparing them
_DIGITS_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairing:
    """(a, b) as the one number that sorts like the pair."""

    names: Column | None  # each a, sorted, where they are far apart; else all up to the largest
    begins: Column  # the least number of each a
    lows: Column  # the least b of each a
    size: int  # all numbers are less

    @classmethod
    def of(cls, *columns: Column) -> "Pairing":
        """For these columns, given as a, b, a, b, ...; all of a are 0 or more, of b -1 or more."""
        firsts, seconds = list(columns[::2]), columns[1::2]
        count = 1 + max((int(column.max(initial=-1)) for column in firsts), default=-1)
        names = None
        if not is_close(count, sum(map(len, firsts))):
            names = np.unique(np.concatenate(firsts))
            firsts = [np.searchsorted(names, first) for first in firsts]
            count = len(names)
        lows, highs = np.full(count, _LARGEST), np.full(count, -2)
        for first, second in zip(firsts, seconds, strict=True):
            if len(first):  # rows of one a often stand together
                runs = np.concatenate([[0], np.flatnonzero(first[1:] != first[:-1]) + 1])
                np.minimum.at(lows, first[runs], np.minimum.reduceat(second, runs))
                np.maximum.at(highs, first[runs], np.maximum.reduceat(second, runs))
        widths = np.maximum(highs - lows + 1, 0)
        assert widths.sum(dtype=np.float64) < _LARGEST, "too far apart"
        ends = np.cumsum(widths)
        size = int(ends[-1]) if count else 0
        return cls(names=names, begins=ends - widths, lows=np.where(widths, lows, 0), size=size)

    def pairs(self, first: Column, second: Column) -> Column:
        if self.names is not None:
            first = np.searchsorted(self.names, first)
        shift = self.begins - self.lows
        pairs: Column = second + (shift[first] if len(shift) > 1 else shift[:1])
        return pairs

    def first(self, pairs: Column) -> Column:
        at: Column = self._at(pairs)
        return at if self.names is None else self.names[at]

    def second(self, pairs: Column) -> Column:
        at = self._at(pairs)
        second: Column = pairs - self.begins[at] + self.lows[at]
        return second

    def _at(self, pairs: Column) -> Column:
        return np.searchsorted(self.begins, pairs, side="right") - 1


def is_close(size: int, rows: int) -> bool:
    """Whether an array with a place for each number below `size` is worth it for so many rows."""
    return size <= _PLACES_A_ROW * rows + _PLACES_MIN


def order_of(column: Column) -> Column:
    """As `argsort`, stable; numbers are 0 or more."""
    most = int(column.max(initial=0))
    digits = -(-most.bit_length() // _DIGIT)
    if digits > _DIGITS_MAX:
        return np.argsort(column, kind="stable")
    order = np.argsort(_digit(column, 0), kind="stable")
    for place in range(1, digits):
        order = order[np.argsort(_digit(column, place)[order], kind="stable")]
    return order


def _digit(column: Column, place: int) -> NDArray[np.uint16]:
    return (column >> (_DIGIT * place)).astype(np.uint16)


def positions(column: Column, wanted: Column) -> Column:
    """The first place in `column` of each of `wanted`; -1 where it is missing."""
    if not len(column):
        return np.full(len(wanted), -1, dtype=np.int64)
    size = 1 + max(int(column.max()), int(wanted.max(initial=-1)))
    least = min(int(column.min()), int(wanted.min(initial=0)))
    if least >= 0 and is_close(size, len(column) + len(wanted)):
        return first_rows(column, size)[wanted]
    order = np.argsort(column, kind="stable")
    found = order[np.minimum(np.searchsorted(column[order], wanted), len(column) - 1)]
    return np.where(column[found] == wanted, found, -1)


def first_rows(column: Column, size: int) -> Column:
    """The first row that has each number below `size`; -1: none."""
    rows = np.full(size, -1, dtype=np.int64)
    rows[column[::-1]] = np.arange(len(column) - 1, -1, -1)  # the last to be written stays
    return rows


def numbered(column: Column, size: int) -> tuple[Column, Column]:
    """The distinct numbers, sorted, and the place of each row among them; all are below `size`."""
    if not is_close(size, len(column)):
        return np.unique(column, return_inverse=True)
    is_there = np.zeros(size, dtype=bool)
    is_there[column] = True
    return np.flatnonzero(is_there), (np.cumsum(is_there) - 1)[column]


def filled(table: type[Table], rows: Sequence[Any]) -> Table:
    """A dataclass of columns from rows of as many numbers, nested or one behind the other."""
    names = table.__dataclass_fields__  # type: ignore[attr-defined] # each table is a dataclass
    matrix = np.array(rows, dtype=np.int64).reshape(-1, len(names))
    return table(**{name: np.ascontiguousarray(matrix[:, at]) for at, name in enumerate(names)})


def running_maximum(values: Column, keys: Column) -> tuple[Column, Column]:
    """The greatest value of its key up to each row, and the row that has it; keys ascend."""
    # Every key is lifted above the one before it, so that one pass starts afresh at each.
    lift = keys * (int(values.max(initial=0)) - int(values.min(initial=0)) + 1)
    lifted = values + lift
    running = np.maximum.accumulate(lifted)
    rows = np.maximum.accumulate(np.where(lifted == running, np.arange(len(lifted)), 0))
    return running - lift, rows
