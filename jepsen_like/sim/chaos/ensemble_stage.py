"""A stage in ZooKeeper mode: brokers of one design, each of which may be the controller, and an
ensemble. Time-outs are those of a local cluster of processes, as multiples of one."""

from collections.abc import Iterator, Mapping, Sequence

from broker.broker import Broker
from broker.zk.by_replicas.held import ReplicaSettings
from controller.metadata.image import MetadataImage
from jepsen_like.faults.fault import Injector
from jepsen_like.faults.participants import FIRST_ZOOKEEPER
from jepsen_like.sim.assemblies.designs.virtual_zookeeper import ZooKeepers
from jepsen_like.sim.assemblies.designs.zk_cluster import ZkCluster, ZkOptions
from jepsen_like.sim.assemblies.designs.zk_invariants import ZkInvariants
from jepsen_like.sim.chaos.workload_stages import LINKS, Timing
from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.ensemble.zk_state import partition_state
from jepsen_like.sim.faults.site import Site
from jepsen_like.sim.world.world import Digest
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import Design
from wire.zk.session import Children, GetChildren
from wire.zk.znodes import TopicAssignment, decode_epoch

__all__ = ["EnsembleStage"]


def _options(
    design: Design, brokers: int, zookeepers: int, timing: Timing, *, judges_logs: bool
) -> ZkOptions:
    unit_ms = timing.unit_ms
    return ZkOptions(
        design=design,
        brokers=tuple(range(1, brokers + 1)),
        zookeepers=zookeepers,
        session_timeout_ms=4 * unit_ms,
        lag_time_max_ms=6 * unit_ms,
        agent_wake_ms=4 * unit_ms,
        ack_timeout_ms=6 * unit_ms,
        of_replicas=ReplicaSettings(election_wait_ms=2 * unit_ms, keep_in_sync_ms=6 * unit_ms),
        links=LINKS,
        disks=DiskFaults(sync_us_min=100, sync_us_mean=timing.sync_us),
        judges_logs=judges_logs,
    )


class EnsembleStage:
    controllers: Sequence[int] = ()  # every broker may be the controller

    def __init__(
        self,
        seed: int,
        *,
        design: Design,
        brokers: int,
        zookeepers: int,
        timing: Timing,
        is_judged: bool,
    ) -> None:
        self.design = design
        options = _options(design, brokers, zookeepers, timing, judges_logs=is_judged)
        self.cluster = cluster = ZkCluster(seed, options)
        self.world = cluster.world
        self.brokers = options.brokers
        self.zookeepers = tuple(FIRST_ZOOKEEPER + each for each in range(zookeepers))
        self.keeps_power = self.brokers
        self.injectors: Mapping[str, Injector] = ZooKeepers(cluster).kinds
        self._nodes = self.world.nodes
        self._digest = Digest(self.world, lambda _host: (cluster.ensemble.committed,))
        self.world.observe(self._digest)
        if is_judged:
            self.world.observe(ZkInvariants(cluster))

    # --- what is so -------------------------------------------------------------------------

    def missing(self) -> str:
        for node in self.brokers:
            if not self._is_up(node) or not self.cluster.nodes[node].broker.serves_clients:
                return f"broker {node} does not serve"
        if self.design.has_controller and self.active_controller() is None:
            return "nobody is the controller"
        return next(self._incomplete(), "")

    def _incomplete(self) -> Iterator[str]:
        for of, replicas in self._assigned():
            state = partition_state(self.design, of, self.cluster.ensemble.data)
            if state is None or state.leader < 0:
                yield f"{of} has no leader"
            elif not self._leads(state.leader, of):
                yield f"{of}: {state.leader} does not know that it leads"
            elif set(state.isr) != set(replicas):
                yield f"{of}: {state.isr} of {replicas} are in sync"

    def _assigned(self) -> Iterator[tuple[TopicPartition, tuple[int, ...]]]:
        tree = self.cluster.ensemble.tree
        listed = tree.read(GetChildren(path=paths.TOPICS))
        for topic in listed.names if isinstance(listed, Children) else ():
            data = self.cluster.ensemble.data(paths.topic(topic))
            partitions = {} if data is None else TopicAssignment.decode(data).partitions
            for partition, replicas in partitions.items():
                yield TopicPartition(topic, partition), replicas

    def _is_up(self, node: int) -> bool:
        return self._nodes[node].is_up and node in self.cluster.nodes

    def _leads(self, node: int, of: TopicPartition) -> bool:
        found = self.cluster.node(node) if node in self._nodes else None
        return found is not None and found.leads(of)

    def active_controller(self) -> int | None:
        return self.cluster.active_controller

    @property
    def epoch(self) -> int:
        """Of the controllers; 0 where there are none."""
        data = self.cluster.ensemble.data(paths.CONTROLLER_EPOCH)
        return 0 if data is None else decode_epoch(data)

    def partition_leaders(self) -> set[int]:
        return {node.broker.config.node_id for node in self.cluster.up if len(node.broker.leaders)}

    def image(self, node: int) -> MetadataImage | None:
        broker = self.broker(node)
        return None if broker is None else broker.cluster.image

    def broker(self, node: int) -> Broker | None:
        is_told = self._is_up(node) and not self._nodes[node].is_paused
        return self.cluster.nodes[node].broker if is_told else None

    # --- faults -----------------------------------------------------------------------------

    @property
    def site(self) -> Site:
        return self

    def shut_down(self, node: int) -> None:
        self.cluster.stop(node)

    def resign(self, node: int) -> None:
        raise AssertionError(self.injectors["resign"].why_not)

    def wipe(self, node: int) -> None:
        raise AssertionError(self.injectors["wipe"].why_not)

    @property
    def digest(self) -> str:
        return str(self._digest)
