"""The records of a partition of `__consumer_offsets` add up to its groups and offsets.

The same rules hold for what is read when a coordinator begins and for what it writes.

Source: Kafka's GroupCoordinatorShard.replay and replayEndTransactionMarker.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from broker.coordination.loading import Batches, last_of_each_key
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.consumer_values import ConsumerChange, EpochChange
from broker.groups.offsets import GroupOffsets
from broker.groups.pending import Pending, PendingOffsets
from broker.groups.records import Change, GroupChange, GroupMetadata, OffsetChange, decode_change
from wire.batch import BatchHeader, Record, records_of
from wire.transaction_markers import Marker, read_marker

__all__ = ["Contents", "Offsets"]


@dataclass(slots=True)
class Offsets:
    """What counts, and what waits for the marker of its transaction."""

    committed: dict[str, GroupOffsets] = field(default_factory=dict)  # by group
    pending: PendingOffsets = field(default_factory=PendingOffsets)

    def groups(self) -> Iterable[str]:
        """Those that have any."""
        return dict.fromkeys((*self.committed, *self.pending))

    def apply(self, change: OffsetChange) -> None:
        self._put(change)
        self.pending.passed_by(change)

    def end(self, marker: Marker) -> None:
        for change in self.pending.end(marker.producer_id, is_commit=marker.is_commit):
            self._put(change)

    def _put(self, change: OffsetChange) -> None:
        place = (change.topic, change.partition)
        of_group = self.committed.setdefault(change.group_id, {})
        if change.committed is not None:
            of_group[place] = change.committed
        else:
            of_group.pop(place, None)
            if not of_group:
                del self.committed[change.group_id]


@dataclass(slots=True)
class Contents:
    """The records say this so far."""

    groups: dict[str, GroupMetadata] = field(default_factory=dict)
    consumers: dict[str, ConsumerGroup] = field(default_factory=dict)  # of KIP-848
    offsets: Offsets = field(default_factory=Offsets)

    def take(self, batches: Batches) -> None:
        for is_transactional, run in groupby(batches, lambda each: each[0].is_transactional):
            if is_transactional:
                for header, batch in run:
                    self._take_transactional(header, batch)
            else:
                ordinary = [each for each in run if not each[0].is_control]
                for change in decoded(self._needed(ordinary)):
                    self.apply(change)

    def apply(self, change: Change) -> None:
        match change:
            case GroupChange(metadata=None):
                self.groups.pop(change.group_id, None)
            case GroupChange(metadata=metadata):
                assert metadata is not None
                self.groups[change.group_id] = metadata
            case OffsetChange():
                self.offsets.apply(change)
            case EpochChange(epoch=None):
                self.consumers.pop(change.group_id, None)
            case _:
                self._apply_to_consumers(change)

    def _apply_to_consumers(self, change: ConsumerChange) -> None:
        """Tombstones may be all that is left of a group."""
        group = self.consumers.get(change.group_id) or ConsumerGroup(id=change.group_id)
        group.apply(change)
        has_epoch = group.epoch or group.assignment_epoch
        if has_epoch or group.members or group.targets or group.patterns:
            self.consumers[group.id] = group

    def _needed(self, batches: Batches) -> Iterator[Record]:
        """A tombstone takes what waits, though a later record of its key counts."""
        if self.offsets.pending:
            return (record for _, batch in batches for record in records_of(batch))
        return last_of_each_key(batches)

    def _take_transactional(self, header: BatchHeader, batch: bytes) -> None:
        if header.is_control:
            marker = read_marker(batch, header)
            if marker is not None:
                self.offsets.end(marker)
            return
        for change in decoded(records_of(batch)):
            if isinstance(change, OffsetChange) and change.committed is not None:
                self.offsets.pending.add(Pending(header.producer_id, change))
            else:
                self.apply(change)


def decoded(records: Iterator[Record]) -> Iterator[Change]:
    """What they change, but for kinds of records that we do not know."""
    changes = map(decode_change, records)
    return (change for change in changes if change is not None)
