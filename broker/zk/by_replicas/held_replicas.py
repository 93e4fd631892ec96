"""This broker finds out which replicas it has, and what each of them is told to be.

A topic is created by writing its node. Every broker that is assigned starts its replica and looks
for the leader. After that a replica comes and goes by the state changes that a leader has queued
for its broker. These are obeyed in order, and before anything is read of topics: the request that
closed a partition of an earlier topic must not close that of a later topic with the same name.

A state change of an older epoch than the replica has is not obeyed: its sender no longer leads.

The replica itself, its log, and how it leads and follows are those of any design
(`broker.replicas`); here a decision of the replicas becomes the state that it obeys.

Source: seed 002, the state-change listener; facts of the page's opening (state changes reach dead
brokers too). That brokers watch topics is reconstructed.
"""

from broker.partition.partition import LeaderOf, Partition
from broker.replicas import Replicas
from broker.zk.by_replicas import state_queue
from broker.zk.by_replicas.held import Held, ReplicaContext
from broker.zk.by_replicas.leader_changes import LeaderChanges
from broker.zk.by_replicas.leader_isr import CommitThread
from controller.metadata.image import ResourceType
from controller.metadata.partitions import NO_LEADER, PartitionState
from controller.zk.zk_metadata import (
    ClusterUpdate,
    children,
    read_assignments,
    read_configs,
    read_states,
    topic_id_of,
    with_states,
)
from quorum.zookeeper.zk_procedures import Procedure
from wire.primitives import ZERO_UUID
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.znodes import StateChange, StateChangeKind

__all__ = ["Assigned", "ReplicaRoles"]


class ReplicaRoles:
    def __init__(self, context: ReplicaContext, replicas: Replicas) -> None:
        self._node_id = context.node_id
        self._view = context.view
        self._replicas = replicas

    # --- Roles --------------------------------------------------------------------------------

    def lead(self, held: Held, now_ms: int) -> None:
        self._obey(held, self._node_id, now_ms)
        self._show(held)

    def follow(self, held: Held, now_ms: int) -> None:
        self._obey(held, held.leader, now_ms)
        self._show(held)
        self._view.miss_broker(held.leader)

    def leads(self, of: TopicPartition) -> bool:
        return self.led(of) is not None

    # --- of the leader, and of those it tells --------------------------------------------------

    def led(self, of: TopicPartition) -> tuple[Partition, LeaderOf] | None:
        found = self._partition(of)
        if found is None or not isinstance(found.role, LeaderOf):
            return None
        return found, found.role

    def rest(self, held: Held, now_ms: int) -> None:
        """Neither lead nor follow, with an open log."""
        self._obey(held, NO_LEADER, now_ms)

    def close(self, of: TopicPartition, now_ms: int) -> None:
        """Remove the replica with its log, even if this life of the broker has not opened it."""
        if self._partition(of) is None:
            self.rest(Held(of=of), now_ms)
        self._replicas.remove(of.topic, of.partition, now_ms)

    def _partition(self, of: TopicPartition) -> Partition | None:
        found = self._replicas.find(of.topic, ZERO_UUID, of.partition)
        return found if isinstance(found, Partition) else None

    def _obey(self, held: Held, leader: int, now_ms: int) -> None:
        of = held.of
        held.changes += 1
        topic_id = topic_id_of(of.topic)
        state = self._state(held, leader)
        self._replicas.obey(of.topic, topic_id, of.partition, state, now_ms)

    def _state(self, held: Held, leader: int) -> PartitionState:
        """The partition epoch counts the decisions that we have obeyed: an older one never comes
        after."""
        return PartitionState(
            replicas=tuple(dict.fromkeys((*held.members, self._node_id))),
            isr=held.isr,
            leader=leader,
            leader_epoch=max(held.leader_epoch, 0),  # there are none in zk-v1: always the same
            partition_epoch=held.changes,
        )

    def _show(self, held: Held) -> None:
        """Show clients the new leader: they may ask before everything has been read again."""
        if not held.members:
            return  # it was removed while we read
        state = PartitionState(
            replicas=held.replicas or held.members,
            isr=held.isr,
            leader=held.leader,
            leader_epoch=max(held.leader_epoch, 0),
            partition_epoch=max(held.isr_version, 0),
        )
        self._view.show(ClusterUpdate(partitions={held.of: state}))


class Assigned:
    def __init__(
        self,
        context: ReplicaContext,
        *,
        roles: ReplicaRoles,
        changes: LeaderChanges,
        commit_thread: CommitThread,
    ) -> None:
        self._context = context
        self._held = context.held
        self._procedures = context.procedures
        self._roles = roles
        self._changes = changes
        self._commit_thread = commit_thread
        self._topics: set[str] = set()  # as last read
        self._changed: set[str] = set()

    # --- topics -------------------------------------------------------------------------------

    def topic_changed(self, topic: str) -> None:
        self._changed.add(topic)
        self._procedures.submit("on_topic_change", self.on_topic_change)

    def begin(self) -> Procedure[None]:
        """Read everything in a new session, which has no watches."""
        self._topics.clear()
        yield from self.on_topic_change()
        for of in self._held:
            self._changes.look_soon(of, self._procedures.now_ms)

    def on_topic_change(self) -> Procedure[None]:
        yield from self.on_state_change()
        names = yield from children(paths.TOPICS, watch=True)
        asked = [name for name in names if name not in self._topics or name in self._changed]
        self._topics = set(names)
        self._changed.clear()
        design = self._context.design
        found = yield from read_assignments(design, asked, watch=True)
        states = yield from read_states(design, found)
        configs = yield from read_configs(design, ResourceType.TOPIC, sorted(found))
        known = with_states(found, states)
        self._context.view.show(ClusterUpdate(partitions=known, topics=names, configs=configs))
        for of, state in sorted(known.items(), key=lambda item: item[0]):
            if self._context.node_id in (*state.replicas, *state.isr):
                self.hold(of, state.replicas)

    def hold(self, of: TopicPartition, replicas: tuple[int, ...] = ()) -> None:
        """Start a replica, if there is none yet, and look for its leader."""
        if of in self._held:
            return
        now_ms = self._procedures.now_ms
        held = self._held[of] = Held(of=of, replicas=replicas)
        self._roles.rest(held, now_ms)
        self._changes.look_soon(of, now_ms)

    def let_go(self, of: TopicPartition, now_ms: int) -> None:
        self._held.pop(of, None)
        self._changes.forget(of)
        self._roles.close(of, now_ms)
        self._commit_thread.forget(of)

    # --- state changes ------------------------------------------------------------------------

    def on_state_change(self) -> Procedure[None]:
        """The state-change listener: obey what is queued, and delete each when it was obeyed."""
        if not self._context.design.has_state_queues:
            return
        node_id = self._context.node_id
        for name in (yield from state_queue.requests_in(node_id)):
            request = yield from state_queue.read_request(node_id, name)
            if request is not None:
                self._obey(request)
            yield from state_queue.delete_request(node_id, name)

    def _obey(self, request: StateChange) -> None:
        of = TopicPartition(request.topic, request.partition)
        held = self._held.get(of)
        is_stale = held is not None and request.leader_epoch < held.leader_epoch
        self._context.outbox.trace(
            "state-change",
            request=request.kind.value,
            partition=str(of),
            leader_epoch=request.leader_epoch,
            obeyed=not is_stale,
        )
        if is_stale:
            return
        match request.kind:
            case StateChangeKind.START_REPLICA:
                self.hold(of)
            case StateChangeKind.CLOSE_REPLICA:
                self.let_go(of, self._procedures.now_ms)
