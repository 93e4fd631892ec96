"""The stages of simulated runs: a whole cluster, registers, or a design on ZooKeeper.

A stage knows the roles of its nodes, and what is missing before it is whole again. It knows nothing
of faults and clients. Time-outs are multiples of the plan's `unit_ms`, an election's; 500 makes
those of a local cluster.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence

from broker.broker import Broker
from controller.metadata.image import MetadataImage
from jepsen_like.faults.fault import Injector, cannot
from jepsen_like.sim.assemblies.cluster.cluster import Cluster
from jepsen_like.sim.assemblies.cluster.cluster_faults import StaleBrokers
from jepsen_like.sim.assemblies.cluster.cluster_options import ClusterOptions
from jepsen_like.sim.assemblies.cluster.liveness import (
    brokers_are_up,
    controller_is_active,
    in_sync,
)
from jepsen_like.sim.assemblies.quorum.quorum_options import Options
from jepsen_like.sim.assemblies.quorum.simulated_quorum import start_raft
from jepsen_like.sim.chaos.plan import Plan
from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.faults.site import Site
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.network import LinkFaults
from jepsen_like.sim.world.world import Digest, World
from quorum.core.effects import Core
from quorum.node.confirmed_leadership import ConfirmingMember, ConfirmingRaftNode
from quorum.node.member import Member
from quorum.node.register import Register
from quorum.raft.config import SnapshotSettings
from quorum.raft.raft_node import RaftNode
from quorum.raft.roles import Leader

__all__ = ["LINKS", "ClusterStage", "RegisterQuorum", "Stage"]

LINKS = LinkFaults(delay_us_min=100, delay_us_mean=400)


def _quorum_options(plan: Plan, brokers: int) -> Options:
    unit_ms = plan.unit_ms
    return Options(
        voters=plan.controllers,
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
        disks=DiskFaults(sync_us_min=100, sync_us_mean=plan.sync_us, torn_write=0.5),
        snapshots=SnapshotSettings(bytes_between=20_000, retention_bytes=40_000),
    )


def _cluster_options(plan: Plan) -> ClusterOptions:
    unit_ms = plan.unit_ms
    return ClusterOptions(
        quorum=_quorum_options(plan, plan.brokers),
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


class Stage(ABC):
    """An assembly that chaos runs on: its `World` has the network, the hosts and the observers."""

    world: World
    digest: Digest
    controllers: Sequence[int] = ()
    brokers: Sequence[int] = ()
    zookeepers: Sequence[int] = ()  # servers of ZooKeeper, as faults name them

    @property
    @abstractmethod
    def site(self) -> Site:
        """As injectors of faults see it."""

    @abstractmethod
    def missing(self) -> str:
        """What is not whole yet, for people; "" if nothing is missing."""

    @abstractmethod
    def active_controller(self) -> int | None: ...

    @property
    @abstractmethod
    def epoch(self) -> int:
        """The newest of the metadata log that a running node knows."""

    def partition_leaders(self) -> set[int]:
        """The leaders of the workload's partitions, as brokers believe."""
        return set()

    def image(self, node: int) -> MetadataImage | None:
        """What the node knows to be committed; None if it cannot say so now."""
        broker = self.broker(node)
        return None if broker is None else broker.cluster.image

    def broker(self, node: int) -> Broker | None:
        """None if there is none, or it cannot say anything now."""
        return None


class ClusterStage(Stage):
    """Controllers and brokers."""

    def __init__(self, plan: Plan) -> None:
        options = _cluster_options(plan)
        self.cluster = Cluster(plan.seed, options, is_judged=plan.judges_invariants)
        self.world, self.digest = self.cluster.world, self.cluster.digest
        self.controllers, self.brokers = options.controllers, options.brokers
        self._nodes = self.world.nodes
        self.world.observe(StaleBrokers(self.cluster))

    @property
    def site(self) -> Site:
        return self.cluster

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
        controller = self.cluster.nodes[node].controller
        return super().image(node) if controller is None else controller.image

    def broker(self, node: int) -> Broker | None:
        return None if self._nodes[node].is_paused else self.cluster.broker(node)

    def partition_leaders(self) -> set[int]:
        running = {node: self.cluster.broker(node) for node in self.brokers}
        return {
            node for node, broker in running.items() if broker is not None and len(broker.leaders)
        }


class RegisterQuorum(Stage):
    """Voters whose only application is the plain register (`quorum.node.register`): a `Stage`, and
    its `Site`.

    Nothing is judged here but by the history of its clients.
    """

    keeps_power: Collection[int] = ()
    injectors: Mapping[str, Injector] = {
        "wipe": cannot("voters are known by their id alone: without its disk, one could vote twice")
    }

    def __init__(self, plan: Plan) -> None:
        self._options = _quorum_options(plan, 0)
        links, disks = self._options.links, self._options.disks
        self.world = World(plan.seed, links=links, disks=disks, is_judged=False)
        self.controllers = range(1, plan.controllers + 1)
        self._rafts: dict[int, RaftNode] = {}
        self._members: dict[int, Member] = {}
        self.digest = Digest(self.world, lambda host: (self._rafts[host.node_id].end_offset,))
        self.world.observe(self.digest)
        for node_id in self.controllers:
            self.world.add(node_id, self._start_core)

    def _start_core(self, host: Host) -> Core:
        raft = start_raft(host, self._options, self.world, ConfirmingRaftNode)
        applications = {"register": Register(raft)}
        member = ConfirmingMember(raft, applications, snapshots=self._options.snapshots)
        self._rafts[host.node_id], self._members[host.node_id] = raft, member
        return member

    @property
    def site(self) -> Site:
        return self

    @property
    def _running(self) -> list[RaftNode]:
        return [raft for node, raft in self._rafts.items() if self.world.nodes[node].is_up]

    def missing(self) -> str:
        down = [node for node, host in self.world.nodes.items() if not host.is_up]
        if down:
            return f"down: {down}"
        told = {raft.leader for raft in self._running}
        is_agreed = len(told) == 1 and told.pop().leader_id is not None
        return "" if is_agreed else "nobody leads that all know"

    def active_controller(self) -> int | None:
        """The newest leader."""
        leading = [raft for raft in self._running if isinstance(raft.role, Leader)]
        newest = max(leading, key=lambda raft: raft.role.epoch, default=None)
        return None if newest is None else newest.replica.node_id

    @property
    def epoch(self) -> int:
        return max((raft.leader.epoch for raft in self._running), default=0)

    def shut_down(self, node: int) -> None:
        self.world.nodes[node].command(self._members[node].shut_down)

    def resign(self, node: int) -> None:
        self.world.nodes[node].command(self._rafts[node].resign)

    def wipe(self, node: int) -> None:
        raise AssertionError(self.injectors["wipe"].why_not)
