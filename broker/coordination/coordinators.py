"""This broker has a coordinator for each partition of a topic that it leads.

This module decides when one begins and ends, and whose turn it is, and finds the one of a key (a
group, or a transactional id), here or elsewhere. The leader of a key's partition is its
coordinator, so that electing it needs nothing of its own.

Source: Kafka's GroupCoordinatorService and TransactionCoordinator (onElection, onResignation,
partitionFor).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, Protocol, TypeVar

from broker.cluster import Cluster
from broker.coordination.timers import Timers
from broker.partition.partition import Partition
from controller.metadata.delta import MetadataDelta
from quorum.core.effects import earliest
from quorum.core.types import Endpoint
from wire.errors import ErrorCode
from wire.primitives import ZERO_UUID

__all__ = ["Coordinators", "KeyTimers", "Served", "partition_of"]

KeyTimers = Timers[tuple[int, str]]  # by partition and key: when its coordinator is to `tick`

_INT32_MIN = -(2**31)


class Served(Protocol):
    """A coordinator of one partition."""

    @property
    def error(self) -> ErrorCode: ...  # NONE: it serves
    def progressed(self, now_ms: int) -> None: ...
    def close(self, error: ErrorCode, now_ms: int) -> None: ...
    def tick(self, key: str, now_ms: int) -> None: ...
    def expire(self, now_ms: int) -> None: ...
    def topics_deleted(self, names: frozenset[str], now_ms: int) -> None: ...


S = TypeVar("S", bound=Served)


class Coordinators(Generic[S]):
    def __init__(
        self,
        topic: str,
        begin: Callable[[Partition], S],
        *,
        cluster: Cluster,
        timers: KeyTimers,
        expiry_interval_ms: int,
    ) -> None:
        self.topic = topic
        self._begin = begin
        self._cluster = cluster
        self._here: dict[int, S] = {}  # by partition
        self._timers = timers
        self._expiry_interval_ms = expiry_interval_ms
        self._next_expiry_ms: int | None = None

    def __iter__(self) -> Iterator[S]:
        return iter(self._here.values())

    # --- finding ----------------------------------------------------------------------------

    @property
    def has_topic(self) -> bool:
        return self._cluster.topic_id(self.topic) is not None

    def find(self, key: str) -> S | ErrorCode:
        """The key's coordinator, if it is here and can serve."""
        index = self.partition_of(key)
        coordinator = None if index is None else self._here.get(index)
        if coordinator is None:
            return ErrorCode.NOT_COORDINATOR
        return coordinator if coordinator.error is ErrorCode.NONE else coordinator.error

    def locate(self, key: str, listener: str) -> Endpoint | None:
        """Where the key's coordinator is, on whichever broker; None while there is none."""
        index = self.partition_of(key)
        if index is None:
            return None
        leader_id, _ = self._cluster.leader_of(self.topic, ZERO_UUID, index)
        return self._cluster.endpoint(leader_id, listener)

    def partition_of(self, key: str) -> int | None:
        topic = self._cluster.image.topic(self.topic)
        return None if topic is None else partition_of(key, topic.partition_count)

    # --- life -------------------------------------------------------------------------------

    def elected(self, partition: Partition, now_ms: int) -> None:
        """The partition leads a new epoch, here: whatever was known before is read again."""
        if partition.topic != self.topic:
            return
        self.lost(partition, now_ms)
        self._here[partition.index] = self._begin(partition)
        self._here[partition.index].progressed(now_ms)
        if self._next_expiry_ms is None:
            self._next_expiry_ms = now_ms + self._expiry_interval_ms

    def lost(self, partition: Partition, now_ms: int) -> None:
        coordinator = self.of(partition)
        if coordinator is not None:
            del self._here[partition.index]
            coordinator.close(ErrorCode.NOT_COORDINATOR, now_ms)

    def progressed(self, partition: Partition, now_ms: int) -> None:
        coordinator = self.of(partition)
        if coordinator is not None:
            coordinator.progressed(now_ms)

    def of(self, partition: Partition) -> S | None:
        """The coordinator on that partition, which may be one of another topic."""
        return self._here.get(partition.index) if partition.topic == self.topic else None

    def obey(self, delta: MetadataDelta, now_ms: int) -> None:
        """A new image is published."""
        if delta.topics_deleted:
            names = frozenset(topic.name for topic in delta.topics_deleted)
            for coordinator in self._serving():
                coordinator.topics_deleted(names, now_ms)

    # --- time -------------------------------------------------------------------------------

    def tick(self, now_ms: int) -> None:
        for index, key in self._timers.take_due(now_ms):
            coordinator = self._here.get(index)
            if coordinator is not None:
                coordinator.tick(key, now_ms)
        if self._next_expiry_ms is not None and now_ms >= self._next_expiry_ms:
            self._next_expiry_ms = now_ms + self._expiry_interval_ms
            for coordinator in self._serving():
                coordinator.expire(now_ms)

    def deadline_ms(self) -> int | None:
        return earliest(self._timers.deadline_ms(), self._next_expiry_ms)

    def _serving(self) -> Iterable[S]:
        return tuple(one for one in self if one.error is ErrorCode.NONE)


def partition_of(key: str, count: int) -> int:
    """As every Kafka broker has it: Java's hash of the name, without its sign."""
    assert count > 0, count
    value = _java_hash(key)
    return 0 if value == _INT32_MIN else abs(value) % count


def _java_hash(text: str) -> int:
    encoded = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for position in range(0, len(encoded), 2):
        value = (31 * value + (encoded[position] << 8 | encoded[position + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value
