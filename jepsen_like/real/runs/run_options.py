"""The options of a chaos run, and the faults that follow from them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jepsen_like.faults.fault import Role, Scheduled
from jepsen_like.faults.fault_schedule import draw_schedule
from jepsen_like.faults.kinds import kind_and_role
from jepsen_like.real.credentials import NO_CREDENTIALS, Credentials
from jepsen_like.real.layout import Address
from wire.zk.designs import DESIGNS, ZK_KIP497

__all__ = ["KINDS_WITHOUT_PROCESSES", "RunOptions"]

# A proxy between clients and brokers can do these.
KINDS_WITHOUT_PROCESSES = ("partition", "partition-one-way", "delay", "reset", "slow-close")


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
    security: str = ""  # what its clients speak: see `jepsen_like.real.secured`
    servers: Sequence[Address] = ()
    credentials: Credentials = NO_CREDENTIALS  # of `servers`
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

    @property
    def kinds(self) -> Sequence[str]:
        """The kinds of faults without their roles: `kill` of `kill:majority`."""
        return list(dict.fromkeys(kind_and_role(wanted)[0] for wanted in self.faults))

    def schedule(self) -> Sequence[Scheduled]:
        drawn = draw_schedule(
            seed=self.seed,
            kinds=self.faults,
            seconds=self.seconds,
            # In a quorum alone, voters stand in for brokers; with ZooKeeper, brokers for voters.
            combined=not self.brokers or self.has_zookeeper,
            has_controller=DESIGNS.get(self.design, ZK_KIP497).has_controller,
        )
        return [_between_clients_and_a_broker(each) for each in drawn] if self.servers else drawn


def _between_clients_and_a_broker(scheduled: Scheduled) -> Scheduled:
    """The same fault on the way of clients: nothing else of somebody's cluster is within reach."""
    fault = scheduled.fault
    ours = replace(fault, role=Role.ONE_BROKER, parameters={**fault.parameters, "clients": True})
    return replace(scheduled, fault=ours)
