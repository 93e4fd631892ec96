"""The contract of a workload: what clients do.

A workload runs unchanged on real processes and in the simulator, since it never touches a client: a
runner asks it what a process shall do next, gives that to the process's client, and tells the
workload how it ended. Whoever runs it has one client a process; a client whose operation ended as
`info` is thrown away, and another takes its place under a new process number.

    runner                     workload                 client of process 3
      |  next(3, now) ---------->|                            |
      |<-------- Wish(f, value)--|                            |
      |  invoke(Wish) ------------------------------------->  |
      |<------------------------------------- Done(kind, ...) |
      |  completed(op) --------->|

Phases: `setup` is done once before; then wishes while faults come and go; when all is healed,
`final` wishes, one list a process, each done to its end. How the history is judged goes by the name
of the workload, which stands in its header: `jepsen_like.checkers.judge`.

Pure, and deterministic: the same seed and the same answers give the same wishes.
Source: jepsen.generator, jepsen.client.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from jepsen_like.histories.history import Kind, Op, Value

__all__ = ["Client", "Done", "NewTopic", "Wish", "Workload"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a process shall do."""

    f: str
    value: Value = None
    extra: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """How it ended: `ok`, `fail` (surely not done) or `info` (nobody knows)."""

    kind: Kind
    value: Value = None
    error: str | None = None
    extra: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """What must be there before a workload begins."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)


class Client(Protocol):
    """One process's way to the cluster, in the thread of that process."""

    def invoke(self, wish: Wish) -> Done:
        """Do it, within the client's own time-out. Raises nothing for what a cluster may say."""
        ...

    def close(self) -> None: ...


class Workload(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def processes(self) -> int:
        """How many clients work at a time."""
        ...

    @property
    def topics(self) -> Sequence[NewTopic]:
        """The topics that `setup` creates."""
        ...

    def next(self, process: int, now_ms: int) -> Wish | None:
        """What `process` shall do now; None: nothing yet, ask again in a few ms."""
        ...

    def completed(self, op: Op) -> None:
        """An operation has ended, in whatever way."""
        ...

    def final(self, process: int) -> Sequence[Wish]:
        """What a process does at the very end, on a healed cluster."""
        ...
