"""Writes histories for tests: what processes did, in the order of the lines."""

from dataclasses import dataclass, field

from jepsen_like.histories.history import Header, History, Kind, Op, Value

__all__ = ["Play"]


@dataclass
class Play:
    """`invoke` and `ok`, `fail`, `info` write a line each; `did` writes an operation at once."""

    workload: str = "log"
    options: dict[str, Value] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)
    _open: dict[int | str, Op] = field(default_factory=dict)

    def invoke(self, process: int | str, f: str, value: Value = None, **extra: Value) -> int:
        self._open[process] = self.line(Kind.INVOKE, process, f, value, None, extra)
        return self._open[process].index

    def ok(self, process: int | str, value: Value = None, **extra: Value) -> int:
        return self._end(Kind.OK, process, value, extra)

    def fail(self, process: int | str, value: Value = None, **extra: Value) -> int:
        return self._end(Kind.FAIL, process, value, extra)

    def info(self, process: int | str, value: Value = None, **extra: Value) -> int:
        return self._end(Kind.INFO, process, value, extra)

    def did(self, process: int | str, f: str, value: Value, result: Value, **extra: Value) -> int:
        self.invoke(process, f, value)
        return self.ok(process, result, **extra)

    def send(self, process: int, key: str, value: Value, offset: int | None) -> int:
        return self.did(process, "send", [["send", key, value]], [["send", key, [offset, value]]])

    def poll(self, process: int, polled: Value, **extra: Value) -> int:
        return self.did(process, "poll", [["poll"]], [["poll", polled]], **extra)

    def read_all(self, process: int, polled: Value) -> int:
        """A fresh reader, from the beginning to the end."""
        self.invoke(process, "assign", list(polled), seek="beginning")
        self.ok(process, list(polled))
        return self.poll(process, polled, caught_up=True)

    def line(
        self,
        kind: Kind,
        process: int | str,
        f: str,
        value: Value,
        error: str | None = None,
        extra: dict[str, Value] | None = None,
    ) -> Op:
        op = Op(
            index=len(self.ops),
            time_ns=1000 * len(self.ops),
            kind=kind,
            process=process,
            f=f,
            value=value,
            error=error,
            extra=extra or {},
        )
        self.ops.append(op)
        return op

    @property
    def history(self) -> History:
        header = Header(workload=self.workload, seed=0, options=self.options)
        return History(header=header, ops=self.ops)

    def _end(self, kind: Kind, process: int | str, value: Value, extra: dict[str, Value]) -> int:
        invoked = self._open.pop(process)
        given = invoked.value if value is None else value
        return self.line(kind, process, invoked.f, given, None, extra).index
