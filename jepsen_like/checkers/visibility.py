"""Things that became visible one after the other: is there a moment for each, in their order?

Let T(k) be the moment at which place k of an object became visible (an offset of a log, a version
of a register). Operations bound it from below and from above. Moments in the order of the places
exist if and only if, for every k, the greatest lower bound of all places up to k lies before the
upper bound of k: take for T(k) the moment right after that greatest lower bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jepsen_like.checkers.operations import NEVER
from jepsen_like.checkers.pairing import Column, Pairing, is_close, running_maximum

__all__ = ["Bounds", "Rows"]

Rows = tuple[Column, Column, Column, Column]  # key, place, moment, the operation that says so
_NOBODY = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bounds:
    """The bounds of each place that anybody named, sorted by key and place."""

    key: Column
    place: Column
    lower: Column  # -1: none
    lower_by: Column
    upper: Column  # NEVER: none
    upper_by: Column

    @classmethod
    def of(cls, lower: Rows, upper: Rows) -> "Bounds":
        return cls.of_parts([lower], [upper])

    @classmethod
    def of_parts(cls, lower: Sequence[Rows], upper: Sequence[Rows]) -> "Bounds":
        """Each side in as many parts as there are."""
        told = [(part[0], part[1]) for part in (*lower, *upper)]
        pairing = Pairing.of(*(column for pair in told for column in pair))
        known, numbers, size = _numbered([pairing.pairs(*pair) for pair in told], pairing.size)
        split = len(lower)
        low, low_by = _extreme(size, numbers[:split], lower, is_maximum=True)
        high, high_by = _extreme(size, numbers[split:], upper, is_maximum=False)
        places = known if size == pairing.size else np.arange(size)
        return cls(
            key=pairing.first(known),
            place=pairing.second(known),
            lower=low[places],
            lower_by=low_by[places],
            upper=high[places],
            upper_by=high_by[places],
        )

    def broken(self) -> tuple[Column, Column]:
        """Places without a moment, and for each the earlier place whose lower bound forbids it."""
        running, places = running_maximum(self.lower, self.key)
        late = np.flatnonzero(running >= self.upper)
        return late, places[late]


def _numbered(parts: Sequence[Column], size: int) -> tuple[Column, Sequence[Column], int]:
    """Which numbers there are, and the parts and the size, made smaller if few of them are."""
    if is_close(size, sum(map(len, parts))):
        is_there = np.zeros(size, dtype=bool)
        for part in parts:
            is_there[part] = True
        return np.flatnonzero(is_there), parts, size
    known = np.unique(np.concatenate(parts))
    return known, [np.searchsorted(known, part) for part in parts], len(known)


def _extreme(
    size: int, numbers: Sequence[Column], sides: Sequence[Rows], *, is_maximum: bool
) -> tuple[Column, Column]:
    """Finds the latest (or earliest) bound of each number, and whose it is."""
    moment = np.full(size, -1 if is_maximum else NEVER, dtype=np.int64)
    by = np.full(size, _NOBODY, dtype=np.int64)
    extreme = np.maximum if is_maximum else np.minimum
    for number, (_, _, moments, _) in zip(numbers, sides, strict=True):
        extreme.at(moment, number, moments)
    for number, (_, _, moments, operations) in zip(numbers, sides, strict=True):
        mine = np.flatnonzero(moments == moment[number])
        by[number[mine]] = operations[mine]
    return moment, by
