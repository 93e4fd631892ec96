"""One cleaning of one log: its dirty segments give a map of keys, then group by group is rewritten.

The segments are rolled and below the last stable offset, so nobody writes to them: a round reads
them beside whatever else happens to the log. Each group becomes one `.cleaned` segment, which the
log then takes in its place (`swapping`). Only after the last one is noted up to where the log is
clean, so that a crash on the way costs the round and nothing else. A round is given up when the log
is truncated, trimmed or deleted.

It keeps within `bytes_per_second`, read and written, and pauses for as long as it has worked: it
shares one interpreter with everything else.

Source: Kafka's Cleaner (doClean, buildOffsetMap, cleanSegments), Throttler.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from quorum.core.log_settings import CleaningOrder, LogSettings
from quorum.core.storage import StorageError
from quorum.log.cleaned_batches import Cleaner, KeyMap
from quorum.log.cleaned_transactions import AbortedTransactions
from quorum.log.cleaning_choice import Choice, Extent, NotDue, choose, grouped
from quorum.log.files.disk import Disk
from quorum.log.files.jobs import Workers
from quorum.log.files.segment import Segment, batches_in
from quorum.log.files.segments import SegmentedLog
from quorum.log.files.swapping import CLEANED
from wire.batch import BatchHeader, CorruptBatch, headers
from wire.varint import Buffer, Malformed

__all__ = ["Round", "choice_for"]

_WRITE_BYTES = 1 << 20
_PIECE_BYTES = 256 << 10  # between two pauses
_PAUSE_SECONDS_MAX = 0.1


class _Cancelled(Exception):
    """Nobody wants this round any more."""


def choice_for(log: SegmentedLog, order: CleaningOrder, *, cleaned_to: int) -> Choice | NotDue:
    """`cleaned_to` is what was noted; where it is not in the log any more, all of it is dirty."""
    is_known = log.start_offset <= cleaned_to <= log.end_offset
    dirty_offset = cleaned_to if is_known else log.start_offset
    return choose(_extents(log), dirty_offset=dirty_offset, order=order)


def _extents(log: SegmentedLog) -> list[Extent]:
    return [
        Extent(
            base_offset=segment.base_offset,
            end_offset=segment.end_offset,
            size_bytes=segment.size_bytes,
            first_ms=segment.first_ms(),
            youngest_ms=segment.youngest_ms(),
        )
        for segment in log.rolled
    ]


@dataclass(slots=True, kw_only=True)
class _Pace:
    workers: Workers
    bytes_per_second: float
    is_cancelled: bool = False
    done_bytes: int = 0
    _paused_at: int = 0
    _began: float = -1.0
    _busy_from: float = 0.0  # in seconds of this thread

    def spend(self, size_bytes: int) -> None:
        """Note bytes that were read or written; wait if it is time to. Raises `_Cancelled`."""
        self.done_bytes += size_bytes
        if self.done_bytes - self._paused_at < _PIECE_BYTES:
            return
        self._paused_at = self.done_bytes
        now, busy_to = self.workers.seconds(), time.thread_time()
        if self._began < 0:
            self._began, self._busy_from = now, busy_to
        due = self._began + self.done_bytes / self.bytes_per_second
        until = max(due, now + min(busy_to - self._busy_from, _PAUSE_SECONDS_MAX))
        for _ in range(1 + int((until - now) / _PAUSE_SECONDS_MAX)):
            if self.is_cancelled:
                raise _Cancelled
            self.workers.sleep(min(until - now, _PAUSE_SECONDS_MAX))
        self._busy_from = time.thread_time()


@dataclass(slots=True, kw_only=True)
class Round:
    """Its jobs run one after the other. Everything but `cancel` belongs to them while they do."""

    disk: Disk
    directory: str
    settings: LogSettings
    order: CleaningOrder
    groups: list[tuple[Segment, ...]]  # those to be cleaned yet, the first one next
    keys: KeyMap
    pace: _Pace
    group: tuple[Segment, ...] = ()  # the one that was cleaned last
    replaced: list[Segment] = field(default_factory=list)  # whose files are still there
    unended: set[int] = field(default_factory=set)  # producers with batches of a transaction so far
    _is_mapped: bool = False
    _path: str = ""  # of the segment that is read

    @staticmethod
    def of(
        log: SegmentedLog, choice: Choice, order: CleaningOrder, *, disk: Disk, workers: Workers
    ) -> "Round":
        rules = order.rules
        rolled = log.rolled[: choice.count]
        index_bytes = [segment.index_bytes() for segment in rolled]
        counts = grouped(_extents(log)[: choice.count], index_bytes, log.settings)
        segments = iter(rolled)
        aborted = log.aborted_in(rolled[0].base_offset, rolled[-1].end_offset)
        return Round(
            disk=disk,
            directory=log.directory,
            settings=log.settings,
            order=order,
            groups=[tuple(next(segments) for _ in range(count)) for count in counts],
            keys=KeyMap(choice.dirty_offset, rules.map_bytes_max, AbortedTransactions(aborted)),
            pace=_Pace(workers=workers, bytes_per_second=rules.bytes_per_second),
        )

    @property
    def is_cancelled(self) -> bool:
        return self.pace.is_cancelled

    def cancel(self) -> None:
        self.pace.is_cancelled = True

    # --- jobs -------------------------------------------------------------------------------

    def clean_next(self) -> Segment | None:
        """Clean the next group into a segment beside it. None if nothing of it goes."""
        try:
            return self._clean_next()
        except _Cancelled:
            return None
        except Malformed as error:
            raise StorageError(f"{self._path} is damaged: {error}") from error

    def _clean_next(self) -> Segment | None:
        self.remove_replaced()
        if not self._is_mapped:
            self._map()
            end_offset = self.keys.end_offset
            self.groups = [each for each in self.groups if each[0].base_offset < end_offset]
            self._is_mapped = True
        group = self.group = self.groups.pop(0)
        base_offset = group[0].base_offset
        cleaned = Segment(
            self.disk, self.directory, self.settings, base_offset=base_offset, suffix=CLEANED
        )
        has_changed = False
        try:
            has_changed = self._write(group, cleaned) or len(group) > 1
        finally:
            if not has_changed:
                cleaned.remove()
        return cleaned if has_changed else None

    def remove_replaced(self) -> None:
        while self.replaced:
            self.replaced.pop().remove()

    def _map(self) -> None:
        """Read the dirty part, as far as there is room for its keys."""
        keys = self.keys
        for segment in [each for group in self.groups for each in group]:
            if segment.end_offset <= keys.end_offset:
                continue
            for header, batch in self._batches_of(segment):
                if header.last_offset >= keys.end_offset:
                    if keys.is_full and keys.offsets:
                        return
                    keys.add(batch, header)
            keys.end_offset = max(keys.end_offset, segment.end_offset)

    def _write(self, group: tuple[Segment, ...], cleaned: Segment) -> bool:
        """Returns whether anything has changed."""
        cleaner = Cleaner(
            keys=self.keys,
            now_ms=self.order.now_ms,
            delete_retention_ms=self.order.rules.delete_retention_ms,
            end_offset=group[-1].end_offset,
            last_batches=self.order.last_batches,
            last_epochs=self.order.last_epochs,
            unended=self.unended,
        )
        cleaned.create()
        has_changed, kept = self._note_open(group[0], cleaned), bytearray()
        for segment in group:
            for header, batch in self._batches_of(segment):
                left = cleaner.clean(batch, header)
                has_changed = has_changed or left is not batch
                kept += left
                if len(kept) >= _WRITE_BYTES:
                    kept = self._append(cleaned, kept)
        if kept:
            self._append(cleaned, kept)
        cleaned.transactions.replace(cleaner.aborted)
        cleaned.finish()
        return has_changed

    def _note_open(self, before: Segment, cleaned: Segment) -> bool:
        """Note the open transactions at the start of `cleaned` that have batches before it.

        A transaction without any is left out: its marker may have been removed, and a recovery
        that knew of it would wait for that marker for ever. Returns whether there was one.
        """
        noted = before.transactions.open_at_start()
        if noted is None:
            raise CorruptBatch("what is noted of transactions that are open at its start")
        left = {each: entry for each, entry in noted.items() if each in self.unended}
        cleaned.transactions.put_open(left)
        return len(left) < len(noted)

    def _append(self, cleaned: Segment, kept: bytearray) -> bytearray:
        records = bytes(kept)
        cleaned.append(records, list(headers(records)))
        self.pace.spend(len(records))
        return bytearray()

    def _batches_of(self, segment: Segment) -> Iterator[tuple[BatchHeader, Buffer]]:
        """Read all batches of a segment. Raises `CorruptBatch` if that ends before it should."""
        read, self._path = 0, segment.path
        for position, header, batch in batches_in(
            self.disk, segment.path, position=0, end=segment.size_bytes
        ):
            read = position + header.size_bytes
            self.pace.spend(header.size_bytes)
            yield header, batch
        if read != segment.size_bytes:
            raise CorruptBatch(f"no batch at byte {read}")
