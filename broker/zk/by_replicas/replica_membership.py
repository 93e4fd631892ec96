"""Where there is no controller, the replicas of each partition elect its leader.

The membership joins the parts; each decides for itself (see its module). Changes of leader have a
queue of their own: they do not wait behind other notifications of ZooKeeper. The requests that go
to a controller in other designs are served by an administrator in this process
(`controller.zk.administrator`).

Source: seed 002; seed 004 for what `zk-v1` leaves out.
"""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from random import Random
from typing import assert_never

from broker.cluster import Incarnation
from broker.config import BrokerConfig
from broker.membership.controller_channel import ControllerChannel
from broker.membership.membership import Handler
from broker.parts import BrokerParts
from broker.replicas import Replicas
from broker.zk.by_replicas.governing import Governing
from broker.zk.by_replicas.held import Held, ReplicaContext, ReplicaSettings
from broker.zk.by_replicas.held_replicas import Assigned, ReplicaRoles
from broker.zk.by_replicas.leader_changes import LeaderChanges
from broker.zk.by_replicas.leader_elections import ElectionOutcome, Elections
from broker.zk.by_replicas.leader_isr import CommitThread, IsrNode
from broker.zk.by_replicas.state_queue import ensure_queue
from broker.zk.life import ZkLife
from broker.zk.view import ReadClusterRequest, View, reading_apart, reading_first
from controller.metadata.delta import MetadataDelta
from quorum.core.effects import Event, earliest
from quorum.core.types import NO_EPOCH, Endpoint, LeaderAndEpoch
from quorum.zookeeper.zk_effects import ZkEvent
from quorum.zookeeper.zk_procedures import Procedure, Procedures
from wire.primitives import random_uuid
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import Design
from wire.zk.session import Session, SessionChanged, SessionState

__all__ = ["ReplicaMembership"]


class OwnWhereabouts:
    kraft_version = 0

    def __init__(self, config: BrokerConfig) -> None:
        self._endpoint: Endpoint | None = None
        name = config.inter_broker_listener_name
        found = next((each for each in config.listeners if each.name == name), None)
        if found is not None:
            self._endpoint = Endpoint(config.node_id, found.host, found.port)

    @property
    def leader(self) -> LeaderAndEpoch:
        known = None if self._endpoint is None else self._endpoint.node_id
        return LeaderAndEpoch(known, NO_EPOCH)

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        return self._endpoint


class ReplicaMembership:
    always_served: tuple[type, ...] = (ReadClusterRequest,)

    def __init__(
        self,
        parts: BrokerParts,
        *,
        design: Design,
        session: Session,
        random: Random,
        settings: ReplicaSettings,
    ) -> None:
        self._design = design
        self._session = session
        self._settings = (
            settings if design.has_leader_epochs else replace(settings, head_start_ms=0)
        )
        self.held: dict[TopicPartition, Held] = {}  # for those who look on, too
        self._now_ms = 0
        self._next_check_ms: int | None = None
        self.parts = parts
        resumes = not design.hears_session_at_once
        self._procedures = Procedures(parts.outbox, session, resumes=resumes)
        self._election_procedures = Procedures(parts.outbox, session, resumes=resumes)
        self.metadata = View(
            design=design,
            cluster=parts.cluster,
            procedures=self._procedures,
            apart=Procedures(parts.outbox, session),
        )
        self.controller = ControllerChannel(OwnWhereabouts(parts.config), parts.outbox)
        self.incarnation = Incarnation(parts.cluster, random_uuid(random))
        self.lifecycle = ZkLife(
            design,
            parts,
            controller=self.controller,
            incarnation=self.incarnation,
            session=session,
        )
        limit = self._settings.max_lag_records if design.limits_lag_in_records else None
        self._commit_thread = CommitThread(
            self._settings.keep_in_sync_ms, self.held, max_lag_records=limit
        )
        self.replicas = Replicas(parts, self._commit_thread)
        self._join_replicas(
            ReplicaContext(
                design=design,
                settings=self._settings,
                node_id=parts.config.node_id,
                session=session,
                outbox=parts.outbox,
                procedures=self._procedures,
                view=self.metadata,
                held=self.held,
            ),
        )

    @property
    def counts(self) -> Counter[str]:
        return self.elections.counts

    @property
    def news(self) -> deque[MetadataDelta]:
        return self.metadata.news

    def _join_replicas(self, context: ReplicaContext) -> None:
        changes = self._changes = LeaderChanges(
            context, procedures=self._election_procedures, run=self._on_leader_changes
        )
        roles = self._roles = ReplicaRoles(context, self.replicas)
        self.elections = Elections(context, changes=changes, roles=roles)
        self._assigned = Assigned(
            context, roles=roles, changes=changes, commit_thread=self._commit_thread
        )
        self._governing = Governing(context, roles=roles, changes=changes, assigned=self._assigned)
        self.isr_keeper = IsrNode(context, changes)

    def _start(self) -> Procedure[None]:
        yield from self.lifecycle.start()
        yield from self._recover()
        if self.lifecycle.recovered():
            yield from self._register()

    def _register(self) -> Procedure[None]:
        if (yield from self.lifecycle.register()):
            self.metadata.read_soon()
            self.lifecycle.run_if_ready()

    def _recover(self) -> Procedure[None]:
        """on_broker_startup(): obey what was queued for us, then start what is assigned to us."""
        if self._design.has_state_queues:
            yield from ensure_queue(self.parts.config.node_id)
        yield from self.metadata.read()
        yield from self._assigned.begin()
        yield from self._governing.on_partitions_reassigned()
        self._next_check_ms = self._now_ms + self._settings.check_interval_ms

    # --- between the parts --------------------------------------------------------------------

    def _on_leader_changes(self) -> Procedure[None]:
        """Look at each leader's node that may have changed, and do what follows from it."""
        while (held := self._changes.next()) is not None:
            self._act_on((yield from self.elections.on_leader_change(held)), held.of)
            if not self._design.has_state_queues and held.of in self.held:
                self._act_on((yield from self.elections.watch_nodes(held)), held.of)
        self._changes.ended()

    def _act_on(self, outcome: ElectionOutcome, of: TopicPartition) -> None:
        match outcome:
            case ElectionOutcome.NOTHING:
                pass
            case ElectionOutcome.ELECTED:  # the former leader may have left a reassignment undone
                self._procedures.submit(
                    f"reassignment of {of}", partial(self._governing.on_partition_reassigned, of)
                )
            case ElectionOutcome.NOT_ASSIGNED:
                if not self._design.has_state_queues:  # no leader tells us to close it
                    self._assigned.let_go(of, self._changes.now_ms)
            case _:
                assert_never(outcome)

    # --- Membership ---------------------------------------------------------------------------

    def routes(self, routes: Mapping[type, Handler]) -> Mapping[type, Handler]:
        fresh = reading_first(routes, self._session, self.metadata, lambda: self._procedures.now_ms)
        return {**fresh, **reading_apart(self._session, self.metadata, self.parts.outbox)}

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
            self._election_procedures.session_changed()
            self.metadata.session_changed(is_over=event.event.state is SessionState.CLOSED)
            if self.lifecycle.session_changed(now_ms):
                self._procedures.submit("on_broker_startup", self._start)
        else:
            self._watch_fired(event.event.path, now_ms)

    def _watch_fired(self, path: str, now_ms: int) -> None:
        named = paths.partition_of(path)
        if path.startswith(paths.V2_PARTITIONS_REASSIGNED):
            self._procedures.submit(
                "on_partitions_reassigned", self._governing.on_partitions_reassigned
            )
        elif named is not None:
            of = TopicPartition(*named)
            if of in self.held:
                self.elections.notified(of, now_ms)
        elif path == paths.state_queue(self.parts.config.node_id):
            self._procedures.submit("on_state_change", self._assigned.on_state_change)
        elif path.startswith(paths.TOPICS):
            self._assigned.topic_changed(paths.last_name(path))

    def tick(self, now_ms: int) -> None:
        self._now_ms = now_ms
        if not self._session.is_connected:
            return
        self._changes.tick(now_ms)
        if self._next_check_ms is not None and now_ms >= self._next_check_ms:
            self._next_check_ms = now_ms + self._settings.check_interval_ms
            for leader in sorted({held.leader for held in self.held.values()}):
                self.metadata.miss_broker(leader)  # who leads may register later than it stood
            self._governing.begin_checks(now_ms)
            for of in [of for of in self.held if self._roles.leads(of)]:
                self._procedures.submit(f"check {of}", partial(self._governing.check, of))

    def deadline_ms(self) -> int | None:
        if not self._session.is_connected:
            return None
        return earliest(self._changes.deadline_ms(), self._next_check_ms)
