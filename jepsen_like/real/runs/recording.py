"""The history of a run while it goes on: written as it happens, counted for whoever watches.

An invocation is written before its request leaves, and a completion after its answer came, each in
its turn: so the order of lines is an order of events, and what a checker concludes from it is true.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from jepsen_like.history import NEMESIS, Header, Kind, Op, Value, encode_header, encode_op
from jepsen_like.workload import Done, Wish

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

    def invoke(self, process: int, wish: Wish) -> Op:
        return self._write(
            Op(
                index=0,
                time_ns=0,
                kind=Kind.INVOKE,
                process=process,
                f=wish.f,
                value=wish.value,
                extra=wish.extra,
            )
        )

    def complete(self, process: int, wish: Wish, done: Done) -> Op:
        """What failed, or may have, carries the value that was asked for."""
        return self._write(
            Op(
                index=0,
                time_ns=0,
                kind=done.kind,
                process=process,
                f=wish.f,
                value=done.value if done.kind is Kind.OK else wish.value,
                error=done.error,
                extra={**wish.extra, **done.extra},
            )
        )

    def sample(self, process: str, f: str, value: Value, extra: Mapping[str, Value]) -> Op:
        """Something that was seen: it has no invocation."""
        return self._write(
            Op(index=0, time_ns=0, kind=Kind.OK, process=process, f=f, value=value, extra=extra)
        )

    def nemesis(self, f: str, value: Value, extra: Mapping[str, Value] | None = None) -> Op:
        return self._write(
            Op(
                index=0,
                time_ns=0,
                kind=Kind.INFO,
                process=NEMESIS,
                f=f,
                value=value,
                extra=extra or {},
            )
        )

    def _write(self, op: Op) -> Op:
        with self._lock:
            now_ns = time.monotonic_ns() - self._began_ns
            written = replace(op, index=self._next_index, time_ns=now_ns)
            self._next_index += 1
            self._file.write(encode_op(written))
            self._file.flush()
            if isinstance(written.process, int):
                self.counts[written.kind] += 1
            for listener in self.listeners:
                listener(written)
            return written
