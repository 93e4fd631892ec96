"""What the cluster of a schedule is like: small, healthy, its timeouts fit for schedules."""

from dataclasses import dataclass

from jepsen_like.scenarios.directed_cluster import WAIT_MS
from jepsen_like.sim.assemblies.cluster.cluster_options import ClusterOptions
from jepsen_like.sim.assemblies.quorum.quorum_options import Options
from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.time.pace import AT_ONCE
from jepsen_like.sim.world.network import LinkFaults

__all__ = ["ClusterSettings", "ZkSettings"]

_VARIED_US = 300  # how much a message or a sync takes more, on average, with a seed


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """As in `ClusterOptions`."""

    brokers: int = 3
    controllers: int = 1
    replicas: int = 3
    min_insync_replicas: int = 1
    unclean: bool = False
    lag_time_max_ms: int = 2_000
    idle_interval_ms: int = 0
    delay_us: int = 100
    session_timeout_ms: int = 3_000
    elr: bool = False
    start_ms: int = 30_000  # until all are up: L-BR
    fetch_timeout_ms: int = WAIT_MS  # long: who is told nothing keeps its controller

    def options(self, *, is_varied: bool) -> ClusterOptions:
        varied_us = _VARIED_US if is_varied else 1
        return ClusterOptions(
            quorum=Options(
                voters=self.controllers,
                observers=self.brokers,
                fetch_timeout_ms=self.fetch_timeout_ms,
                request_timeout_ms=3_000,
                links=LinkFaults(delay_us_min=self.delay_us, delay_us_mean=varied_us),
                disks=DiskFaults(sync_us_min=50, sync_us_mean=varied_us),
                turns_us=AT_ONCE,
            ),
            replication_factor=self.replicas,
            min_insync_replicas=self.min_insync_replicas,
            unclean=self.unclean,
            elr=self.elr,
            heartbeat_interval_ms=self.session_timeout_ms // 10,
            session_timeout_ms=self.session_timeout_ms,
            lag_time_max_ms=self.lag_time_max_ms,
            idle_interval_ms=self.idle_interval_ms,
            produce_interval_ms=0,
            client_timeout_ms=WAIT_MS,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkSettings:
    """A cluster of ZooKeeper mode. `design` is a name; `without` switches one field of it off."""

    design: str
    without: str = ""
    brokers: int = 3
    lag_time_max_ms: int = 1000
    session_timeout_ms: int = 1000
    queue_max: int = 1000
    unclean: bool = False
