"""Offsets that were committed in a transaction wait for its marker.

Until then the group's offset of that partition is unstable. A commit marker lets them count, an
abort marker drops them, and a tombstone removes all that wait for its partition. Where transactions
and ordinary commits meet, the record that is last in the log wins, whichever marker comes first.
Kafka compares the offsets of the records. This module keeps the waiting ones in the order of the
log. One that a later record has passed counts for nothing, but keeps its partition unstable.

Source: KIP-98, KIP-447; Kafka's OffsetMetadataManager (replay, replayEndTransactionMarker).
"""

from collections.abc import Iterator, KeysView
from typing import NamedTuple

from broker.groups.records import OffsetChange
from broker.verifying import Place

__all__ = ["Pending", "PendingOffsets"]

_Waiting = dict[int, OffsetChange | None]  # by producer, in the order of the log; None: passed


class Pending(NamedTuple):
    """An offset that a producer has committed in its transaction."""

    producer_id: int
    change: OffsetChange


class PendingOffsets:
    __slots__ = ("_by_group", "_by_producer")

    def __init__(self) -> None:
        self._by_group: dict[str, dict[Place, _Waiting]] = {}
        self._by_producer: dict[int, dict[tuple[str, Place], None]] = {}

    def __iter__(self) -> Iterator[str]:
        """The groups that have any."""
        return iter(self._by_group)

    def __len__(self) -> int:
        return len(self._by_group)

    def places(self, group_id: str) -> KeysView[Place]:
        """The partitions where the group's offset is unstable."""
        return self._by_group.get(group_id, {}).keys()

    def add(self, pending: Pending) -> None:
        change = pending.change
        place = (change.topic, change.partition)
        waiting = self._by_group.setdefault(change.group_id, {}).setdefault(place, {})
        waiting.pop(pending.producer_id, None)  # it comes last now
        waiting[pending.producer_id] = change
        self._by_producer.setdefault(pending.producer_id, {})[change.group_id, place] = None

    def passed_by(self, change: OffsetChange) -> None:
        """A later record of the same partition counts."""
        place = (change.topic, change.partition)
        waiting = self._by_group.get(change.group_id, {}).get(place, {})
        for producer_id in tuple(waiting):
            if change.committed is not None:
                waiting[producer_id] = None
            else:
                self._remove(producer_id, change.group_id, place)

    def end(self, producer_id: int, *, is_commit: bool) -> Iterator[OffsetChange]:
        """Take out what the producer's transaction has committed. Yields what counts now."""
        for group_id, place in tuple(self._by_producer.get(producer_id, ())):
            waiting = self._by_group[group_id][place]
            change = waiting[producer_id]
            if is_commit and change is not None:
                for other in waiting:
                    if other == producer_id:
                        break
                    waiting[other] = None
                yield change
            self._remove(producer_id, group_id, place)

    def _remove(self, producer_id: int, group_id: str, place: Place) -> None:
        of_group, of_producer = self._by_group[group_id], self._by_producer[producer_id]
        del of_group[place][producer_id], of_producer[group_id, place]
        if not of_group[place]:
            del of_group[place]
        if not of_group:
            del self._by_group[group_id]
        if not of_producer:
            del self._by_producer[producer_id]
