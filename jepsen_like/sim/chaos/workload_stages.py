"""The assemblies of simulated chaos runs: whole clusters, registers, and the designs on ZooKeeper.

Time-outs are multiples of the plan's `unit_ms`, an election's; 500 makes those of a local cluster.
"""

from collections.abc import Iterator, Mapping, Sequence

from broker.zk.by_replicas.held import ReplicaSettings
from jepsen_like.faults.fault import Course, Fault, Injector, cannot, in_force
from jepsen_like.faults.participants import FIRST_ZOOKEEPER
from jepsen_like.sim.assemblies.cluster.cluster import Cluster
from jepsen_like.sim.assemblies.cluster.cluster_faults import StaleBrokers
from jepsen_like.sim.assemblies.cluster.cluster_options import ClusterOptions
from jepsen_like.sim.assemblies.cluster.liveness import (
    brokers_are_up,
    controller_is_active,
    in_sync,
)
from jepsen_like.sim.assemblies.designs.zk_cluster import ZkCluster, ZkOptions
from jepsen_like.sim.assemblies.designs.zk_invariants import ZkInvariants
from jepsen_like.sim.assemblies.quorum.quorum_options import Options
from jepsen_like.sim.assemblies.quorum.simulated_quorum import start_raft, world_of
from jepsen_like.sim.chaos.plan import Plan
from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.ensemble.zk_state import partition_state, topics_in
from jepsen_like.sim.logs.running_replica import RunningReplica
from jepsen_like.sim.world.assembly import Assembly
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.network import LinkFaults
from quorum.core.effects import Core
from quorum.node.confirmed_leadership import ConfirmingMember, ConfirmingRaftNode
from quorum.node.register import Register
from quorum.raft.config import SnapshotSettings
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import Design
from wire.zk.znodes import TopicAssignment, decode_epoch

__all__ = ["LINKS", "ClusterStage", "EnsembleStage", "RegisterQuorum", "ZooKeepers"]


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


class ZooKeepers:
    """Faults of the ensemble: a server dies, and is started again; brokers find no way to any.

    The second is what ends sessions while brokers go on talking to each other and to clients. What
    the proof says was done: the ensemble has no message that could be lost without it.
    """

    def __init__(self, cluster: ZkCluster) -> None:
        self._cluster = cluster

    @property
    def kinds(self) -> Mapping[str, Injector]:
        return {
            "kill-zookeeper": Injector(self.kill),
            "cut-zookeeper": Injector(self.cut),
            "cut-controllers": cannot("no node is a controller alone"),
            "resign": cannot("a controller keeps its role as long as its session"),
            "wipe": cannot("the designs on ZooKeeper rely on replicas that keep what they have"),
        }

    @in_force
    def kill(self, fault: Fault, targets: Sequence[int]) -> Course:
        ensemble = self._cluster.ensemble
        numbers = [node - FIRST_ZOOKEEPER + 1 for node in targets]
        died = [number for number in numbers if ensemble.servers[number].is_up]
        for number in died:
            ensemble.kill(number)
        yield targets
        for number in died:
            if not ensemble.servers[number].is_up:
                ensemble.restart(number)
        return [f"ZooKeeper {number} died" for number in died]

    @in_force
    def cut(self, fault: Fault, targets: Sequence[int]) -> Course:
        hosts = self._cluster.hosts
        cut = {node: hosts[node].incarnation for node in targets if hosts[node].is_up}
        for node in cut:
            self._cluster.cut_session(node)
        yield targets
        for node, incarnation in cut.items():
            if hosts[node].is_up and hosts[node].incarnation == incarnation:
                self._cluster.heal_session(node)
        return [f"node {node} found no way to ZooKeeper" for node in cut]


def _options(plan: Plan, design: Design) -> ZkOptions:
    unit_ms = plan.unit_ms
    return ZkOptions(
        design=design,
        brokers=tuple(range(1, plan.brokers + 1)),
        zookeepers=plan.zookeepers,
        session_timeout_ms=4 * unit_ms,
        lag_time_max_ms=6 * unit_ms,
        agent_wake_ms=4 * unit_ms,
        ack_timeout_ms=6 * unit_ms,
        of_replicas=ReplicaSettings(election_wait_ms=2 * unit_ms, keep_in_sync_ms=6 * unit_ms),
        links=LINKS,
        disks=DiskFaults(sync_us_min=100, sync_us_mean=plan.sync_us),
        judges_logs=plan.judges_invariants,
    )


class EnsembleStage(ZkCluster):
    """Every broker may be the controller."""

    def __init__(self, plan: Plan, design: Design) -> None:
        super().__init__(plan.seed, _options(plan, design))
        self.design = design
        self.zookeepers = tuple(FIRST_ZOOKEEPER + each for each in range(plan.zookeepers))
        self.injectors = ZooKeepers(self).kinds
        if plan.judges_invariants:
            self.world.observe(ZkInvariants(self))

    def missing(self) -> str:
        for node in self.brokers:
            broker = self.broker(node)
            if broker is None or not broker.serves_clients:
                return f"broker {node} does not serve"
        if self.design.has_controller and self.active_controller is None:
            return "nobody is the controller"
        return next(self._incomplete(), "")

    def _incomplete(self) -> Iterator[str]:
        for of, replicas in self._assigned():
            state = partition_state(self.design, of, self.ensemble.data)
            if state is None or state.leader < 0:
                yield f"{of} has no leader"
            elif not self._leads(state.leader, of):
                yield f"{of}: {state.leader} does not know that it leads"
            elif set(state.isr) != set(replicas):
                yield f"{of}: {state.isr} of {replicas} are in sync"

    def _assigned(self) -> Iterator[tuple[TopicPartition, tuple[int, ...]]]:
        for topic, node in topics_in(self.ensemble.tree).items():
            for partition, replicas in TopicAssignment.decode(node.data).partitions.items():
                yield TopicPartition(topic, partition), replicas

    def _leads(self, node: int, of: TopicPartition) -> bool:
        running = self.node(node) if node in self.brokers else None
        return running is not None and running.leads(of)

    @property
    def epoch(self) -> int:
        """The epoch of the controllers; 0 where there are none."""
        data = self.ensemble.data(paths.CONTROLLER_EPOCH)
        return 0 if data is None else decode_epoch(data)
