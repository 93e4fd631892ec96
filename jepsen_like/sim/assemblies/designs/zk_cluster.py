"""A simulated cluster in ZooKeeper mode: an ensemble, and brokers each of which may be the
controller, all of them shipped cores.

Nothing is judged here but logs: what a run has shown is looked at by whoever runs it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from broker.broker import Broker
from broker.config import BrokerConfig, GroupConfig
from broker.membership.membership import Membership
from broker.partition.partition import LeaderOf, Partition
from broker.parts import BrokerParts
from broker.zk.by_replicas.held import ReplicaSettings
from broker.zk.by_replicas.replica_membership import ReplicaMembership
from broker.zk.lag_limits import Limits
from broker.zk.session_membership import ZkMembership
from controller.config import ControllerConfig
from controller.zk.administrator import ZkAdministrator
from controller.zk.zk_controller import OWNER, ZkController
from controller.zk.zk_controller_config import ZkControllerConfig
from jepsen_like.sim.assemblies.cluster.nodes import BROKER_LISTENER, listener
from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.disks.shipped_disk import NodeDisk
from jepsen_like.sim.ensemble.zk_client import EnsembleClient
from jepsen_like.sim.ensemble.zk_ensemble import Ensemble
from jepsen_like.sim.time.pace import TURNS_US
from jepsen_like.sim.world.assembly import Assembly
from jepsen_like.sim.world.host import Host
from jepsen_like.sim.world.network import LinkFaults
from jepsen_like.sim.world.observer import Observer
from jepsen_like.sim.world.turn_invariants import TurnInvariants
from jepsen_like.sim.world.world import World
from quorum.core.effects import Core, Effect, Trace
from quorum.core.log_state import FoundLog
from quorum.zookeeper.zk_effects import ask_by, session_hearer
from quorum.zookeeper.zk_member import ZkMember
from wire.primitives import ZERO_UUID
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import Design, Truncation
from wire.zk.session import Session

__all__ = ["PATIENCE", "ZkCluster", "ZkNode", "ZkOptions"]

_EVENTS_MAX = 2_000_000
PATIENCE = ReplicaSettings(  # of schedules
    election_wait_ms=500, keep_in_sync_ms=1000, head_start_ms=50, check_interval_ms=200
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkOptions:
    design: Design
    brokers: tuple[int, ...] = (1, 2, 3)
    zookeepers: int = 1
    session_timeout_ms: int = 1000
    lag_time_max_ms: int = 1000
    agent_wake_ms: int = 1000
    ack_timeout_ms: int = 500
    propagation_delay_ms: int = 0
    balance_interval_ms: int = 0
    auto_creates_topics: bool = False
    of_replicas: ReplicaSettings = PATIENCE
    links: LinkFaults = field(default_factory=LinkFaults)
    disks: DiskFaults = field(default_factory=DiskFaults)
    turns_us: tuple[int, ...] = TURNS_US
    judges_logs: bool = True
    is_dataless: bool = False  # brokers that are told of replicas, and have none
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkNode:
    """A running process."""

    member: ZkMember
    beside: ZkController | ZkAdministrator  # the broker
    broker: Broker

    @property
    def controller(self) -> ZkController:
        assert isinstance(self.beside, ZkController), "a design without a controller"
        return self.beside

    @property
    def by_replicas(self) -> ReplicaMembership:
        membership = self.broker.membership
        assert isinstance(membership, ReplicaMembership), membership
        return membership

    def shut_down(self, now_ms: int) -> None:
        self.broker.begin_shutdown(now_ms)

    def resign(self, now_ms: int) -> None:
        raise AssertionError("a controller keeps its role as long as its session")

    def replica(self, of: TopicPartition) -> Partition | None:
        found = self.broker.replicas.find(of.topic, ZERO_UUID, of.partition)
        return found if isinstance(found, Partition) else None

    def leads(self, of: TopicPartition) -> bool:
        """Does it take itself for the leader?"""
        found = self.replica(of)
        return found is not None and isinstance(found.role, LeaderOf)


class ZkCluster(Assembly[ZkNode], Observer):
    """All hosts by node id."""

    performing_kinds = (Trace,)

    def __init__(self, seed: int, options: ZkOptions) -> None:
        # Without epochs, what replaces a record that was taken back has its epoch and offset.
        is_judged = options.judges_logs and options.design.has_leader_epochs
        world = World(
            seed,
            links=options.links,
            disks=options.disks,
            turns_us=options.turns_us,
            prioritises=options.design.prioritises_commands,
            is_judged=is_judged,
        )
        super().__init__(world, lambda _host: (self.ensemble.committed,))
        self.options = options
        self.brokers = self.keeps_power = options.brokers
        self.hosts = world.hosts
        self.ensemble = Ensemble(world, servers=options.zookeepers)
        self.clients: dict[int, EnsembleClient] = {}
        self.traces: list[tuple[int, int, Trace]] = []  # when, where, what
        world.observe(self)
        world.judge(TurnInvariants(prioritises=options.design.prioritises_commands))
        for node_id in options.brokers:
            world.add(node_id, self._start_core, listener=BROKER_LISTENER)

    def start(self) -> None:
        for node_id in self.options.brokers:
            self.hosts[node_id].start()

    def run(self, ms: int) -> None:
        self.world.run_until(self.world.now_us + ms * 1000, events_max=_EVENTS_MAX)

    def run_until(self, is_so: Callable[[], bool], *, ms_max: int = 20_000) -> None:
        """Until something is so. Raises AssertionError if it never is."""

        def missing() -> str:
            return "" if is_so() else "it has not come about in time"

        why = self.world.wait_for(missing, ms_max, events_max=_EVENTS_MAX, every_us=5_000)
        assert not why, why

    # --- what is there ------------------------------------------------------------------------

    @property
    def up(self) -> list[ZkNode]:
        return [self.nodes[node_id] for node_id, host in self.hosts.items() if self._is_up(host)]

    def _is_up(self, host: Host) -> bool:
        return host.is_up and host.node_id in self.nodes

    def node(self, node_id: int) -> ZkNode | None:
        """None while it is down."""
        return self.nodes[node_id] if self._is_up(self.hosts[node_id]) else None

    @property
    def active_controller(self) -> int | None:
        if not self.options.design.has_controller:
            return None
        active = [node for node in self.up if node.controller.is_active]
        newest = max(active, key=lambda node: node.controller.epoch, default=None)
        return None if newest is None else newest.broker.config.node_id

    def broker(self, node_id: int) -> Broker | None:
        running = self.node(node_id)
        return None if running is None else running.broker

    # --- faults -------------------------------------------------------------------------------

    def crash(self, node_id: int, *, power_loss: bool = False) -> None:
        self.hosts[node_id].crash(power_loss=power_loss)

    def restart(self, node_id: int) -> None:
        self.hosts[node_id].start()

    def pause(self, node_id: int) -> None:
        self.hosts[node_id].pause()

    def resume(self, node_id: int) -> None:
        self.hosts[node_id].resume()

    def cut_session(self, node_id: int) -> None:
        """No ZooKeeper can be reached from a broker; the brokers hear each other."""
        self.clients[node_id].cut()

    def heal_session(self, node_id: int) -> None:
        self.clients[node_id].heal()

    # --- processes ----------------------------------------------------------------------------

    def add(self, core: Core) -> Host:
        """A host for a client, started."""
        host = self.world.add_client(core, listener=BROKER_LISTENER)
        host.start()
        return host

    def _start_core(self, host: Host) -> Core:
        node_id, options = host.node_id, self.options
        name = f"{node_id}/{host.incarnation}"
        client = EnsembleClient(
            self.ensemble,
            name,
            timeout_ms=options.session_timeout_ms,
            hear=session_hearer(host),
        )
        self.clients[node_id] = client
        host.accompany(client)
        ask_by(host, client)
        session = Session()
        random = self.world.fork(f"broker/{name}")
        config = _broker_config(node_id, options)
        parts = BrokerParts.of(config, _found(host.disk, config))
        beside, membership = self._of_design(parts, session, random)
        broker = Broker(membership, random)
        member = ZkMember(session, {OWNER: beside, "broker": broker})
        self.nodes[node_id] = ZkNode(member=member, beside=beside, broker=broker)
        self.world.after(0, client.start)
        return member

    def _of_design(
        self, parts: BrokerParts, session: Session, random: Random
    ) -> tuple[ZkController | ZkAdministrator, Membership]:
        options, design, node_id = self.options, self.options.design, parts.config.node_id
        rules = ControllerConfig(node_id=node_id, cluster_id="zk", default_replication_factor=3)
        if not design.has_controller:
            return (
                ZkAdministrator(OWNER, design, rules, session, random),
                ReplicaMembership(
                    parts,
                    design=design,
                    session=session,
                    random=random,
                    settings=options.of_replicas,
                ),
            )
        controller = ZkController(
            ZkControllerConfig(
                node_id=node_id,
                design=design,
                inter_broker_listener_name=BROKER_LISTENER,
                ack_timeout_ms=options.ack_timeout_ms,
                agent_wake_ms=options.agent_wake_ms,
                propagation_delay_ms=options.propagation_delay_ms,
                balance_interval_ms=options.balance_interval_ms,
            ),
            rules,
            session,
            random,
        )
        membership = ZkMembership(
            parts,
            design=design,
            session=session,
            random=random,
            controller_id=lambda: controller.controller_id,
            limits=Limits(max_lag_ms=options.lag_time_max_ms),
        )
        return controller, membership

    # --- Observer -----------------------------------------------------------------------------

    def performing(self, host: Host, effect: Effect) -> None:
        if isinstance(effect, Trace):
            self.traces.append((self.world.now_ms, host.node_id, effect))


def _found(disk: NodeDisk, config: BrokerConfig) -> tuple[FoundLog, ...]:
    """What lies on its disk when a process starts."""
    (directory,) = config.log_dirs
    return tuple(
        FoundLog(log=name, topic_id=stored.topic_id, directory_id=directory)
        for name, stored in disk.logs.items()
    )


def _broker_config(node_id: int, options: ZkOptions) -> BrokerConfig:
    return BrokerConfig(
        node_id=node_id,
        cluster_id="zk",
        listeners=(listener(node_id, BROKER_LISTENER),),
        inter_broker_listener_name=BROKER_LISTENER,
        log_dirs=(UUID(int=node_id << 64 | 0xDA7A),),
        is_dataless=options.is_dataless,
        heartbeat_interval_ms=100,
        session_timeout_ms=options.session_timeout_ms,
        controlled_shutdown_timeout_ms=2000,
        replica_lag_time_max_ms=options.lag_time_max_ms,
        replica_fetch_wait_max_ms=100,
        replica_fetch_backoff_ms=50,
        replica_socket_timeout_ms=500,
        high_watermark_checkpoint_interval_ms=500,
        groups=GroupConfig(initial_rebalance_delay_ms=0),
        follows_by_epoch=options.design.truncation is Truncation.LEADER_EPOCH,
        auto_create_topics=options.auto_creates_topics,
        properties=tuple(options.properties.items()),
    )
