"""A broker with a session registers as a node of ZooKeeper, and obeys the controller.

The membership joins the parts; each decides for itself (see its module). The `Design` says which of
them differ between the designs.
"""

from collections import deque
from collections.abc import Callable, Mapping
from random import Random

from broker.cluster import Cluster, Incarnation
from broker.membership.controller_channel import ControllerChannel
from broker.membership.membership import Handler
from broker.partition.isr_rules import EligibleReplicas
from broker.partition.leaders import IsrKeeper
from broker.partition.partition import IsrRules
from broker.parts import BrokerParts
from broker.replicas import Replicas
from broker.zk.isr_notifications import IsrNotifications
from broker.zk.isr_requests import IsrRequests
from broker.zk.isr_writes import IsrWrites
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
from wire.primitives import random_uuid
from wire.zk import control_rpc as rpc
from wire.zk import paths
from wire.zk.designs import Design, IsrWriter, Routing
from wire.zk.session import GetData, Session, SessionChanged, SessionState
from wire.zk.znodes import ReplicaList

__all__ = ["ZkMembership"]

_COMMANDS = (rpc.LeaderAndIsrRequest, rpc.StopReplicaRequest, rpc.UpdateMetadataRequest)


class ControllerWhereabouts:
    kraft_version = 0

    def __init__(self, controller_id: Callable[[], int], cluster: Cluster, view: View) -> None:
        self._controller_id = controller_id
        self._cluster = cluster
        self._view = view

    @property
    def leader(self) -> LeaderAndEpoch:
        known = self._controller_id()
        return LeaderAndEpoch(known if known >= 0 else None, NO_EPOCH)

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        listener = self._cluster.config.inter_broker_listener_name
        endpoint = self._cluster.endpoint(node_id, listener)
        if endpoint is None:
            self._view.miss_broker(node_id)
        return endpoint


class ZkMembership:
    always_served: tuple[type, ...] = (*_COMMANDS, ReadClusterRequest)

    def __init__(
        self,
        parts: BrokerParts,
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
        self._now_ms = 0
        self.parts = parts
        self._procedures = Procedures(
            parts.outbox, session, resumes=not design.hears_session_at_once
        )
        self.metadata = View(
            design=design,
            cluster=parts.cluster,
            procedures=self._procedures,
            apart=Procedures(parts.outbox, session),
        )
        whereabouts = ControllerWhereabouts(controller_id, parts.cluster, self.metadata)
        self.controller = ControllerChannel(whereabouts, parts.outbox)
        self.incarnation = Incarnation(parts.cluster, random_uuid(random))
        self.lifecycle = ZkLife(
            design,
            parts,
            controller=self.controller,
            incarnation=self.incarnation,
            session=session,
        )
        self.replicas = Replicas(parts, self._rules(limits))
        self._obeying = Obeying(
            design=design,
            node_id=parts.config.node_id,
            outbox=parts.outbox,
            replicas=self.replicas,
            view=self.metadata,
            incarnation=self.incarnation,
        )
        self.isr_keeper: IsrKeeper = self._keeper()

    @property
    def news(self) -> deque[MetadataDelta]:
        return self.metadata.news

    def _keeper(self) -> IsrKeeper:
        if self._design.isr_writer is IsrWriter.CONTROLLER:
            return IsrRequests(
                self.incarnation,
                self.controller,
                timeout_ms=self.parts.config.session_timeout_ms,
            )
        notifies = self._design.isr_writer is IsrWriter.LEADER_NOTIFYING
        return IsrWrites(
            design=self._design,
            node_id=self.parts.config.node_id,
            outbox=self.parts.outbox,
            procedures=self._procedures,
            controller_epoch=lambda: self._obeying.controller_epoch,
            now_ms=lambda: self._now_ms,
            notifications=IsrNotifications(self._procedures) if notifies else None,
        )

    def _rules(self, limits: Limits) -> IsrRules:
        if self._design.limits_lag_in_records:
            return LagLimits(limits)
        return EligibleReplicas(_AnyPeers(), self.parts.config.replica_lag_time_max_ms)

    def _start(self) -> Procedure[None]:
        """on_broker_startup()"""
        yield from self.lifecycle.start()
        if self._design.routing is Routing.ZOOKEEPER:
            yield from self._recover()
        if self.lifecycle.recovered():
            yield from self._register()

    def _register(self) -> Procedure[None]:
        if (yield from self.lifecycle.register()):
            self._begin_obeying()
            self.lifecycle.run_if_ready()

    def _recover(self) -> Procedure[None]:
        """on_broker_startup() of seed 000: start the replicas that ZooKeeper says we have."""
        states = yield from self.metadata.read()
        node_id = self.parts.config.node_id
        image = self.parts.cluster.image
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
        self.replicas.keep_only(assigned, self._now_ms)

    def _moves_here(self, of: rpc.TopicPartition) -> Procedure[bool]:
        """Does the partition move here? Or was its leader only not told that it has moved away?"""
        path = paths.partition_under(paths.PARTITIONS_REASSIGNED, of.topic, of.partition)
        listed = decoded((yield from one(GetData(path=path))), ReplicaList.decode)
        return listed is not None and self.parts.config.node_id in listed.replicas

    def _begin_obeying(self) -> None:
        self._obeying.release(self._now_ms)
        if isinstance(self.isr_keeper, IsrWrites) and self._design.hears_session_at_once:
            self.isr_keeper.session_began(self.replicas)
        if self._design.routing is Routing.UPDATE_METADATA:
            self.metadata.read_settings_soon()
        else:
            self._obeying.begin_reading()
            self._procedures.submit("on_broker_startup, again", self._catch_up)

    def _catch_up(self) -> Procedure[None]:
        """Read what was decided after we had read and before we counted as live."""
        states = yield from self.metadata.read()
        node_id = self.parts.config.node_id
        ours = {of: state for of, state in states.items() if node_id in state.replicas}
        self._obeying.has_read(ours, self._now_ms)

    # --- Membership ---------------------------------------------------------------------------

    def routes(self, routes: Mapping[type, Handler]) -> Mapping[type, Handler]:
        commands: dict[type, Handler] = {
            rpc.LeaderAndIsrRequest: self._obeying.leader_and_isr,
            rpc.StopReplicaRequest: self._obeying.stop_replica,
            rpc.UpdateMetadataRequest: self._obeying.update_metadata,
        }
        commands |= reading_apart(self._session, self.metadata, self.parts.outbox)
        if self._design.routing is Routing.UPDATE_METADATA:
            return {**routes, **commands}
        fresh = reading_first(routes, self._session, self.metadata, lambda: self._now_ms)
        return {**fresh, **commands}

    def ready_to_unfence(self, now_ms: int) -> None:
        if self.lifecycle.ready_to_unfence(now_ms):
            self._procedures.submit("register", self._register)

    def tick_lifecycle(self, now_ms: int) -> None:
        if self.lifecycle.tick(now_ms):
            self._procedures.submit("register", self._register)

    def receive(self, event: Event, now_ms: int) -> None:
        self._now_ms = now_ms
        assert isinstance(event, ZkEvent), event
        if isinstance(event.event, SessionChanged):
            self._procedures.session_changed()
            self.metadata.session_changed(is_over=event.event.state is SessionState.CLOSED)
            if self.lifecycle.session_changed(now_ms):
                self._procedures.submit("on_broker_startup", self._start)
        elif event.event.path == paths.CONFIG_CHANGES:
            self.metadata.read_settings_soon()

    def tick(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def deadline_ms(self) -> int | None:
        return None


class _AnyPeers:
    """The leaders of these designs know of no broker but by its fetches."""

    def registered_epoch(self, broker_id: int) -> int | None:
        return None

    def is_active(self, broker_id: int) -> bool:
        return True
