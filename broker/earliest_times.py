"""Which logs are to be looked at again, and when: the earliest time noted for a log counts."""

from heapq import heappop, heappush

from broker.waiting import is_worth_compacting

__all__ = ["EarliestTimes"]


class EarliestTimes:
    """The earliest time that was noted for each log since the log was last taken."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, str]] = []
        self._times_ms: dict[str, int] = {}  # any other entry of the heap is void

    def note(self, name: str, at_ms: int) -> None:
        if at_ms < self._times_ms.get(name, at_ms + 1):
            self._times_ms[name] = at_ms
            heappush(self._heap, (at_ms, name))
            if is_worth_compacting(len(self._heap)):  # logs that are gone would stay for days
                self._heap = sorted((at_ms, log) for log, at_ms in self._times_ms.items())

    def forget(self, name: str) -> None:
        self._times_ms.pop(name, None)

    def take(self, before_ms: int) -> list[str]:
        """Those whose time was before that one."""
        taken = []
        while self._heap and self._heap[0][0] < before_ms:
            at_ms, name = heappop(self._heap)
            if self._times_ms.get(name) == at_ms:
                del self._times_ms[name]
                taken.append(name)
        return taken
