"""What an election makes of our replica: it leads, follows, rests or goes.

The replica itself, its log and the ways of a leader and a follower are those of any design
(`broker.replicas`); here a decision of the replicas becomes the state that it obeys.

Which partitions this broker has a replica of: what topics assign, and what leaders ask it to.

A topic is created by writing its node. Every broker that is assigned starts its replica and looks
who leads. After that a replica comes and goes by the state changes that a leader has queued for it,
which are obeyed in order, and before anything is read of topics: what closed a partition of an
earlier topic must not close that of a later one with the same name.

A state change of an older epoch than the replica has is not obeyed: its leader is none any more.

Source: seed 002, the state-change listener; facts of the page's opening (state changes reach dead
brokers too). That brokers watch topics is reconstructed.
"""

from collections.abc import Callable, MutableMapping

from broker.outbox import Outbox
from broker.partition import LeaderOf, Partition
from broker.replicas import Replicas
from broker.zk.by_replicas.elections import Elections
from broker.zk.by_replicas.held import Held
from broker.zk.by_replicas.state_queue import drain
from broker.zk.view import View
from controller.metadata.image import ResourceType
from controller.metadata.partitions import NO_LEADER, PartitionState
from controller.metadata.znode_image import Told, topic_id_of
from controller.metadata.znode_reading import (
    children,
    read_assignments,
    read_configs,
    read_states,
)
from quorum.zookeeper.zk_procedures import Procedure, Procedures
from wire.primitives import ZERO_UUID
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import Design
from wire.zk.znodes import StateChange, StateChangeKind

__all__ = ["Assigned", "ReplicaRoles"]


class ReplicaRoles:
    """`gone` hears that a partition is not assigned to this broker any more."""

    def __init__(
        self,
        *,
        node_id: int,
        replicas: Callable[[], Replicas],
        view: View,
        gone: Callable[[TopicPartition, int], None],
    ) -> None:
        self._node_id = node_id
        self._replicas = replicas
        self._view = view
        self._gone = gone

    # --- Roles --------------------------------------------------------------------------------

    def lead(self, held: Held, now_ms: int) -> None:
        self._obey(held, self._node_id, now_ms)
        self._show(held)

    def follow(self, held: Held, now_ms: int) -> None:
        self._obey(held, held.leader, now_ms)
        self._show(held)
        self._view.miss_broker(held.leader)

    def missing(self, held: Held, now_ms: int) -> None:
        self._gone(held.of, now_ms)

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
        """The replica goes, with its log; also one that this life of the broker had not opened."""
        if self._partition(of) is None:
            self.rest(Held(of=of), now_ms)
        self._replicas().remove(of.topic, of.partition, now_ms)

    def _partition(self, of: TopicPartition) -> Partition | None:
        found = self._replicas().find(of.topic, ZERO_UUID, of.partition)
        return found if isinstance(found, Partition) else None

    def _obey(self, held: Held, leader: int, now_ms: int) -> None:
        of = held.of
        held.changes += 1
        topic_id = topic_id_of(of.topic)
        state = self._state(held, leader)
        self._replicas().obey(of.topic, topic_id, of.partition, state, now_ms)

    def _state(self, held: Held, leader: int) -> PartitionState:
        """Ours are the changes that we have obeyed: an older decision never comes after."""
        return PartitionState(
            replicas=tuple(dict.fromkeys((*held.members, self._node_id))),
            isr=held.isr,
            leader=leader,
            leader_epoch=max(held.leader_epoch, 0),  # there are none in zk-v1: always the same
            partition_epoch=held.changes,
        )

    def _show(self, held: Held) -> None:
        """To clients, who may ask before anyone has read it all again."""
        if not held.members:
            return  # it was removed while we read
        state = PartitionState(
            replicas=held.replicas or held.members,
            isr=held.isr,
            leader=held.leader,
            leader_epoch=max(held.leader_epoch, 0),
            partition_epoch=max(held.isr_version, 0),
        )
        self._view.show(Told(partitions={held.of: state}))


class Assigned:
    def __init__(
        self,
        *,
        design: Design,
        node_id: int,
        outbox: Outbox,
        procedures: Procedures,
        view: View,
        held: MutableMapping[TopicPartition, Held],
        roles: ReplicaRoles,
        elections: Elections,
        closed: Callable[[TopicPartition], None],
    ) -> None:
        self._design = design
        self._node_id = node_id
        self._outbox = outbox
        self._procedures = procedures
        self._view = view
        self._held = held
        self._roles = roles
        self._elections = elections
        self._closed = closed
        self._topics: set[str] = set()  # as last read
        self._changed: set[str] = set()

    # --- topics -------------------------------------------------------------------------------

    def topic_changed(self, topic: str) -> None:
        self._changed.add(topic)
        self._procedures.submit("on_topic_change", self.on_topic_change)

    def begin(self) -> Procedure[None]:
        """In a new session: all of it, for no watch is left."""
        self._topics.clear()
        yield from self.on_topic_change()
        for of in self._held:
            self._elections.look_soon(of, self._procedures.now_ms)

    def on_topic_change(self) -> Procedure[None]:
        yield from self.on_state_change()
        names = yield from children(paths.TOPICS, watch=True)
        asked = [name for name in names if name not in self._topics or name in self._changed]
        self._topics = set(names)
        self._changed.clear()
        found = yield from read_assignments(self._design, asked, watch=True)
        states = yield from read_states(self._design, found)
        configs = yield from read_configs(self._design, "topics", sorted(found))
        known = {
            of: states.get(of) or PartitionState(replicas=replicas, isr=(), leader=NO_LEADER)
            for topic, partitions in found.items()
            for partition, replicas in partitions.items()
            for of in [TopicPartition(topic, partition)]
        }
        resources = {(int(ResourceType.TOPIC), name): each for name, each in configs.items()}
        self._view.show(Told(partitions=known, topics=names, configs=resources))
        for of, state in sorted(known.items(), key=lambda item: item[0]):
            if self._node_id in (*state.replicas, *state.isr):
                self.hold(of, state.replicas)

    def hold(self, of: TopicPartition, replicas: tuple[int, ...] = ()) -> None:
        """Start a replica, if there is none yet, and look whom it follows."""
        if of in self._held:
            return
        now_ms = self._procedures.now_ms
        held = self._held[of] = Held(of=of, replicas=replicas)
        self._roles.rest(held, now_ms)
        self._elections.look_soon(of, now_ms)

    def let_go(self, of: TopicPartition, now_ms: int) -> None:
        """Close the replica, if there is one."""
        self._held.pop(of, None)
        self._elections.forget(of)
        self._roles.close(of, now_ms)
        self._closed(of)

    # --- state changes ------------------------------------------------------------------------

    def on_state_change(self) -> Procedure[None]:
        if self._design.has_state_queues:
            yield from drain(self._node_id, self._obey)

    def _obey(self, request: StateChange) -> Procedure[None]:
        of = TopicPartition(request.topic, request.partition)
        held = self._held.get(of)
        is_stale = held is not None and request.leader_epoch < held.leader_epoch
        self._outbox.trace(
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
        yield from ()
