"""What a chaos run is asked to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jepsen_like.real.clients.target import Address

__all__ = ["RunOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """`servers`: a cluster that somebody else runs; else one is started in `directory`."""

    directory: Path
    workload: str = "log"
    faults: Sequence[str] = ("kill", "pause")
    seconds: int = 60  # of the safety phase
    seed: int = 0
    design: str = "quorum"
    engine: str = "native"
    controllers: int = 3  # none in the designs that have ZooKeeper
    zookeepers: int = 1  # in those alone
    brokers: int = 3
    client: str = "confluent"
    idempotent: bool = True
    keep: bool = False  # the data directories of a run without violation, too
    servers: Sequence[Address] = ()
    command: str = ""  # that makes the run again
    # A mistake that the checker must catch; only tests set it.
    stale_reads_as_reads: bool = False

    @property
    def has_zookeeper(self) -> bool:
        return self.design != "quorum"

    @property
    def warm_up_seconds(self) -> int:
        """Without faults: what is done in it is what the floor of throughput is a quarter of."""
        return max(3, min(10, self.seconds // 6))
