"""A history that is being written.

Whoever simulates clients enters what they do here. Each has a number: a process, as Jepsen calls
it, which does one thing at a time.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from jepsen_like.histories.history import Kind, Op, Value

__all__ = ["OpenHistory", "Recording"]


@dataclass(slots=True, kw_only=True)
class Recording:
    """All that has been entered, with the time since it began."""

    ops: list[Op] = field(default_factory=list)
    now_us: Callable[[], int] = lambda: 0  # the clock of whoever simulates
    _began_us: int = 0

    def begin(self) -> None:
        """The time of the history begins now."""
        assert not self.ops, len(self.ops)
        self._began_us = self.now_us()

    def now_ms(self) -> int:
        return (self.now_us() - self._began_us) // 1000

    def enter(self, op: Op) -> Op:
        time_ns = (self.now_us() - self._began_us) * 1000
        self.ops.append(replace(op, index=len(self.ops), time_ns=time_ns))
        return self.ops[-1]


@dataclass(slots=True, kw_only=True)
class OpenHistory(Recording):
    """Some operations have begun, and are not answered yet."""

    _open: dict[int, Op] = field(default_factory=dict)  # by process
    _processes: int = 0

    def invoke(self, f: str, value: Value = None, **extra: Value) -> int:
        """A new process does this; returns its number."""
        process = self._processes
        self._processes += 1
        self.go_on(process, f, value, **extra)
        return process

    def go_on(self, process: int, f: str, value: Value = None, **extra: Value) -> None:
        """The process has had its last answer, and does this next."""
        assert process not in self._open, process
        self._open[process] = self.enter(
            Op(kind=Kind.INVOKE, process=process, f=f, value=value, extra=extra)
        )

    def complete(
        self,
        process: int,
        kind: Kind,
        value: Value = None,
        *,
        error: str | None = None,
        extra: Mapping[str, Value] | None = None,
    ) -> None:
        """The process has its answer; `value` None stands for the one that was invoked."""
        invoked = self._open.pop(process)
        told = invoked.value if value is None else value
        both = {**invoked.extra, **(extra or {})}
        self.enter(replace(invoked, kind=kind, value=told, error=error, extra=both))

    def end(self) -> None:
        """What is open now is never answered."""
        for process in list(self._open):
            self.complete(process, Kind.INFO, error="no answer")

    def is_open(self, process: int) -> bool:
        return process in self._open
