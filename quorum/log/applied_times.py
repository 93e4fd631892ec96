"""When the applications of a node had been given which offset, for the last ten thousand steps.

Decides how much is remembered, and what an offset of which nothing is known is called. Times are
those that the core is told, of this process: after a restart, a log is applied anew.
"""

from bisect import bisect_right
from collections import deque
from enum import Enum
from operator import itemgetter

__all__ = ["STEPS_MAX", "AppliedTimes", "Untimed"]

STEPS_MAX = 10_000  # 80 minutes of an idle log, which gets a no-op every half second; under 2 MB
_next_offset = itemgetter(0)


class Untimed(Enum):
    """Why an offset has no time."""

    NOT_YET = "not applied yet"
    FORGOTTEN = "applied before the oldest step that is remembered"


class AppliedTimes:
    def __init__(self) -> None:
        # (next_offset, now_ms): all before next_offset had been applied then. Both only grow.
        self._steps: deque[tuple[int, int]] = deque(maxlen=STEPS_MAX)

    def note(self, next_offset: int, now_ms: int) -> None:
        """Everything before `next_offset` has been applied, by records or by a snapshot."""
        self._steps.append((next_offset, now_ms))

    @property
    def next_offset(self) -> int:
        """Everything before it has been applied; 0 before the first step."""
        return self._steps[-1][0] if self._steps else 0

    @property
    def oldest(self) -> int:
        """The smallest offset that is not forgotten. The first step of a full memory says only
        where the second begins.
        """
        return self._steps[0][0] if len(self._steps) == STEPS_MAX else 0

    def when(self, offset: int) -> int | Untimed:
        """When it was applied, in the core's milliseconds: the first step that ends behind it."""
        if offset < self.oldest:
            return Untimed.FORGOTTEN
        place = bisect_right(self._steps, offset, key=_next_offset)
        return self._steps[place][1] if place < len(self._steps) else Untimed.NOT_YET
