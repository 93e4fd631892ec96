"""A set whose elements are topics: names are created once, deleted, and listed from every node.

While faults come and go, a list from one node is `read-stale`: it may be old, yet holds nothing
that was never asked for. At the very end every node is asked for a `read`: all that was added and
not removed is there, and nothing that was removed.
Source: Jepsen's set workload.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from jepsen_like.histories.history import Kind, Op
from jepsen_like.workloads.generator import Turns, Unique, mixed
from jepsen_like.workloads.workload import NewTopic, Wish
from jepsen_like.workloads.workload_options import WorkloadOptions

__all__ = ["PREFIX", "TopicSet"]

PREFIX = "element-"  # of the names that count; a cluster may have other topics
_WEIGHTS = {"add": 40, "remove": 25, "read-stale": 35}
_PAUSES = 10  # as long as a log's: a topic is directories and files on its replicas


@dataclass(slots=True)
class TopicSet:
    options: WorkloadOptions
    name: str = "set"
    _names: Unique = field(default_factory=Unique)
    _present: list[str] = field(default_factory=list)  # surely, and nobody removes them yet
    _turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        self._turns = Turns(seed=self.options.seed, mean_ms=_PAUSES * self.options.pause_ms)

    @property
    def processes(self) -> int:
        return self.options.processes

    @property
    def topics(self) -> Sequence[NewTopic]:
        return []

    @property
    def nodes(self) -> Sequence[int]:
        return [*self.options.brokers, *self.options.controllers]

    def next(self, process: int, now_ms: int) -> Wish | None:
        random = self._turns.take(process, now_ms)
        if random is None:
            return None
        f = mixed(random, _WEIGHTS)
        if f == "remove" and self._present:
            chosen = random.randrange(len(self._present))
            return Wish(f="remove", value=self._present.pop(chosen))
        if f == "read-stale":
            return Wish(f="read-stale", extra={"node": random.choice(self.nodes)})
        return Wish(f="add", value=f"{PREFIX}{self._names.next()}")

    def completed(self, op: Op) -> None:
        removed_nothing = op.f == "remove" and op.kind is Kind.FAIL
        if removed_nothing or (op.f == "add" and op.kind is Kind.OK):
            self._present.append(op.value)

    def final(self, process: int) -> Sequence[Wish]:
        own = process % self.processes
        return [
            Wish(f="read", extra={"node": node})
            for index, node in enumerate(self.nodes)
            if index % self.processes == own
        ]
