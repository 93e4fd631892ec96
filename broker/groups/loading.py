"""A partition of `__consumer_offsets` is read before its groups are served.

Only committed records are read, so that nothing that was loaded is ever truncated. All records
that lay in the log at the election are read, so that nothing that was acknowledged is missing.
Groups are loading until the high watermark of the new leader has passed those records. One piece is
read at a time, so that a long log stops nothing else.

Records of transactions are skipped: transactional offsets are not implemented yet.

Source: Kafka's CoordinatorLoaderImpl.
"""

from dataclasses import dataclass, field

from broker.groups.offsets import GroupOffsets
from broker.groups.records import Change, GroupChange, GroupMetadata, OffsetChange, decode_change
from broker.partition.local_log import LocalLog
from broker.partition.partition import Partition
from quorum.core.effects import Event, ReadDone
from quorum.core.outbox import Answered
from wire.batch import Record, headers, records_of
from wire.varint import Malformed

__all__ = ["Contents", "Loading", "apply_offset", "load_end"]


@dataclass(slots=True)
class Contents:
    """The records say this so far."""

    groups: dict[str, GroupMetadata] = field(default_factory=dict)
    offsets: dict[str, GroupOffsets] = field(default_factory=dict)

    def apply(self, change: Change) -> None:
        match change:
            case GroupChange(metadata=None):
                self.groups.pop(change.group_id, None)
            case GroupChange(metadata=metadata):
                assert metadata is not None
                self.groups[change.group_id] = metadata
            case OffsetChange():
                apply_offset(self.offsets, change)


def apply_offset(offsets: dict[str, GroupOffsets], change: OffsetChange) -> None:
    place = (change.topic, change.partition)
    of_group = offsets.setdefault(change.group_id, {})
    if change.committed is not None:
        of_group[place] = change.committed
    else:
        of_group.pop(place, None)
        if not of_group:
            del offsets[change.group_id]


def load_end(log: LocalLog) -> int:
    """Up to where a new leader reads: a follower learns late how far its log is committed."""
    return log.end_offset


class Loading:
    def __init__(self, partition: Partition, *, bytes_max: int) -> None:
        self._log = partition.open_log
        self._bytes_max = bytes_max
        self._contents = Contents()
        self._next_offset = self._log.start_offset
        self._end_offset = load_end(self._log)
        self._is_reading = False
        self._is_over = False

    def go_on(self, answered: Answered) -> Contents | None:
        """Read the next piece, if it is committed. Returns the contents once all are read."""
        if self._is_reading or self._is_over:
            return None
        if self._next_offset >= self._end_offset:
            self._is_over = True
            return self._contents
        committed = min(self._log.high_watermark, self._end_offset)
        if self._next_offset < committed:
            self._is_reading = True
            self._log.read(
                start_offset=self._next_offset,
                end_offset=committed,
                bytes_max=self._bytes_max,
                answered=answered,
            )
        return None

    def cancel(self) -> None:
        self._is_over = True

    def take(self, event: Event) -> str | None:
        """A piece was read. Returns a sentence if it cannot be: then this is over."""
        self._is_reading = False
        if self._is_over:
            return None
        problem: str | None = None
        if isinstance(event, ReadDone) and event.records:
            try:
                self._apply(event.records)
            except Malformed as error:
                problem = str(error)
        else:
            problem = f"offset {self._next_offset} cannot be read"
        self._is_over = problem is not None
        return problem

    def _apply(self, records: bytes) -> None:
        """Applies the last record of each key: reading the others would take most of the time."""
        latest: dict[bytes | None, Record] = {}
        for position, header in headers(records):
            self._next_offset = header.next_offset
            if header.is_control or header.is_transactional:
                continue
            batch = records[position : position + header.size_bytes]
            latest.update((record.key, record) for record in records_of(batch))
        for record in latest.values():
            change = decode_change(record)
            if change is not None:
                self._contents.apply(change)
