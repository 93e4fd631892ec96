"""The history of a run while it goes on: written as it happens, counted for whoever watches.

An invocation is written before its request leaves, and a completion after its answer came, each in
its turn: so the order of lines is an order of events, and what a checker concludes from it is true.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from jepsen_like.entries import Entry
from jepsen_like.history import Header, Kind, Op, encode_header, encode_op

__all__ = ["Recording"]

_NS = 1_000_000_000


class Recording:
    """Any thread may write; who listens is told of every op in the order of the history."""

    def __init__(self, path: Path, header: Header) -> None:
        self._file = path.open("wb")
        self._file.write(encode_header(header))
        self._file.flush()
        self._lock = threading.Lock()
        self._began_ns = time.monotonic_ns()
        self._next_index = 0
        self.counts: Counter[Kind] = Counter()  # of clients
        self.listeners: list[Callable[[Op], None]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._lock:
            self._file.close()

    def now_ms(self) -> int:
        """Of the run's clock, which begins with the history."""
        return (time.monotonic_ns() - self._began_ns) // 1_000_000

    @property
    def seconds(self) -> float:
        return (time.monotonic_ns() - self._began_ns) / _NS

    def enter(self, entry: Entry) -> Op:
        with self._lock:
            now_ns = time.monotonic_ns() - self._began_ns
            written = entry.at(index=self._next_index, time_ns=now_ns)
            self._next_index += 1
            self._file.write(encode_op(written))
            self._file.flush()
            if isinstance(written.process, int):
                self.counts[written.kind] += 1
            for listener in self.listeners:
                listener(written)
            return written
