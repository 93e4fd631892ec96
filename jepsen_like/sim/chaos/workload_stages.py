"""The stages of simulated runs: a whole cluster, registers, or a design on ZooKeeper.

A stage knows the roles of its nodes, and what is missing before it is whole again. It knows nothing
of faults and clients.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from broker.broker import Broker
from controller.metadata.image import MetadataImage
from jepsen_like.sim.assemblies.cluster.cluster import Cluster
from jepsen_like.sim.assemblies.cluster.cluster_faults import StaleBrokers
from jepsen_like.sim.assemblies.cluster.cluster_options import ClusterOptions
from jepsen_like.sim.assemblies.cluster.liveness import (
    brokers_are_up,
    controller_is_active,
    in_sync,
)
from jepsen_like.sim.assemblies.quorum.quorum_options import Options
from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.faults.site import Site
from jepsen_like.sim.world.network import LinkFaults
from jepsen_like.sim.world.world import World
from quorum.raft.config import SnapshotSettings

__all__ = ["LINKS", "ClusterStage", "Stage", "Timing", "quorum_options"]

LINKS = LinkFaults(delay_us_min=100, delay_us_mean=400)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Time-outs are multiples of `unit_ms`, an election's; 500 makes those of a local cluster."""

    unit_ms: int
    sync_us: int  # how long a sync takes, on the average


def quorum_options(controllers: int, brokers: int, timing: Timing) -> Options:
    unit_ms = timing.unit_ms
    return Options(
        voters=controllers,
        observers=brokers,
        election_timeout_ms=unit_ms,
        fetch_timeout_ms=2 * unit_ms,
        fetch_max_wait_ms=unit_ms,
        election_backoff_max_ms=unit_ms * 3 // 5,
        request_timeout_ms=2 * unit_ms,
        retry_backoff_ms=max(1, unit_ms // 25),
        shutdown_timeout_ms=4 * unit_ms,
        observers_sync=False,
        links=LINKS,
        disks=DiskFaults(sync_us_min=100, sync_us_mean=timing.sync_us, torn_write=0.5),
        snapshots=SnapshotSettings(bytes_between=20_000, retention_bytes=40_000),
    )


def _cluster_options(controllers: int, brokers: int, timing: Timing) -> ClusterOptions:
    unit_ms = timing.unit_ms
    return ClusterOptions(
        quorum=quorum_options(controllers, brokers, timing),
        heartbeat_interval_ms=unit_ms * 4 // 5,
        session_timeout_ms=4 * unit_ms,
        lag_time_max_ms=6 * unit_ms,
        fetch_wait_ms=unit_ms,
        fetch_backoff_ms=unit_ms // 5,
        checkpoint_interval_ms=10 * unit_ms,
        controlled_shutdown_timeout_ms=6 * unit_ms,
        idle_interval_ms=unit_ms,
        produce_interval_ms=0,
        client_timeout_ms=4 * unit_ms,
        brokers_lose_power=False,
    )


class Stage(Protocol):
    """An assembly that chaos runs on: its `World` has the network, the hosts and the observers."""

    @property
    def world(self) -> World: ...

    @property
    def controllers(self) -> Sequence[int]: ...

    @property
    def brokers(self) -> Sequence[int]: ...

    @property
    def zookeepers(self) -> Sequence[int]:
        """Servers of ZooKeeper, as faults name them."""
        ...

    @property
    def site(self) -> Site:
        """As injectors of faults see it."""
        ...

    def missing(self) -> str:
        """What is not whole yet, for people; "" if nothing is missing."""
        ...

    def active_controller(self) -> int | None: ...

    @property
    def epoch(self) -> int:
        """The newest of the metadata log that a running node knows."""
        ...

    def partition_leaders(self) -> set[int]:
        """Of the workload's partitions, as brokers believe."""
        ...

    def image(self, node: int) -> MetadataImage | None:
        """What the node knows to be committed; None if it cannot say so now."""
        ...

    def broker(self, node: int) -> Broker | None:
        """None if there is none, or it cannot say anything now."""
        ...

    @property
    def digest(self) -> str: ...


class ClusterStage:
    """Controllers and brokers."""

    zookeepers: Sequence[int] = ()

    def __init__(
        self, seed: int, *, controllers: int, brokers: int, timing: Timing, is_judged: bool
    ) -> None:
        self.options = _cluster_options(controllers, brokers, timing)
        self.site = self.cluster = Cluster(seed, self.options, is_judged=is_judged)
        self.world = self.cluster.world
        self.controllers = self.options.controllers
        self.brokers = self.options.brokers
        self._nodes = self.world.nodes
        self.world.observe(StaleBrokers(self.cluster))

    def missing(self) -> str:
        cluster = self.cluster
        return controller_is_active(cluster) or brokers_are_up(cluster) or in_sync(cluster)

    def active_controller(self) -> int | None:
        controller = self.cluster.active_controller()
        return None if controller is None else controller.config.node_id

    @property
    def epoch(self) -> int:
        running = (node for node, host in self._nodes.items() if host.is_up)
        return max((self.cluster.nodes[node].leader.epoch for node in running), default=0)

    def image(self, node: int) -> MetadataImage | None:
        if not self._nodes[node].is_up or self._nodes[node].is_paused:
            return None
        controller, broker = self.cluster.nodes[node].controller, self.broker(node)
        if controller is not None:
            return controller.image
        return None if broker is None else broker.cluster.image

    def broker(self, node: int) -> Broker | None:
        return None if self._nodes[node].is_paused else self.cluster.broker(node)

    def partition_leaders(self) -> set[int]:
        running = {node: self.cluster.broker(node) for node in self.brokers}
        return {
            node for node, broker in running.items() if broker is not None and len(broker.leaders)
        }

    @property
    def digest(self) -> str:
        return self.cluster.digest
