"""The side of a node in ZooKeeper mode: a session in the place of a quorum.

Beside its broker the node may become the controller, or, in a design without one, has an
administrator. No other place joins these.
"""

import asyncio
from collections.abc import Mapping
from random import Random

from broker.broker import Broker
from broker.membership.membership import Membership
from broker.parts import BrokerParts
from broker.zk.by_replicas.held import ReplicaSettings
from broker.zk.by_replicas.replica_membership import ReplicaMembership
from broker.zk.lag_limits import Limits
from broker.zk.session_membership import ZkMembership
from broker.zk.view import ReadClusterRequest, ReadClusterResponse, Reading
from controller.config import ControllerConfig
from controller.zk.administrator import ZkAdministrator
from controller.zk.zk_controller import OWNER, ZkController
from controller.zk.zk_controller_config import ZkControllerConfig
from quorum.log.files.file_storage import FileStorage
from quorum.node.directories import DataDirectories
from quorum.node.driver import Driver
from quorum.zookeeper.zk_effects import ask_by, session_hearer
from quorum.zookeeper.zk_member import ZkApplication, ZkMember
from quorum.zookeeper.znode_changes import ZnodeChanges
from quorumlab.config import NodeConfig
from quorumlab.settings import broker_config, controller_config, is_guarded
from wire.zk.designs import Design, Routing
from wire.zk.kazoo_session import KazooSession
from wire.zk.session import Session
from wire.zk.switches import switched_off

__all__ = ["ZkSide"]


class ZkSide:
    """The cores of a node in ZooKeeper mode, and what others may see of them."""

    def __init__(
        self,
        config: NodeConfig,
        design: Design,
        directories: DataDirectories,
        storage: FileStorage,
        random: Random,
    ) -> None:
        self._config = config
        self._design = design
        self.session = Session()
        self.znode_changes = ZnodeChanges()
        self._client: KazooSession | None = None
        self.controller: ZkController | None = None
        rules = controller_config(config, cluster_id=directories.cluster_id, random=random)
        parts = BrokerParts.of(
            broker_config(config, directories, offline=storage.offline), storage.found
        )
        beside: ZkApplication
        membership: Membership
        if design.has_controller:
            beside, membership = self._commanded(parts, rules, random)
        else:
            beside = ZkAdministrator(OWNER, design, rules, self.session, random)
            membership = ReplicaMembership(
                parts,
                design=design,
                session=self.session,
                random=random,
                settings=_replica_settings(config),
            )
        broker = self.broker = Broker(membership, random)
        door = None
        if is_guarded(config):
            from quorumlab.security.authorization import door_of

            door = door_of(config, lambda: broker.cluster.image)
        self.member = ZkMember(self.session, {OWNER: beside, "broker": broker}, door)

    def _commanded(
        self, parts: BrokerParts, rules: ControllerConfig, random: Random
    ) -> tuple[ZkController, ZkMembership]:
        config, design = self._config, self._design
        settings = _controller_config(config, design)
        controller = self.controller = ZkController(settings, rules, self.session, random)
        membership = ZkMembership(
            parts,
            design=design,
            session=self.session,
            random=random,
            controller_id=lambda: controller.controller_id,
            limits=Limits(
                max_lag_records=config.number("replica.lag.max.messages"),
                max_lag_ms=config.number("replica.lag.time.max.ms"),
                min_lag_records=config.number("quorumlab.replica.lag.min.messages"),
            ),
        )
        return controller, membership

    def connect(self, driver: Driver) -> KazooSession:
        """Begin a session, which the driver asks and hears from now on."""
        connect = self._config.text("zookeeper.connect")
        assert connect is not None, "a design of ZooKeeper without one"
        client = self._client = KazooSession(
            connect,
            timeout_ms=self._config.number("zookeeper.session.timeout.ms"),
            hear=session_hearer(driver),
        )
        ask_by(
            driver,
            client,
            lambda asked, result: self.znode_changes.note(asked, result, driver.now_ms()),
        )
        client.start()
        return client

    @property
    def is_told(self) -> bool:
        """Does a controller tell the broker how the cluster is? Else the broker reads ZooKeeper."""
        return self._design.routing is Routing.UPDATE_METADATA

    async def read_cluster(
        self, driver: Driver, topics: tuple[str, ...] | None, *, wait_seconds: float
    ) -> Reading | None:
        """Reads these topics, or all if None. Returns None if ZooKeeper does not answer in time."""
        try:
            async with asyncio.timeout(wait_seconds):
                told = await driver.ask(ReadClusterRequest(topics))
        except TimeoutError:
            return None
        return told.read if isinstance(told, ReadClusterResponse) else None

    def counts(self) -> Mapping[str, int]:
        return {} if self._client is None else self._client.counts()

    @property
    def why_not_ready(self) -> str | None:
        """Returns what keeps the node from its work beyond its broker; None if nothing does."""
        if not self.session.is_connected:
            return f"the session with ZooKeeper is {self.session.state.value}"
        if self.controller is not None and self.controller.controller_id < 0:
            return "no broker is the controller"
        return None

    def facts(self) -> Mapping[str, object]:
        """Has the keys of a quorum's facts, as far as they mean anything here."""
        controller = self.controller
        known = -1 if controller is None else controller.controller_id
        is_active = controller is not None and controller.is_active
        return {
            "role": "leader" if is_active else "follower",
            "leader_id": known if known >= 0 else None,
            "epoch": -1 if controller is None else controller.epoch,
            "is_voter": False,
            "design": self._design.name,
            "without": switched_off(self._design),
            "session": self.session.state.value,
            "session_id": self.session.id,
        }


def _controller_config(config: NodeConfig, design: Design) -> ZkControllerConfig:
    given = config.given.get("unclean.leader.election.enable")
    return ZkControllerConfig(
        node_id=config.node_id,
        design=design,
        inter_broker_listener_name=config.inter_broker_listener,
        ack_timeout_ms=config.number("controller.socket.timeout.ms"),
        agent_wake_ms=config.number("quorumlab.reassignment.wake.ms"),
        balance_interval_ms=(
            config.number("leader.imbalance.check.interval.seconds") * 1000
            if config.flag("auto.leader.rebalance.enable")
            else 0
        ),
        is_unclean_allowed=None if given is None else given.lower() == "true",
        propagation_delay_ms=config.number("quorumlab.isr.propagation.delay.ms"),
    )


def _replica_settings(config: NodeConfig) -> ReplicaSettings:
    """KeepInSyncTime is what later designs call the lag time."""
    return ReplicaSettings(
        election_wait_ms=config.number("quorumlab.leader.election.wait.ms"),
        keep_in_sync_ms=config.number("replica.lag.time.max.ms"),
        max_lag_records=config.number("replica.lag.max.messages"),
        queue_max=config.number("quorumlab.state.queue.max"),
        close_wait_ms=config.number("quorumlab.close.replica.wait.ms"),
        is_unclean_allowed=(
            config.given.get("unclean.leader.election.enable", "true").lower() == "true"
        ),
    )
