"""Things that became visible one after the other: is there a moment for each, in their order?

Let T(k) be the moment at which place k of an object became visible (an offset of a log, a version
of a register). Operations bound it from below and from above. Moments in the order of the places
exist if and only if, for every k, the greatest lower bound of all places up to k lies before the
upper bound of k: take for T(k) the moment right after that greatest lower bound.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jepsen_like.checkers.operations import NEVER
from jepsen_like.checkers.pairing import Pairing

__all__ = ["Bounds", "Rows", "rows"]

Column = NDArray[np.int64]
Rows = tuple[Column, Column, Column, Column]  # key, place, moment, the operation that says so
_NOBODY = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bounds:
    """Of each place that anybody spoke of, sorted by key and place."""

    key: Column
    place: Column
    lower: Column  # -1: none
    lower_by: Column
    upper: Column  # NEVER: none
    upper_by: Column

    @classmethod
    def of(cls, lower: Rows, upper: Rows) -> "Bounds":
        keys, places = np.concatenate([lower[0], upper[0]]), np.concatenate([lower[1], upper[1]])
        pairing = Pairing.of(keys, places)
        pairs, where = np.unique(pairing.pairs(keys, places), return_inverse=True)
        count, split = len(pairs), len(lower[0])
        low, low_by = _extreme(count, where[:split], lower, is_maximum=True)
        high, high_by = _extreme(count, where[split:], upper, is_maximum=False)
        return cls(
            key=pairing.first(pairs),
            place=pairing.second(pairs),
            lower=low,
            lower_by=low_by,
            upper=high,
            upper_by=high_by,
        )

    def broken(self) -> tuple[Column, Column]:
        """Places without a moment, and for each the earlier place whose lower bound forbids it."""
        # Every key is lifted above the one before it, so that one pass starts afresh at each.
        lift = self.key * (int(self.lower.max(initial=0)) + 2)
        lifted = self.lower + lift
        running = np.maximum.accumulate(lifted)
        places = np.maximum.accumulate(np.where(lifted == running, np.arange(len(lifted)), 0))
        late = np.flatnonzero(running - lift >= self.upper)
        return late, places[late]


def rows(*parts: Rows) -> Rows:
    key, place, moment, by = (np.concatenate([part[at] for part in parts]) for at in range(4))
    return key, place, moment, by


def _extreme(count: int, where: Column, bounds: Rows, *, is_maximum: bool) -> tuple[Column, Column]:
    """Of each place the latest (or earliest) of its bounds, and whose it is."""
    _, _, moments, operations = bounds
    moment = np.full(count, -1 if is_maximum else NEVER, dtype=np.int64)
    by = np.full(count, _NOBODY, dtype=np.int64)
    # Of several writes to one place the last one stays: sort so that the extreme comes last.
    order = np.argsort(moments if is_maximum else -moments, kind="stable")
    moment[where[order]] = moments[order]
    by[where[order]] = operations[order]
    return moment, by
