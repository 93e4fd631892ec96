"""The metadata log as its core sees it: where it starts and ends, and what of it is safe.

Books, and the newest batches in memory (`tail`). The other bytes are on disk, put there by `Append`
and `Truncate` effects. It knows neither roles nor peers.

    start_offset ... high_watermark ... synced_offset ... end_offset
                     committed          survives a        next to be
                                        power failure     written

The synced offset and the high watermark are independent of each other: a majority may have
committed what this replica has not synced yet.

What lies before the start is in a snapshot. A snapshot holds nothing but what is committed, so the
newest one says how far that goes before any leader does.

Source: Kafka's ReplicatedLog and KafkaRaftLog; Raft thesis 3.5 and 5; KIP-630.
"""

from collections import deque
from collections.abc import Iterable

from quorum.core.effects import EpochStart, LogState, SnapshotFile
from quorum.core.types import OffsetAndEpoch
from quorum.log import fetch
from quorum.log.epochs import EpochCache
from quorum.log.fetch import Diverging, TooFarBehind, UnknownEpoch, Valid
from quorum.log.tail import Tail
from wire.batch import BatchHeader

__all__ = ["BOOTSTRAP_SNAPSHOT", "QuorumLog"]

# The first voters as `format` left them: for this node alone, never told to another.
BOOTSTRAP_SNAPSHOT = OffsetAndEpoch(offset=0, epoch=0)
_VALID = Valid()


class QuorumLog:
    __slots__ = (
        "_syncing",
        "appended_records",
        "committed_offset",
        "end_offset",
        "epochs",
        "high_watermark",
        "last_epoch",
        "size_bytes",
        "snapshots",
        "start_offset",
        "synced_offset",
        "tail",
    )

    def __init__(self, state: LogState) -> None:
        """What recovery found has been synced by it."""
        self.start_offset = state.start_offset
        self.end_offset = state.end_offset  # exclusive
        self.synced_offset = state.end_offset  # <= end_offset
        self.size_bytes = state.size_bytes
        self.snapshots = state.snapshots  # ascending, the bootstrap snapshot among them
        self.epochs = EpochCache(state.epochs)
        self.last_epoch = state.last_epoch if state.last_epoch >= 0 else self._epoch_at_end()
        self._begin_at_snapshot()
        latest = self.latest_snapshot
        is_held = latest is not None and self.holds(latest.id)
        self.high_watermark = latest.id.offset if latest is not None and is_held else None
        # All before it may be delivered; the start of the log while nothing is known.
        self.committed_offset = self.start_offset
        if self.high_watermark is not None:
            self.committed_offset = self.high_watermark
        self._syncing: deque[tuple[int, int]] = deque()  # (token number, end offset once stored)
        self.tail = Tail()
        self.appended_records = 0  # in this life, control records too

    def _begin_at_snapshot(self) -> None:
        """Whole segments are deleted: the disk may hold a little from before the first snapshot."""
        covering = tuple(f for f in self.snapshots if f.id.offset >= self.start_offset)
        if self.start_offset > 0 and covering and covering[0].id.offset <= self.end_offset:
            self.snapshots = covering
            self.start_offset = covering[0].id.offset
            self.epochs.truncate_start(self.start_offset)

    @property
    def end(self) -> OffsetAndEpoch:
        return OffsetAndEpoch(offset=self.end_offset, epoch=self.last_epoch)

    def append(
        self, records: bytes, headers: Iterable[BatchHeader], *, syncing: int | None
    ) -> None:
        """The batches `records` were written at the end; `headers` are theirs.

        `syncing` is the token whose `Stored` makes them safe. None if nothing will be waited for:
        then they count as synced at once.
        """
        start_offset = self.end_offset
        for header in headers:
            assert header.base_offset == self.end_offset, (header.base_offset, self.end_offset)
            assert header.leader_epoch >= self.last_epoch, (header.leader_epoch, self.last_epoch)
            self.epochs.assign(header.leader_epoch, header.base_offset)
            self.end_offset = header.next_offset
            self.last_epoch = header.leader_epoch
            self.appended_records += header.record_count
        self.size_bytes += len(records)
        self.tail.append(start_offset, self.end_offset, records)
        if syncing is None:
            self.synced_offset = self.end_offset
        else:
            self._syncing.append((syncing, self.end_offset))

    def truncate(self, end_offset: int, *, syncing: int | None) -> None:
        """Everything from `end_offset` on is gone. What is committed never goes (KAFKA-12460)."""
        assert end_offset >= self.committed_offset, (end_offset, self.committed_offset)
        assert end_offset <= self.end_offset, (end_offset, self.end_offset)
        self.end_offset = end_offset
        self.tail.clear()
        self.epochs.truncate(end_offset)
        self.last_epoch = self._epoch_at_end()
        self.synced_offset = min(self.synced_offset, end_offset)
        self._syncing = deque((number, min(end, end_offset)) for number, end in self._syncing)
        if syncing is None:
            self.synced_offset = self.end_offset
        else:
            self._syncing.append((syncing, self.end_offset))

    def stored(self, number: int) -> None:
        """Everything up to token `number` is synced."""
        while self._syncing and self._syncing[0][0] <= number:
            self.synced_offset = max(self.synced_offset, self._syncing.popleft()[1])
        assert self.synced_offset <= self.end_offset, (self.synced_offset, self.end_offset)

    def is_synced(self) -> bool:
        """Nothing written or truncated waits for a sync."""
        return not self._syncing

    def advance_high_watermark(self, offset: int) -> bool:
        """It only grows; a smaller value is old news. Says whether it grew."""
        assert self.start_offset <= offset <= self.end_offset, (offset, self.end_offset)
        if self.high_watermark is not None and offset <= self.high_watermark:
            return False
        self.high_watermark = self.committed_offset = offset
        return True

    # --- as leader ----------------------------------------------------------------------------

    def check(
        self, *, fetch_offset: int, last_fetched_epoch: int
    ) -> Valid | Diverging | TooFarBehind:
        """Is a log that ends there a prefix of ours? Never undefined here (KIP-595).

        A fetcher whose last record is of our last epoch has nothing that we lack, unless it has
        more records: an epoch has one leader, which wrote it once.
        """
        is_within = self.start_offset < fetch_offset <= self.end_offset
        if is_within and last_fetched_epoch == self.last_epoch:
            return _VALID
        snapshots = tuple(file.id for file in self.snapshots if file.id != BOOTSTRAP_SNAPSHOT)
        behind = fetch.too_far_behind(
            OffsetAndEpoch(fetch_offset, last_fetched_epoch),
            start_offset=self.start_offset,
            snapshots=snapshots,
        )
        if behind is not None:
            return behind
        if fetch_offset == 0:
            return _VALID
        position = fetch.check_fetch_position(
            self.epochs,
            end_offset=self.end_offset,
            fetch_offset=fetch_offset,
            last_fetched_epoch=last_fetched_epoch,
        )
        match position:
            case UnknownEpoch():
                return Diverging(epoch=self.last_epoch, end_offset=self.end_offset)
            case Diverging():
                return fetch.diverging_at_start(
                    position, start_offset=self.start_offset, snapshots=snapshots
                )
            case Valid():
                return position

    # --- snapshots ----------------------------------------------------------------------------

    @property
    def latest_snapshot(self) -> SnapshotFile | None:
        """The newest that holds anything."""
        if self.snapshots and self.snapshots[-1].id != BOOTSTRAP_SNAPSHOT:
            return self.snapshots[-1]
        return None

    def snapshot(self, snapshot_id: OffsetAndEpoch) -> SnapshotFile | None:
        """One that may be served."""
        if snapshot_id == BOOTSTRAP_SNAPSHOT:
            return None
        return next((file for file in self.snapshots if file.id == snapshot_id), None)

    def holds(self, end: OffsetAndEpoch) -> bool:
        """Is all before `end` in this log, or before its start?"""
        if end.offset <= self.start_offset:
            return True
        return end.offset <= self.end_offset and self.epochs.epoch_at(end.offset - 1) == end.epoch

    def epoch_before(self, end_offset: int) -> int:
        """The epoch of the last record before `end_offset`."""
        assert self.start_offset < end_offset <= self.end_offset, (end_offset, self.end_offset)
        return self.epochs.epoch_at(end_offset - 1)

    def add_snapshot(self, file: SnapshotFile) -> None:
        assert self.start_offset <= file.id.offset <= self.committed_offset, file.id
        others = (other for other in self.snapshots if other.id != file.id)
        self.snapshots = tuple(
            sorted((*others, file), key=lambda each: (each.id.offset, each.id.epoch))
        )

    def trim(self, start_offset: int) -> None:
        """Begin later, where a snapshot ends."""
        assert self.start_offset <= start_offset <= self.committed_offset, start_offset
        self.start_offset = start_offset
        self.committed_offset = max(self.committed_offset, start_offset)
        self.epochs.truncate_start(start_offset)
        self.snapshots = tuple(file for file in self.snapshots if file.id.offset >= start_offset)
        assert any(file.id.offset == start_offset for file in self.snapshots), start_offset

    def reset(self, file: SnapshotFile, *, syncing: int) -> None:
        """Begin anew where a snapshot ends, of which all is committed and durable."""
        start = file.id
        assert start.offset >= self.committed_offset, (start, self.committed_offset)
        self.start_offset = self.end_offset = self.synced_offset = start.offset
        self.last_epoch = start.epoch
        self.high_watermark = self.committed_offset = start.offset
        self.size_bytes = 0
        self.tail.clear()
        self.epochs = EpochCache([EpochStart(start.epoch, start.offset)])
        self.snapshots = (file,)
        self._syncing.clear()
        self._syncing.append((syncing, start.offset))

    def _epoch_at_end(self) -> int:
        """The epoch of the last record; 0 if there never was one, as Kafka has it."""
        epoch = max(
            (f.id.epoch for f in self.snapshots if f.id.offset == self.end_offset), default=0
        )
        latest = self.epochs.latest
        return epoch if latest is None else latest.epoch

    # --- as follower --------------------------------------------------------------------------

    def truncation_point(self, diverging: Diverging) -> int:
        return fetch.truncation_point(self.epochs, end_offset=self.end_offset, diverging=diverging)
