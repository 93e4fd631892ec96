"""Requests that wait: for replicas, for data, for the controller. None waits for ever.

Holds deadlines only. What a parked request waits for, and how it is answered, its owner knows.
"""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Protocol

__all__ = ["WAIT_MAX_MS", "Deadlines", "Parked", "is_worth_compacting"]

WAIT_MAX_MS = 300_000  # whatever a client asks for: it may have gone, and nobody would tell us

_COMPACT_FROM = 1024

Expire = Callable[[int], None]  # (now_ms): answer with what there is


class Parked(Protocol):
    """A request that is answered later. `is_done` once it has been."""

    is_done: bool


def is_worth_compacting(count: int) -> bool:
    """Should those that are done be dropped from so many? Each time they have doubled: whoever
    adds one pays for little, even where none is done."""
    return count >= _COMPACT_FROM and count & (count - 1) == 0


class Deadlines:
    """Parked requests by deadline; `quorum.core.parking` scans all, this has thousands a second.

    Those that are done stay until they come up or room is needed.
    """

    __slots__ = ("_count", "_heap", "_max")

    def __init__(self, parked_max: int) -> None:
        self._heap: list[tuple[int, int, Parked, Expire]] = []
        self._count = 0
        self._max = parked_max

    def add(self, parked: Parked, deadline_ms: int, expire: Expire) -> bool:
        """False if too many wait already: the caller then answers at once."""
        if len(self._heap) >= self._max:
            self._heap = [item for item in self._heap if not item[2].is_done]
            heapify(self._heap)
            if len(self._heap) >= self._max:
                return False
        self._count += 1
        heappush(self._heap, (deadline_ms, self._count, parked, expire))
        return True

    def tick(self, now_ms: int) -> None:
        while self._heap and (self._heap[0][0] <= now_ms or self._heap[0][2].is_done):
            _, _, parked, expire = heappop(self._heap)
            if not parked.is_done:
                expire(now_ms)

    def deadline_ms(self) -> int | None:
        while self._heap and self._heap[0][2].is_done:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None
