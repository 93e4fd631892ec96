"""The assemblies of simulated chaos runs that have no ZooKeeper: whole clusters, and registers.

Time-outs are multiples of the plan's `unit_ms`, an election's; 500 makes those of a local cluster.
"""

from collections.abc import Mapping

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
from jepsen_like.sim.assemblies.quorum.simulated_quorum import start_raft, world_of
from jepsen_like.sim.chaos.plan import Plan
from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.logs.running_replica import RunningReplica
from jepsen_like.sim.world.assembly import Assembly
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.network import LinkFaults
from quorum.core.effects import Core
from quorum.node.confirmed_leadership import ConfirmingMember, ConfirmingRaftNode
from quorum.node.register import Register
from quorum.raft.config import SnapshotSettings

__all__ = ["LINKS", "ClusterStage", "RegisterQuorum"]

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


class ClusterStage(Cluster):
    """Controllers and brokers."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan.seed, _cluster_options(plan), is_judged=plan.judges_invariants)
        self.world.observe(StaleBrokers(self))

    def missing(self) -> str:
        return controller_is_active(self) or brokers_are_up(self) or in_sync(self)


class RegisterQuorum(Assembly[RunningReplica]):
    """Voters whose only application is the plain register (`quorum.node.register`).

    Nothing is judged here but by the history of its clients.
    """

    injectors: Mapping[str, Injector] = {
        "wipe": cannot("voters are known by their id alone: without its disk, one could vote twice")
    }

    def __init__(self, plan: Plan) -> None:
        self._options = options = _quorum_options(plan, 0)
        world = world_of(plan.seed, options, is_judged=False)
        super().__init__(world, lambda host: (self.nodes[host.node_id].end_offset,))
        self.controllers = options.controllers
        for node_id in self.controllers:
            world.add(node_id, self._start_core)

    def _start_core(self, host: Host) -> Core:
        raft = start_raft(host, self._options, self.world, ConfirmingRaftNode)
        applications = {"register": Register(raft)}
        member = ConfirmingMember(raft, applications, snapshots=self._options.snapshots)
        self.nodes[host.node_id] = RunningReplica(raft=raft, member=member)
        return member

    @property
    def _running(self) -> dict[int, RunningReplica]:
        return {node: each for node, each in self.nodes.items() if self.world.nodes[node].is_up}

    def missing(self) -> str:
        running = self._running
        if down := [node for node in self.controllers if node not in running]:
            return f"down: {down}"
        told = {replica.leader for replica in running.values()}
        is_agreed = len(told) == 1 and told.pop().leader_id is not None
        return "" if is_agreed else "nobody leads that all know"

    @property
    def active_controller(self) -> int | None:
        """The newest leader."""
        epochs = {node: each.leader.epoch for node, each in self._running.items() if each.leads}
        return max(epochs, key=epochs.__getitem__, default=None)

    @property
    def epoch(self) -> int:
        return max((replica.leader.epoch for replica in self._running.values()), default=0)
