"""What every workload is told of the cluster that it shall work on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jepsen_like.histories.history import Value

__all__ = ["WorkloadOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadOptions:
    """Goes into the header of the history, so that the same run can be made again."""

    seed: int
    brokers: Sequence[int] = (1, 2, 3)
    controllers: Sequence[int] = (101, 102, 103)
    processes: int = 6
    partitions: int = 6
    replicas: int = 3  # of a partition, at most: there may be fewer brokers
    pause_ms: int = 20  # of a process between two operations, on the average
    idempotent: bool = True  # producers
    # A mistake that the checker must catch; only tests set it.
    stale_reads_as_reads: bool = False

    @property
    def replication_factor(self) -> int:
        return max(1, min(self.replicas, len(self.brokers)))

    def described(self) -> Mapping[str, Value]:
        return {
            "brokers": list(self.brokers),
            "controllers": list(self.controllers),
            "processes": self.processes,
            "partitions": self.partitions,
            "replicas": self.replicas,
            "pause_ms": self.pause_ms,
            "idempotent": self.idempotent,
            "stale_reads_as_reads": self.stale_reads_as_reads,
        }
