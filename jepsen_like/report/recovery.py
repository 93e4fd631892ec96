"""How long it took after each heal until clients were served again.

Twice: until the first operation was ok, and until a second had half as many as the median of the
seconds without a fault. Other faults may be in force meanwhile; then that is what clients had.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jepsen_like.checkers.log_columns import OK
from jepsen_like.report.bands import Band
from jepsen_like.report.bars import NONE, Bars
from jepsen_like.report.clock import Column

__all__ = ["Recovery", "recoveries"]

_SECOND = 1_000_000
_SHORTEST = 3  # seconds of a run, in which some may be usual
_LEAST = 2  # ok in a second, else half of the median is nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """In microseconds after the heal; None: not before the history ended."""

    first_ok: int | None
    half: int | None


def recoveries(bands: Sequence[Band], bars: Bars, end: int) -> tuple[int, list[Recovery]]:
    """The median of ok operations a second without faults, and of each band what came after."""
    served = np.sort(bars.ret[(bars.outcome == OK) & (bars.completed != NONE)])
    median = _median(bands, served, end)
    return median, [
        Recovery(first_ok=None, half=None)
        if band.end is None
        else Recovery(
            first_ok=_first_ok(served, band.end), half=_half(served, band.end, median, end)
        )
        for band in bands
    ]


def _median(bands: Sequence[Band], served: Column, end: int) -> int:
    """The median of seconds that no fault touches, or of all if there is none. 0: not known."""
    if end < _SHORTEST * _SECOND:
        return 0
    begins = np.arange(0, max(end - _SECOND, 0) + 1, _SECOND)
    counts = _served_in(served, begins)
    quiet = np.ones(len(begins), dtype=bool)
    for band in bands:
        healed = end if band.end is None else band.end
        quiet &= (begins + _SECOND <= band.begin) | (begins >= healed)
    chosen = counts[quiet] if quiet.any() else counts
    return int(np.median(chosen))


def _first_ok(served: Column, healed: int) -> int | None:
    at = int(np.searchsorted(served, healed))
    return int(served[at]) - healed if at < len(served) else None


def _half(served: Column, healed: int, median: int, end: int) -> int | None:
    """A fast second begins at the heal, or where an operation ends that is ok."""
    if median < _LEAST:
        return None
    later = served[np.searchsorted(served, healed) :]
    begins = np.concatenate([np.array([healed]), later])
    begins = begins[begins + _SECOND <= end]
    fast = begins[_served_in(served, begins) * 2 >= median]
    return int(fast[0]) - healed if len(fast) else None


def _served_in(served: Column, begins: Column) -> Column:
    """In the second from each of these on."""
    counts: Column = np.searchsorted(served, begins + _SECOND) - np.searchsorted(served, begins)
    return counts
