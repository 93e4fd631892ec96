"""Two columns as one, and finding the rows of one column in another: joins without a table.

Source: NumPy's sort and searchsorted.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Pairing", "positions"]

Column = NDArray[np.int64]
_LARGEST = 1 << 62


@dataclass(frozen=True, slots=True)
class Pairing:
    """(a, b) as the one number that sorts like the pair."""

    stride: int

    @classmethod
    def of(cls, *columns: Column) -> "Pairing":
        """For these columns, given as a, b, a, b, ...; all values of b are -1 or more."""
        firsts, seconds = columns[::2], columns[1::2]
        stride = 2 + max((int(column.max(initial=-1)) for column in seconds), default=-1)
        most = 1 + max((int(column.max(initial=-1)) for column in firsts), default=-1)
        assert most * stride < _LARGEST, (most, stride)
        return cls(stride)

    def pairs(self, first: Column, second: Column) -> Column:
        pairs: Column = first * self.stride + second + 1
        return pairs

    def first(self, pairs: Column) -> Column:
        first: Column = pairs // self.stride
        return first

    def second(self, pairs: Column) -> Column:
        second: Column = pairs % self.stride - 1
        return second


def positions(column: Column, wanted: Column) -> Column:
    """Where in `column` each of `wanted` first is; -1 where it is not."""
    if not len(column):
        return np.full(len(wanted), -1, dtype=np.int64)
    order = np.argsort(column, kind="stable")
    found = order[np.minimum(np.searchsorted(column[order], wanted), len(column) - 1)]
    return np.where(column[found] == wanted, found, -1)
