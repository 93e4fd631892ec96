"""A heap of deadlines by key, for keys whose deadlines often change.

Moving a deadline leaves its old entry in the heap. That entry is dropped when it comes up, as it is
not its key's deadline any more, or when most entries are old: a key that is set a thousand times a
second, for a minute ahead each time, needs no room for all of them.
"""

from collections.abc import Hashable, Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

__all__ = ["Timers"]

_STALE_MIN = 1024  # fewer entries are not worth the sorting

Key = TypeVar("Key", bound=Hashable)


class Timers(Generic[Key]):
    __slots__ = ("_count", "_due_ms", "_heap")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Key]] = []
        self._due_ms: dict[Key, int] = {}
        self._count = 0

    def set(self, key: Key, due_ms: int | None) -> None:
        """The one time of this key; None: none."""
        if due_ms is None:
            self._due_ms.pop(key, None)
        elif self._due_ms.get(key) != due_ms:
            self._due_ms[key] = due_ms
            self._count += 1
            heappush(self._heap, (due_ms, self._count, key))
            if len(self._heap) > _STALE_MIN + 2 * len(self._due_ms):
                due = enumerate(self._due_ms.items())
                self._heap = [(due_ms, number, key) for number, (key, due_ms) in due]
                heapify(self._heap)

    def take_due(self, now_ms: int) -> Iterator[Key]:
        """Each key whose time has come, once; it has no time then."""
        while (due_ms := self.deadline_ms()) is not None and due_ms <= now_ms:
            _, _, key = heappop(self._heap)
            del self._due_ms[key]
            yield key

    def deadline_ms(self) -> int | None:
        while self._heap and self._due_ms.get(self._heap[0][2]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None
