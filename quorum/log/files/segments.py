"""One log on disk: segments of record batches, the last of which grows.

It is rolled when it or its index would become too large, or it spans too long a time (in record
timestamps: nothing here reads a clock). Nothing here syncs: `unsynced` names what has to be, and
`file_storage` does it. How a log is read back after a crash is told in `recovery`.

A log belongs to one thread at a time. Every failure is a `StorageError`, after which the log must
not be used any more.

Source: Kafka's LocalLog and LogSegments.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from quorum.core.effects import EpochStart
from quorum.core.log_settings import LogSettings
from quorum.core.producers import AbortedTransaction, ProducerEntry
from quorum.core.storage import StorageError
from quorum.core.types import OffsetAndEpoch
from quorum.log.epochs import EpochCache
from quorum.log.files.disk import Disk
from quorum.log.files.producer_snapshot import format_producers, is_whole, producers_path
from quorum.log.files.segment import Segment, batches_in
from quorum.log.files.timestamp_search import FoundTimestamp
from quorum.log.open_transactions import OpenTransactions
from wire.batch import BatchHeader, headers
from wire.primitives import INT32_MAX

__all__ = ["SegmentedLog", "Unsynced", "observe_epoch"]


_NO_PRODUCERS: tuple[int, tuple[ProducerEntry, ...]] = (-1, ())  # of no log's end


@dataclass(frozen=True, slots=True)
class Unsynced:
    """What must be synced, in this order, to make a log durable up to `end_offset`."""

    paths: tuple[str, ...]
    directory: str | None  # set if files came or went
    epochs: tuple[EpochStart, ...] | None  # set if they have changed
    end_offset: int


class SegmentedLog:
    """Append, read, truncate, trim. Made by `quorum.log.files.recovery.open_log`."""

    __slots__ = (
        "_cached",
        "_changes",
        "_changes_synced",
        "_changes_taken",
        "_disk",
        "_epochs_synced",
        "_open",
        "_producers",
        "_segments",
        "_unsynced",
        "directory",
        "epochs",
        "settings",
        "start_offset",
    )

    def __init__(
        self,
        disk: Disk,
        directory: str,
        settings: LogSettings,
        *,
        segments: list[Segment],
        epochs: EpochCache,
        start_offset: int,
        producers: Iterable[ProducerEntry] = (),
        is_new: bool = False,
    ) -> None:
        """`producers` are those that recovery knows of."""
        assert segments, "a log has at least one segment"
        assert start_offset >= segments[0].base_offset, (start_offset, segments[0].base_offset)
        self._disk = disk
        self.settings = settings
        self._segments = segments
        self._unsynced: list[Segment] = []  # in the order of offsets
        self._changes = int(is_new)  # how often files came or went
        self._changes_taken = self._changes_synced = 0  # by a sync that has begun, and has ended
        self._cached: Segment | None = None  # the segment that was read last
        self._producers = _NO_PRODUCERS
        producers = tuple(producers)
        has_transactions = any(p.coordinator_epoch >= 0 or p.transactions for p in producers)
        self._open = OpenTransactions(
            producers, last_offset=segments[-1].end_offset if has_transactions else -1
        )
        self._epochs_synced = epochs.changes  # recovery wrote the file
        self.directory = directory
        self.epochs = epochs
        self.start_offset = start_offset  # within the first segment, which goes as a whole

    @property
    def end_offset(self) -> int:
        return self._segments[-1].end_offset

    @property
    def starts_inside(self) -> bool:
        """Inside its first segment, which only a checkpoint can tell."""
        return self.start_offset > self._segments[0].base_offset

    @property
    def active_offset(self) -> int:
        """Where the active segment begins."""
        return self._segments[-1].base_offset

    @property
    def active_path(self) -> str:
        return self._segments[-1].path

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._segments)

    # --- writing ----------------------------------------------------------------------------

    def append(self, records: bytes, aborted: Sequence[AbortedTransaction] = ()) -> bool:
        """Write whole batches at the end, whose markers have `aborted` these.

        Says whether a segment was full and another began.
        """
        found = list(headers(records))
        assert found, "an append has at least one batch"
        first, last = found[0][1], found[-1][1]
        segment, end_offset = self._segments[-1], self.end_offset
        assert first.base_offset >= end_offset, (first.base_offset, end_offset)
        must_roll = not segment.has_room(first, last, len(records))
        if must_roll:  # where the log ends, lest a gap before `first` be taken for a loss
            segment = self._roll(max(segment.end_offset, last.last_offset - INT32_MAX))
        size_bytes = segment.size_bytes + len(records)
        segment.append(records, found, aborted)
        assert segment.size_bytes == size_bytes, "an append has whole batches"
        if not self._unsynced or self._unsynced[-1] is not segment:
            self._unsynced.append(segment)
        for _, header in found:
            self._open.observe(header)
        if first.leader_epoch != last.leader_epoch or not self.epochs.is_latest(first.leader_epoch):
            for _, header in found:
                observe_epoch(self.epochs, header, start_offset=end_offset)
                end_offset = header.next_offset
        return must_roll

    def truncate(self, end_offset: int) -> None:
        """Remove every batch that reaches `end_offset` or lies behind it."""
        if end_offset >= self.end_offset:
            return
        self._changes += 1
        self._producers = _NO_PRODUCERS
        while len(self._segments) > 1 and self._segments[-1].base_offset >= end_offset:
            self._segments.pop().remove()
        segment = self._segments[-1]
        if segment.base_offset > end_offset:  # below the start of the log: begin anew there
            self._segments.pop().remove()
            self._open = OpenTransactions()
            segment = self._add_segment(end_offset)
        else:
            segment.cut(end_offset)
            self._reopen_transactions(segment)
        self.start_offset = min(self.start_offset, self.end_offset)
        self.epochs.truncate(self.end_offset)
        kept = [earlier for earlier in self._unsynced if earlier in self._segments[:-1]]
        self._unsynced = [*kept, segment]

    def _reopen_transactions(self, segment: Segment) -> None:
        """The log ends with `segment` now; what began before it is noted there."""
        if self._open.last_offset < segment.end_offset:
            return
        producers = segment.transactions.open_at_start()
        if producers is None:
            raise StorageError(f"what is noted of transactions before {segment.path} is damaged")
        self._open = OpenTransactions(producers.values(), last_offset=segment.base_offset - 1)
        end = segment.size_bytes
        for _, header, _ in batches_in(self._disk, segment.path, position=0, end=end):
            self._open.observe(header)

    def segment_start(self, end_offset: int) -> int:
        """Where the segment begins with which a log ends that is truncated there."""
        if end_offset >= self.end_offset:
            return end_offset
        bases = [each.base_offset for each in self._segments if each.base_offset < end_offset]
        return max(bases, default=end_offset)

    def reset(self, start: OffsetAndEpoch) -> None:
        """Remove everything; the next record has the offset `start.offset`.

        The epoch before it is `start.epoch`; none is known if that is negative.
        """
        self._producers = _NO_PRODUCERS
        self._open = OpenTransactions()
        while self._segments:
            self._segments.pop().remove()
        segment = self._add_segment(start.offset)
        self.start_offset = start.offset
        self.epochs.truncate(0)
        if start.epoch >= 0:
            self.epochs.assign(start.epoch, start.offset)
        self._cached = None
        self._unsynced = [segment]
        self._changes += 1

    def trim(self, start_offset: int) -> list[Segment]:
        """Let the log start there; the segments that are no part of it any more, oldest first.

        Their files are the caller's to remove, in that order: what a crash leaves has no gap. They
        are synced before, if they were not: until they are removed, recovery reads them, and the
        recovery point lies behind them.
        """
        start_offset = min(start_offset, self.end_offset)
        if start_offset <= self.start_offset:
            return []
        if start_offset == self.end_offset and self._segments[-1].size_bytes:
            self._roll(start_offset)
        self.start_offset = start_offset
        self.epochs.truncate_start(start_offset)
        after = bisect_right(self._segments, start_offset, key=lambda each: each.base_offset)
        gone, self._segments = self._segments[: after - 1], self._segments[after - 1 :]
        if self._cached in gone:
            self._cached = None
        return gone

    def retained_from(self, *, end_offset: int, since_ms: int | None, bytes_max: int | None) -> int:
        """Where the log may start, segment by segment: see `Retain`."""
        start_offset = self.start_offset
        excess_bytes = 0 if bytes_max is None else self.size_bytes - bytes_max
        for segment in self._segments:
            is_empty = segment.size_bytes == 0  # compaction may leave that of a rolled one
            is_old = since_ms is not None and segment.youngest_ms() < since_ms
            is_excess = bytes_max is not None and excess_bytes >= segment.size_bytes
            is_safe = segment.end_offset <= end_offset
            if is_empty and segment is self._segments[-1]:
                break
            if not (is_safe and (is_old or is_excess or is_empty)):
                break
            excess_bytes -= segment.size_bytes
            start_offset = segment.end_offset
        return start_offset

    def oldest_ms(self) -> int:
        """The largest timestamp in the oldest segment."""
        return self._segments[0].youngest_ms()

    def configure(self, settings: LogSettings) -> None:
        """What was written stays as it is."""
        self.settings = replace(settings, preallocate_bytes=self.settings.preallocate_bytes)
        self._segments[-1].configure(self.settings)

    def note_producers(self, producers: Iterable[ProducerEntry], *, end_offset: int) -> None:
        """Those of the log that ends there; to be written if it still does when it is closed."""
        self._producers = (end_offset, tuple(producers))

    def write_producers(self) -> None:
        """For the next start. Where there are none, and the log's end is read in a moment, that
        will see so by itself."""
        end_offset, producers = self._producers
        end_bytes = sum(segment.size_bytes for segment in self._segments[-2:])
        is_worth_it = bool(producers) or end_bytes > self.settings.reread_bytes
        if end_offset == self.end_offset and is_worth_it and is_whole(producers):
            path = producers_path(self.directory, end_offset)
            self._disk.put(path, format_producers(producers))

    def finish(self) -> None:
        """Trim the active segment and write its indexes: nothing is appended to it any more."""
        segment = self._segments[-1]
        if segment.finish() and segment not in self._unsynced[-1:]:
            self._unsynced.append(segment)

    def _roll(self, base_offset: int) -> Segment:
        self.sync_names()
        self.finish()  # trimmed and indexed, which must be synced even if its batches are
        self._changes += 1
        return self._add_segment(base_offset)

    def sync_names(self) -> None:
        """No segment is on the medium without those before it: a log that seems to start later than
        it does would hide what its replicas have. A directory that changed is rarely unsynced here.
        """
        if self._changes_synced < self._changes:
            self._disk.sync_directory(self.directory)
            self._changes_synced = self._changes

    def _add_segment(self, base_offset: int) -> Segment:
        segment = Segment(self._disk, self.directory, self.settings, base_offset=base_offset)
        segment.create()
        segment.transactions.put_open(self._open.producers)
        self._segments.append(segment)
        return segment

    # --- compaction -------------------------------------------------------------------------

    @property
    def rolled(self) -> tuple[Segment, ...]:
        """Those that do not grow any more, the oldest first."""
        return tuple(self._segments[:-1])

    def has(self, segments: Sequence[Segment]) -> bool:
        """Are they still rolled segments of the log, as they were?"""
        return bool(segments) and set(segments) <= set(self._segments[:-1])

    def replace(self, segments: Sequence[Segment], cleaned: Segment) -> None:
        """Let `cleaned` stand for them. The files are the caller's."""
        first = self._segments.index(segments[0])
        assert self._segments[first : first + len(segments)] == list(segments)
        assert not set(segments) & set(self._unsynced), "they were synced"
        cleaned.end_offset = segments[-1].end_offset
        self._segments[first : first + len(segments)] = [cleaned]
        self._cached = None

    # --- durability -------------------------------------------------------------------------

    def unsynced(self) -> Unsynced:
        """What was written since the last call. A failure to sync it is final."""
        return self._take_unsynced(self._unsynced, [], self._segments[-1].end_offset)

    def unsynced_rolled(self) -> Unsynced:
        """The same without the active segment."""
        active = self._segments[-1]
        rolled = [segment for segment in self._unsynced if segment is not active]
        kept = self._unsynced[len(rolled) :]
        return self._take_unsynced(rolled, kept, active.base_offset)

    def _take_unsynced(
        self, segments: list[Segment], kept: list[Segment], end_offset: int
    ) -> Unsynced:
        paths: list[str] = []
        for segment in segments:
            paths += segment.unsynced_paths()
        directory = None if self._changes == self._changes_taken else self.directory
        epochs = None
        if self.epochs.changes != self._epochs_synced:
            epochs = self.epochs.entries
            self._epochs_synced = self.epochs.changes
        self._unsynced = kept
        self._changes_taken = self._changes
        return Unsynced(tuple(paths), directory, epochs, end_offset)

    def synced(self) -> None:
        """What was last named to be synced is on the medium."""
        self._changes_synced = self._changes_taken

    def forget(self) -> None:
        """Close its files."""
        for segment in self._segments:
            for path in (segment.path, *segment.transactions.paths):
                self._disk.forget(path)

    # --- reading ----------------------------------------------------------------------------

    def read(self, *, start_offset: int, end_offset: int, bytes_max: int) -> bytes:
        """Whole batches of one segment, the first of which holds `start_offset`, all below
        `end_offset`; at least one if there is one, however large."""
        end_offset = min(end_offset, self.end_offset)
        if not self.start_offset <= start_offset < end_offset:
            return b""
        after = bisect_right(self._segments, start_offset, key=lambda each: each.base_offset)
        for segment in self._segments[max(after - 1, 0) :]:
            position = segment.position_of(start_offset)
            if position < segment.size_bytes:
                self._keep_cache_of(segment)
                return segment.read(position, end_offset=end_offset, bytes_max=bytes_max)
        return b""

    def aborted_in(self, start_offset: int, end_offset: int) -> tuple[AbortedTransaction, ...]:
        """The aborted transactions with records between two offsets, wherever their markers are."""
        found: list[AbortedTransaction] = []
        after = bisect_right(self._segments, start_offset, key=lambda each: each.base_offset)
        for segment in self._segments[max(after - 1, 0) :]:
            more, are_all = segment.transactions.overlapping(start_offset, end_offset)
            found += more
            if are_all:
                break
        return tuple(found)

    def _keep_cache_of(self, segment: Segment) -> None:
        """Indexes of one segment besides the active one stay in memory: that of the last read."""
        if self._cached is not None and self._cached is not segment:
            self._cached.drop_cache()
        self._cached = segment

    def find_timestamp(self, timestamp_ms: int, *, end_offset: int) -> FoundTimestamp | None:
        """The first record below `end_offset` that is at least as young."""
        for segment in self._segments:
            if segment.base_offset >= end_offset:
                break
            if segment.max_timestamp_ms() >= timestamp_ms:
                found = segment.find_timestamp(
                    timestamp_ms, start_offset=self.start_offset, end_offset=end_offset
                )
                if found is not None:
                    self._keep_cache_of(segment)
                    return found
            segment.drop_cache()
        return None


def observe_epoch(epochs: EpochCache, header: BatchHeader, *, start_offset: int) -> None:
    """Take a batch into account that comes next at `start_offset`, or behind a gap from there on.

    What compaction has left out of that gap may have been of the batch's epoch. So the epoch begins
    with the gap: a follower that has other records there is sent back far enough. Batches of the
    oldest producers carry no epoch.
    """
    if header.leader_epoch >= 0 and not epochs.is_latest(header.leader_epoch):
        epochs.assign(header.leader_epoch, start_offset)
