"""The processes of a simulated cluster: a controller or a broker on its engine, as shipped.

What `quorumlab.node` composes for a real process is composed here for a simulated one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from broker.broker import Broker
from broker.config import BrokerConfig, GroupConfig
from controller.committed_reads import CommittedReads
from controller.config import SUPPORTED_FEATURES, ControllerConfig
from controller.controller import Controller
from controller.metadata.metadata_version import (
    GROUP_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    OLDEST_SUPPORTED,
    TRANSACTION_VERSION,
)
from jepsen_like.sim.assemblies.cluster.cluster_options import (
    DRAWN_METADATA_VERSION,
    ClusterOptions,
)
from jepsen_like.sim.assemblies.quorum.simulated_quorum import CLUSTER_ID, start_raft
from jepsen_like.sim.logs.running_replica import RunningReplica
from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.world.host import Host
from quorum.core.application import Application
from quorum.node.confirmed_leadership import ConfirmingMember, ConfirmingRaftNode
from quorum.node.member import Member
from quorum.raft.raft_node import RaftNode
from wire.messages.registration import Feature, RegisteredListener
from wire.primitives import random_uuid

__all__ = [
    "BROKER_LISTENER",
    "BrokerOf",
    "ClusterNode",
    "listener",
    "start_broker",
    "start_controller",
]

BROKER_LISTENER = "PLAINTEXT"
_ELR = "eligible.leader.replicas.version"
# Those of Kafka 4.0. What a node supports is in its registration, whose size is in the times of a
# run.
_FEATURES = tuple(
    Feature(name=name, min_supported_version=oldest, max_supported_version=newest)
    for name, oldest, newest in (
        (METADATA_VERSION, OLDEST_SUPPORTED, DRAWN_METADATA_VERSION),
        (KRAFT_VERSION, 0, 1),
        (_ELR, 0, 1),
        (GROUP_VERSION, 0, 1),
        (TRANSACTION_VERSION, 0, 2),
        (_ELR, 0, 1),  # once more: its bytes have always been there
    )
)

_UNVERIFIED = ("transaction.partition.verification.enable", "false")

# The broker that a node has run last; None if it is a controller.
BrokerOf = Callable[[Host], Broker | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNode(RunningReplica):
    """A running process of a controller or a broker."""

    controller: Controller | None = None
    broker: Broker | None = None

    @property
    def applied_offset(self) -> int:
        """Everything before it is in what the node shows of the metadata."""
        if self.broker is not None:
            return self.broker.metadata.published_offset + 1
        assert self.controller is not None
        return self.controller.image.at.offset

    def resign(self, now_ms: int) -> None:
        """As an engine does by itself: what was decided in this turn is written before, and the
        applications know of it before anything else comes in.
        """
        self.member.settle(now_ms)
        self.raft.resign(now_ms)
        self.member.settle(now_ms)

    def shut_down(self, now_ms: int) -> None:
        if self.broker is None:
            RunningReplica.shut_down(self, now_ms)
        else:
            self.broker.begin_shutdown(now_ms)


def _features(options: ClusterOptions) -> tuple[Feature, ...]:
    is_of_today = options.metadata_version > DRAWN_METADATA_VERSION
    return SUPPORTED_FEATURES if is_of_today else _FEATURES


def listener(node_id: int, name: str, *, port: int = 9092) -> RegisteredListener:
    return RegisteredListener(name=name, host=f"node-{node_id}", port=port, security_protocol=0)


def start_controller(host: Host, options: ClusterOptions, world: VirtualTime) -> ClusterNode:
    """With what its clients ask beside Kafka's protocol."""
    raft = start_raft(host, options.quorum, world, ConfirmingRaftNode)
    random = world.fork(f"controller/{host.node_id}/{host.incarnation}")
    config = ControllerConfig(
        node_id=host.node_id,
        cluster_id=CLUSTER_ID,
        incarnation_id=random_uuid(random),
        listeners=(listener(host.node_id, "CONTROLLER", port=9093),),
        features=_features(options),
        bootstrap_features={
            METADATA_VERSION: options.metadata_version,
            **({_ELR: 1} if options.elr else {}),
            **({GROUP_VERSION: 1} if options.operations.consumer_count else {}),
            **(
                {TRANSACTION_VERSION: options.transaction_version}
                if options.transaction_version
                else {}
            ),
        },
        session_timeout_ms=options.session_timeout_ms,
        heartbeat_interval_ms=options.heartbeat_interval_ms,
        max_idle_interval_ms=options.idle_interval_ms,
        leader_imbalance_check_interval_ms=options.balance_interval_ms,
        unclean_election_interval_ms=5 * options.session_timeout_ms,
        registration_timeout_ms=options.quorum.request_timeout_ms,
        registration_backoff_ms=options.heartbeat_interval_ms,
        registration_backoff_max_ms=options.session_timeout_ms,
    )
    controller = Controller(config, raft, random, host.now_ms)
    applications: dict[str, Application] = {
        "controller": controller,
        "reads": CommittedReads(raft, controller),
    }
    member = ConfirmingMember(raft, applications, snapshots=options.quorum.snapshots)
    return ClusterNode(raft=raft, member=member, controller=controller)


def start_broker(
    host: Host,
    options: ClusterOptions,
    world: VirtualTime,
    *,
    directory_ids: tuple[UUID, ...],
    previous_epoch: int,
) -> ClusterNode:
    """`previous_epoch` is that of the broker's last life if it stopped in order, else -1."""
    raft = start_raft(host, options.quorum, world, RaftNode)
    directories = host.disk.directories
    directories.ids = directory_ids
    config = BrokerConfig(
        node_id=host.node_id,
        cluster_id=CLUSTER_ID,
        listeners=(listener(host.node_id, BROKER_LISTENER),),
        inter_broker_listener_name=BROKER_LISTENER,
        log_dirs=directories.online,
        has_offline_log_dirs=bool(directories.unreadable),
        features=_features(options),
        previous_broker_epoch=previous_epoch,
        heartbeat_interval_ms=options.heartbeat_interval_ms,
        session_timeout_ms=options.session_timeout_ms,
        controlled_shutdown_timeout_ms=options.controlled_shutdown_timeout_ms,
        replica_lag_time_max_ms=options.lag_time_max_ms,
        replica_fetch_wait_max_ms=options.fetch_wait_ms,
        replica_fetch_backoff_ms=options.fetch_backoff_ms,
        replica_socket_timeout_ms=2 * options.fetch_wait_ms,
        high_watermark_checkpoint_interval_ms=options.checkpoint_interval_ms,
        hold_max_ms=options.session_timeout_ms,
        forward_timeout_ms=options.client_timeout_ms,
        auto_create_topics=False,
        log_retention_check_interval_ms=options.operations.retention_check_ms,
        log_cleaner_enable=False,  # the invariants take a batch for what it was when it was written
        groups=GroupConfig(
            initial_rebalance_delay_ms=0,
            min_session_timeout_ms=0,
            consumer_session_timeout_ms=options.client_timeout_ms,
        ),
        properties=() if options.verifies_transactions else (_UNVERIFIED,),
    )
    random = world.fork(f"broker/{host.node_id}/{host.incarnation}")
    broker = Broker.of_quorum(config, raft, random, found=host.disk.found)
    member = Member(raft, {"broker": broker}, snapshots=options.quorum.snapshots)
    return ClusterNode(raft=raft, member=member, broker=broker)
