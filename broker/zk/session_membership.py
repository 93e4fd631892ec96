"""Membership by a session with ZooKeeper: registered by a node, commanded by the controller.

Joins the parts; each decides for itself (see its module). Which of them differ between the designs
is said by the `Design`.
"""

from collections.abc import Callable, Mapping
from random import Random

from broker.cluster import Cluster
from broker.isr_rules import EligibleReplicas
from broker.leaders import IsrKeeper
from broker.membership import BrokerParts, Handler
from broker.partition import IsrRules
from broker.zk.alter_isr import AlterIsr
from broker.zk.isr_writes import IsrNotifications, IsrWrites
from broker.zk.lag_limits import LagLimits, Limits
from broker.zk.life import ZkLife
from broker.zk.obeying import Obeying
from broker.zk.view import ReadClusterRequest, View, reading_apart, reading_first
from controller.metadata.delta import MetadataDelta
from controller.zk.zk_metadata import decoded
from quorum.core.effects import Event
from quorum.core.types import NO_EPOCH, Endpoint, LeaderAndEpoch
from quorum.zookeeper.zk_effects import ZkEvent
from quorum.zookeeper.zk_procedures import Procedure, Procedures, one
from wire.zk import control_rpc as rpc
from wire.zk import paths
from wire.zk.designs import Design, IsrWriter, Routing
from wire.zk.session import GetData, Session, SessionChanged, SessionState
from wire.zk.znodes import ReplicaList

__all__ = ["ControllerWhereabouts", "ZkMembership"]

_COMMANDS = (rpc.LeaderAndIsrRequest, rpc.StopReplicaRequest, rpc.UpdateMetadataRequest)


class ControllerWhereabouts:
    kraft_version = 0

    def __init__(self, controller_id: Callable[[], int]) -> None:
        self._controller_id = controller_id
        self._seen: tuple[Cluster, View] | None = None  # None before the broker has joined

    def look_at(self, cluster: Cluster, view: View) -> None:
        self._seen = cluster, view

    @property
    def leader(self) -> LeaderAndEpoch:
        known = self._controller_id()
        return LeaderAndEpoch(known if known >= 0 else None, NO_EPOCH)

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        assert self._seen is not None, "before the broker has joined"
        cluster, view = self._seen
        endpoint = cluster.endpoint(node_id, cluster.config.inter_broker_listener_name)
        if endpoint is None:
            view.miss_broker(node_id)
        return endpoint


class ZkMembership:
    lifecycle: ZkLife
    metadata: View
    isr_keeper: IsrKeeper
    isr_rules: IsrRules
    always_served: tuple[type, ...] = (*_COMMANDS, ReadClusterRequest)

    def __init__(
        self,
        *,
        design: Design,
        session: Session,
        random: Random,
        controller_id: Callable[[], int],
        limits: Limits,
    ) -> None:
        """`controller_id` returns the owner of /controller as last read by this node; -1:
        nobody."""
        self._design = design
        self._session = session
        self._random = random
        self._limits = limits
        self._now_ms = 0
        self.whereabouts = ControllerWhereabouts(controller_id)

    def join(self, broker: BrokerParts) -> None:
        self._broker = broker
        design, config = self._design, broker.config
        self._procedures = Procedures(
            broker.outbox, self._session, resumes=not design.hears_session_at_once
        )
        self.metadata = View(
            design=design,
            cluster=broker.cluster,
            procedures=self._procedures,
            apart=Procedures(broker.outbox, self._session),
            shown=self._shown,
        )
        self.whereabouts.look_at(broker.cluster, self.metadata)
        self.lifecycle = ZkLife(
            self._design,
            broker,
            session=self._session,
            procedures=self._procedures,
            random=self._random,
            recover=self._recover,
            registered=self._registered,
        )
        self._obeying = Obeying(
            design=design,
            node_id=config.node_id,
            outbox=broker.outbox,
            replicas=lambda: broker.replicas,
            view=self.metadata,
            generation=lambda: self.lifecycle.broker_epoch,
        )
        self.isr_keeper = self._keeper(broker)
        self.isr_rules = self._rules(broker)
        self._notifications = IsrNotifications(self._procedures)

    def _keeper(self, broker: BrokerParts) -> IsrKeeper:
        if self._design.isr_writer is IsrWriter.CONTROLLER:
            return AlterIsr(
                node_id=broker.config.node_id,
                broker_epoch=lambda: self.lifecycle.broker_epoch,
                controller=broker.controller,
                timeout_ms=broker.config.session_timeout_ms,
            )
        return IsrWrites(
            design=self._design,
            node_id=broker.config.node_id,
            outbox=broker.outbox,
            procedures=self._procedures,
            controller_epoch=lambda: self._obeying.controller_epoch,
            changed=self._isr_changed,
        )

    def _rules(self, broker: BrokerParts) -> IsrRules:
        if self._design.limits_lag_in_records:
            return LagLimits(self._limits)
        return EligibleReplicas(_AnyPeers(), broker.config.replica_lag_time_max_ms)

    def _recover(self) -> Procedure[None]:
        """on_broker_startup() of seed 000: start the replicas that ZooKeeper says we have."""
        states = yield from self.metadata.read()
        node_id = self._broker.config.node_id
        image = self._broker.cluster.image
        assigned = {
            (topic.name, index)
            for topic_id, index, _ in image.partitions_with(node_id)
            if (topic := image.topic_by_id(topic_id)) is not None
        }
        for of, state in sorted(states.items(), key=lambda item: item[0]):
            is_ours = (of.topic, of.partition) in assigned
            if is_ours or (node_id in state.isr and (yield from self._moves_here(of))):
                assigned.add((of.topic, of.partition))
                self._obeying.obey(of, state, self._now_ms)
        self._broker.replicas.keep_only(assigned, self._now_ms)

    def _moves_here(self, of: rpc.TopicPartition) -> Procedure[bool]:
        """Does the partition move here? Or was its leader only not told that it has moved away?"""
        path = paths.partition_under(paths.PARTITIONS_REASSIGNED, of.topic, of.partition)
        listed = decoded((yield from one(GetData(path=path))), ReplicaList.decode)
        return listed is not None and self._broker.config.node_id in listed.replicas

    def _registered(self) -> None:
        self._obeying.release(self._now_ms)
        if isinstance(self.isr_keeper, IsrWrites) and self._design.hears_session_at_once:
            self.isr_keeper.session_began(self._broker.replicas)
        if self._design.routing is Routing.UPDATE_METADATA:
            self.metadata.read_settings_soon()
        else:
            self._obeying.begin_reading()
            self._procedures.submit("on_broker_startup, again", self._catch_up)

    def _catch_up(self) -> Procedure[None]:
        """Read what was decided after we had read and before we counted as live."""
        states = yield from self.metadata.read()
        node_id = self._broker.config.node_id
        ours = {of: state for of, state in states.items() if node_id in state.replicas}
        self._obeying.has_read(ours, self._now_ms)

    def _shown(self, delta: MetadataDelta) -> None:
        self._broker.show(delta, self._now_ms)

    def _isr_changed(self, of: rpc.TopicPartition) -> None:
        """In seed 000 nobody is told: the controller reads before it decides."""
        if self._design.isr_writer is IsrWriter.LEADER_NOTIFYING:
            self._notifications.changed(of, self._now_ms)

    # --- Membership ---------------------------------------------------------------------------

    def routes(self, routes: Mapping[type, Handler]) -> Mapping[type, Handler]:
        commands: dict[type, Handler] = {
            rpc.LeaderAndIsrRequest: self._obeying.leader_and_isr,
            rpc.StopReplicaRequest: self._obeying.stop_replica,
            rpc.UpdateMetadataRequest: self._obeying.update_metadata,
        }
        commands |= reading_apart(self._session, self.metadata, self._broker.outbox)
        if self._design.routing is Routing.UPDATE_METADATA:
            return {**routes, **commands}
        fresh = reading_first(routes, self._session, self.metadata, lambda: self._now_ms)
        return {**fresh, **commands}

    def receive(self, event: Event, now_ms: int) -> None:
        self._now_ms = now_ms
        assert isinstance(event, ZkEvent), event
        if isinstance(event.event, SessionChanged):
            self._procedures.session_changed()
            self.metadata.session_changed(is_over=event.event.state is SessionState.CLOSED)
            self.lifecycle.session_changed(now_ms)
        elif event.event.path == paths.CONFIG_CHANGES:
            self.metadata.read_settings_soon()

    def tick(self, now_ms: int) -> None:
        self._now_ms = now_ms
        self._notifications.tick(now_ms)

    def deadline_ms(self) -> int | None:
        return self._notifications.deadline_ms()


class _AnyPeers:
    """The leaders of these designs know of no broker but by its fetches."""

    def registered_epoch(self, broker_id: int) -> int | None:
        return None

    def is_active(self, broker_id: int) -> bool:
        return True
