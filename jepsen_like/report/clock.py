"""When each line of a history was written, in microseconds since the start of the run.

A clock that did not begin with the run counts from the first line. Histories of others may have no
times: then a line takes a millisecond, and the page says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jepsen_like.histories.history import Op

__all__ = ["Clock", "Column"]

Column = NDArray[np.int64]
_US_A_LINE = 1000
_NS_A_LINE_AT_LEAST = 1000  # on average: nothing writes faster, so less is no time


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clock:
    at: Column  # of each position in the history; never goes backwards
    is_time: bool  # else it counts lines

    @classmethod
    def of(cls, ops: Sequence[Op]) -> "Clock":
        times = np.fromiter((op.time_ns for op in ops), dtype=np.int64, count=len(ops))
        if len(ops) and times[-1] - times[0] >= _NS_A_LINE_AT_LEAST * (len(ops) - 1):
            begins_with_run = 0 <= times[0] <= times[-1] - times[0]
            start = 0 if begins_with_run else times[0]
            return cls(at=(np.maximum.accumulate(times) - start) // 1000, is_time=True)
        return cls(at=np.arange(len(ops), dtype=np.int64) * _US_A_LINE, is_time=False)

    @property
    def end(self) -> int:
        return int(self.at[-1]) if len(self.at) else 0
