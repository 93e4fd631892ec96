"""This broker has a coordinator for each partition of `__consumer_offsets` that it leads.

This module decides when one begins and ends, and whose turn it is, and finds the one of a group,
here or elsewhere.

Source: Kafka's GroupCoordinatorService (onElection, onResignation, partitionFor).
"""

from collections.abc import Iterable, Iterator

from broker.cluster import Cluster
from broker.config import GroupConfig
from broker.groups.coordinator import Coordinator, Surroundings
from broker.groups.offsets_topic import OFFSETS_TOPIC, partition_of
from broker.groups.timers import Timers
from broker.partition.partition import Partition
from broker.waiting import Deadlines
from controller.metadata.delta import MetadataDelta
from quorum.core.effects import earliest
from quorum.core.outbox import Outbox
from quorum.core.types import Endpoint
from wire.errors import ErrorCode
from wire.primitives import ZERO_UUID

__all__ = ["Coordinators"]


class Coordinators:
    def __init__(
        self,
        *,
        config: GroupConfig,
        cluster: Cluster,
        deadlines: Deadlines,
        outbox: Outbox,
    ) -> None:
        self._config = config
        self._cluster = cluster
        self._here: dict[int, Coordinator] = {}  # by partition
        self._timers: Timers[tuple[int, str]] = Timers()
        self._next_expiry_ms: int | None = None
        self._shared = Surroundings(
            config=config,
            deadlines=deadlines,
            outbox=outbox,
            topic_id_of=cluster.topic_id,
            topic_with=cluster.topic_with,
            timers=self._timers,
        )

    def __iter__(self) -> Iterator[Coordinator]:
        return iter(self._here.values())

    # --- finding ----------------------------------------------------------------------------

    @property
    def has_topic(self) -> bool:
        return self._cluster.topic_id(OFFSETS_TOPIC) is not None

    def find(self, group_id: str) -> Coordinator | ErrorCode:
        """The group's coordinator, if it is here and can serve."""
        index = self._partition_of(group_id)
        coordinator = None if index is None else self._here.get(index)
        if coordinator is None:
            return ErrorCode.NOT_COORDINATOR
        return coordinator if coordinator.error is ErrorCode.NONE else coordinator.error

    def locate(self, group_id: str, listener: str) -> Endpoint | None:
        """Where the group's coordinator is, on whichever broker; None while there is none."""
        index = self._partition_of(group_id)
        if index is None:
            return None
        leader_id, _ = self._cluster.leader_of(OFFSETS_TOPIC, ZERO_UUID, index)
        return self._cluster.endpoint(leader_id, listener)

    def _partition_of(self, group_id: str) -> int | None:
        topic = self._cluster.image.topic(OFFSETS_TOPIC)
        return None if topic is None else partition_of(group_id, topic.partition_count)

    # --- life -------------------------------------------------------------------------------

    def elected(self, partition: Partition, now_ms: int) -> None:
        """The partition leads a new epoch, here: whatever was known before is read again."""
        if partition.topic != OFFSETS_TOPIC:
            return
        self.lost(partition, now_ms)
        self._here[partition.index] = Coordinator(partition, self._shared)
        self._here[partition.index].progressed(now_ms)
        if self._next_expiry_ms is None:
            self._next_expiry_ms = now_ms + self._config.retention_check_interval_ms

    def lost(self, partition: Partition, now_ms: int) -> None:
        coordinator = self._of(partition)
        if coordinator is not None:
            del self._here[partition.index]
            coordinator.close(ErrorCode.NOT_COORDINATOR, now_ms)

    def progressed(self, partition: Partition, now_ms: int) -> None:
        coordinator = self._of(partition)
        if coordinator is not None:
            coordinator.progressed(now_ms)

    def _of(self, partition: Partition) -> Coordinator | None:
        return self._here.get(partition.index) if partition.topic == OFFSETS_TOPIC else None

    def obey(self, delta: MetadataDelta, now_ms: int) -> None:
        """A new image is published."""
        if delta.topics_deleted:
            names = frozenset(topic.name for topic in delta.topics_deleted)
            for coordinator in self._serving():
                coordinator.topics_deleted(names, now_ms)

    # --- time -------------------------------------------------------------------------------

    def tick(self, now_ms: int) -> None:
        for index, group_id in self._timers.take_due(now_ms):
            coordinator = self._here.get(index)
            if coordinator is not None:
                coordinator.tick(group_id, now_ms)
        if self._next_expiry_ms is not None and now_ms >= self._next_expiry_ms:
            self._next_expiry_ms = now_ms + self._config.retention_check_interval_ms
            for coordinator in self._serving():
                coordinator.expire_offsets(now_ms)

    def deadline_ms(self) -> int | None:
        return earliest(self._timers.deadline_ms(), self._next_expiry_ms)

    def _serving(self) -> Iterable[Coordinator]:
        return tuple(one for one in self if one.error is ErrorCode.NONE)
