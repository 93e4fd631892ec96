"""The history of a simulated run while it goes on."""

from collections.abc import Mapping

from jepsen_like.history import NEMESIS, Kind, Op, Value
from jepsen_like.sim.world import World
from jepsen_like.workload import Done, Wish

__all__ = ["Recording"]


class Recording:
    """An invocation is entered before its request leaves, a completion after its answer came."""

    def __init__(self, world: World) -> None:
        self.ops: list[Op] = []
        self._world = world
        self._began_us = world.now_us

    def begin(self) -> None:
        """The time of the history begins now."""
        assert not self.ops, len(self.ops)
        self._began_us = self._world.now_us

    def now_ms(self) -> int:
        return (self._world.now_us - self._began_us) // 1000

    def invoke(self, process: int, wish: Wish) -> Op:
        return self._write(Kind.INVOKE, process, wish.f, wish.value, extra=wish.extra)

    def complete(self, process: int, wish: Wish, done: Done) -> Op:
        """What failed, or may have, carries the value that was asked for."""
        value = done.value if done.kind is Kind.OK else wish.value
        extra = {**wish.extra, **done.extra}
        return self._write(done.kind, process, wish.f, value, done.error, extra=extra)

    def nemesis(self, f: str, value: Value, extra: Mapping[str, Value] | None = None) -> Op:
        return self._write(Kind.INFO, NEMESIS, f, value, extra=extra or {})

    def observe(self, node: int, value: Value) -> Op:
        return self._write(Kind.OK, f"node-{node}", "observe", value, extra={})

    def _write(
        self,
        kind: Kind,
        process: int | str,
        f: str,
        value: Value,
        error: str | None = None,
        *,
        extra: Mapping[str, Value],
    ) -> Op:
        op = Op(
            index=len(self.ops),
            time_ns=(self._world.now_us - self._began_us) * 1000,
            kind=kind,
            process=process,
            f=f,
            value=value,
            error=error,
            extra=dict(extra),
        )
        self.ops.append(op)
        return op
