"""What an election makes of our replica: it leads, follows, rests or goes.

The replica itself, its log and the ways of a leader and a follower are those of any design
(`broker.replicas`); here a decision of the replicas becomes the state that it obeys.
"""

from collections.abc import Callable

from broker.partition import LeaderOf, Partition
from broker.replicas import Replicas
from broker.zk.by_replicas.held import Held
from broker.zk.view import View
from controller.metadata.partitions import NO_LEADER, PartitionState
from controller.metadata.znode_image import Told, topic_id_of
from wire.primitives import ZERO_UUID
from wire.zk.control_rpc import TopicPartition

__all__ = ["ReplicaRoles"]


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
