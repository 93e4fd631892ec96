"""Registers on the metadata log: a topic's config is written, and read in two ways.

`read` asks the active controller, which confirms by a majority that it still leads before it tells
what is committed: linearizable. `read-stale` asks one broker with an ordinary DescribeConfigs: what
it tells may be old, but was committed once, and never grows older in the eyes of one process.

A key is a topic, its value an int that is written once, None before any write.
Source: Ongaro's thesis 6.4 (ReadIndex); etcd's robustness tests.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from jepsen_like.histories.history import Op
from jepsen_like.workloads.generator import Turns, Unique, mixed
from jepsen_like.workloads.workload import NewTopic, Wish
from jepsen_like.workloads.workload_options import WorkloadOptions

__all__ = ["CONFIG", "Register"]

CONFIG = "delete.retention.ms"  # takes any int, and means nothing without compaction
_REGISTERS = 4
_WEIGHTS = {"write": 40, "read": 40, "read-stale": 20}
_PAUSES = 2  # as long as a log's: every write goes through the quorum


@dataclass(slots=True)
class Register:
    options: WorkloadOptions
    name: str = "register"
    _values: Unique = field(default_factory=Unique)
    _turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        self._turns = Turns(seed=self.options.seed, mean_ms=_PAUSES * self.options.pause_ms)

    @property
    def processes(self) -> int:
        return self.options.processes

    @property
    def topics(self) -> Sequence[NewTopic]:
        replicas = self.options.replication_factor
        return [NewTopic(name=key, partitions=1, replication_factor=replicas) for key in self.keys]

    @property
    def keys(self) -> Sequence[str]:
        return [f"register-{number}" for number in range(_REGISTERS)]

    def next(self, process: int, now_ms: int) -> Wish | None:
        random = self._turns.take(process, now_ms)
        if random is None:
            return None
        key = random.choice(self.keys)
        f = mixed(random, _WEIGHTS)
        if f == "write":
            return Wish(f="write", value=[key, self._values.next()])
        if f == "read" and not self.options.stale_reads_as_reads:
            return Wish(f="read", value=[key, None])
        # One process always asks the same broker: another one may be further behind.
        broker = self.options.brokers[process % len(self.options.brokers)]
        claimed = "read" if self.options.stale_reads_as_reads else "read-stale"
        return Wish(f=claimed, value=[key, None], extra={"node": broker})

    def completed(self, op: Op) -> None:
        """What comes next does not depend on it."""

    def final(self, process: int) -> Sequence[Wish]:
        return [Wish(f="read", value=[key, None]) for key in self.keys]
