"""One production of a schedule: how it is staged, and the account of what happened in it.

A schedule is played more than once: on the shipped rules and on those with a hole, judged by the
simulator's invariants or left alone, so that only what clients saw can tell (`is_judged`); in the
simulator, and some of them on real processes. The account has the steps with their times, and the
clients' history as `jepsen_like.history` has it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from jepsen_like.history import Kind, Op, Value
from jepsen_like.sim.schedules.stages import ClusterStage, QuorumStage, Stages, ZooKeeperStage

__all__ = ["Production", "Step"]

_STEPS_MAX = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    at_ms: int  # of virtual time
    what: str


@dataclass(slots=True, kw_only=True)
class Production:
    """`settings` overrule those of the schedule; with a `seed`, messages take varying times."""

    stages: Stages
    settings: Mapping[str, Value] = field(default_factory=dict)
    seed: int = 0
    is_judged: bool = True
    steps: list[Step] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    now_us: Callable[[], int] = lambda: 0
    _open: dict[int, Op] = field(default_factory=dict)  # by process
    _processes: int = 0

    def cluster(self, **settings: Value) -> ClusterStage:
        """A stage as the schedule wants it; what the production says of it comes first."""
        return self.stages.cluster(self, **{**settings, **self.settings})

    def quorum(self, **settings: Value) -> QuorumStage:
        return self.stages.quorum(self, **{**settings, **self.settings})

    def zookeeper(self, **settings: Value) -> ZooKeeperStage:
        return self.stages.zookeeper(self, **{**settings, **self.settings})

    def note(self, what: str) -> None:
        if len(self.steps) < _STEPS_MAX:
            self.steps.append(Step(at_ms=self.now_us() // 1000, what=what))

    # --- what clients see ---------------------------------------------------------------

    def invoke(self, f: str, value: Value = None, **extra: Value) -> int:
        """A new process does this; returns its number."""
        process = self._processes
        self._processes += 1
        self._go_on(process, f, value, extra)
        return process

    def go_on(self, process: int, f: str, value: Value = None) -> None:
        """A process that has done something does another thing."""
        assert process not in self._open, process
        self._go_on(process, f, value, {})

    def _go_on(self, process: int, f: str, value: Value, extra: Mapping[str, Value]) -> None:
        self._open[process] = self._add(Kind.INVOKE, process, f, value, None, extra)

    def complete(
        self,
        process: int,
        kind: Kind,
        value: Value = None,
        *,
        error: str | None = None,
        extra: Mapping[str, Value] | None = None,
    ) -> None:
        """`value` None: the one that was invoked."""
        invoked = self._open.pop(process)
        told = invoked.value if value is None else value
        self._add(kind, process, invoked.f, told, error, {**invoked.extra, **(extra or {})})

    def end(self) -> None:
        """What is open is never answered."""
        for process in list(self._open):
            self.complete(process, Kind.INFO, error="no answer")

    def is_open(self, process: int) -> bool:
        return process in self._open

    def _add(
        self,
        kind: Kind,
        process: int,
        f: str,
        value: Value,
        error: str | None,
        extra: Mapping[str, Value],
    ) -> Op:
        op = Op(
            index=len(self.ops),
            time_ns=self.now_us() * 1000,
            kind=kind,
            process=process,
            f=f,
            value=value,
            error=error,
            extra=extra,
        )
        self.ops.append(op)
        return op
