"""Which partitions this broker has a replica of: what topics assign, and what leaders ask it to.

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
from broker.zk.by_replicas.elections import Elections
from broker.zk.by_replicas.held import Held
from broker.zk.by_replicas.roles import ReplicaRoles
from broker.zk.by_replicas.state_queue import drain
from broker.zk.view import View
from controller.metadata.image import ResourceType
from controller.metadata.partitions import NO_LEADER, PartitionState
from controller.metadata.znode_image import Told
from controller.metadata.znode_reading import (
    children,
    read_assignments,
    read_configs,
    read_states,
)
from quorum.zookeeper.zk_procedures import Procedure, Procedures
from wire.zk import paths
from wire.zk.control_rpc import TopicPartition
from wire.zk.designs import Design
from wire.zk.replica_znodes import StateChange, StateChangeKind

__all__ = ["Assigned"]


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
