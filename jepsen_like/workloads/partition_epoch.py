"""The partition epoch as a compare-and-set register: clients speak for leaders and change ISRs.

A write asks the controller, as a partition's leader would by AlterPartition, to change the ISR if
the partition epoch is still the one that was looked up before. An acknowledged write made a new
partition epoch, its `version`: no two may have made the same, and a write that began when another
had ended made a later one. The cluster changes ISRs by itself, too, so that versions have gaps.

The partitions hold no records: any ISR is as good as another, and nothing can be lost.
Source: KIP-497.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from jepsen_like.histories.history import Op
from jepsen_like.workloads.generator import Turns, Unique
from jepsen_like.workloads.workload import NewTopic, Wish
from jepsen_like.workloads.workload_options import WorkloadOptions

__all__ = ["PartitionEpoch"]

TOPIC = "isr"
_PARTITIONS = 2  # few: many writers want the same one
_PAUSES = 2  # as long as a log's: every write goes through the quorum


@dataclass(slots=True)
class PartitionEpoch:
    options: WorkloadOptions
    name: str = "partition-epoch"
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
        return [NewTopic(name=TOPIC, partitions=_PARTITIONS, replication_factor=replicas)]

    def next(self, process: int, now_ms: int) -> Wish | None:
        random = self._turns.take(process, now_ms)
        if random is None:
            return None
        key = f"{TOPIC}-{random.randrange(_PARTITIONS)}"
        return Wish(f="write", value=[key, self._values.next()])

    def completed(self, op: Op) -> None:
        """What comes next does not depend on it."""

    def final(self, process: int) -> Sequence[Wish]:
        return []
