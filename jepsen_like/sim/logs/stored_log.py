"""One log on a simulated disk: what the process sees, what the medium holds, what lies between.

What is WRITTEN is visible at once and lost in a power cut; what is SYNCED stays. Between the two
contents, `written` and `durable`, stand the operations that wait for a sync, in order. A crash
keeps a prefix of those and may tear the next one. Saving an election is all or nothing, in its
place among the others; a log that was about to begin anew may be left with a part of what it held.
A trimmed log may have its old start again after a crash: nobody syncs the removal of files.

Recovery reads back what a real one would: whole batches whose checksum holds, and not a byte after;
no snapshot from before the log; and a log that ends before its newest snapshot begins anew there.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import assert_never
from uuid import UUID

from jepsen_like.sim.counts import Counts
from jepsen_like.sim.logs.content import Content
from jepsen_like.sim.logs.logtree import Entry, LogTree
from jepsen_like.sim.logs.stored_snapshots import StoredSnapshots
from jepsen_like.sim.violation import Violation
from quorum.core.effects import (
    Append,
    Durability,
    FindTimestamp,
    LogState,
    Read,
    ResetLog,
    Retain,
    SaveElection,
    TimestampFound,
    Token,
    Truncate,
)
from quorum.core.producers import AbortedTransaction, ProducerEntry, observe
from quorum.core.storage import METADATA_LOG
from quorum.core.types import ElectionState, OffsetAndEpoch
from wire.batch import CorruptBatch, headers, is_intact, read_header
from wire.transaction_markers import read_marker

__all__ = ["StoredLog", "WriteEffect", "new_log", "overlapping", "producers_in"]

WriteEffect = Append | Truncate | SaveElection | ResetLog


@dataclass(slots=True)
class _Waiting:
    """An operation that is written and not yet durable."""

    effect: WriteEffect
    entries: list[Entry]  # of an Append


@dataclass(slots=True)
class StoredLog:
    tree: LogTree
    topic_id: UUID
    has_snapshots: bool = True  # what lies before its start is in one
    segment_batches: int = 1  # only whole segments of so many batches are trimmed
    written: Content = field(default_factory=lambda: Content([]))
    durable: Content = field(default_factory=lambda: Content([]))
    aborted: list[AbortedTransaction] = field(default_factory=list)  # whose markers are written
    snapshots: StoredSnapshots = field(default_factory=StoredSnapshots)
    election: ElectionState = field(default_factory=ElectionState)  # durable: there is no other
    waiting: list[_Waiting] = field(default_factory=list)
    wanted: Token | None = None  # the last operation that asked for a sync and waits for it
    syncing: bool = False
    failed: bool = False
    torn: bytes = b""  # what lies on the medium after the last whole operation
    start_max: int = 0  # the latest start that it was ever given
    _trimmed_to: int = 0  # by this process

    @property
    def size_bytes(self) -> int:
        return sum(len(entry.records) for entry in self.written.entries)

    # --- while a process runs -----------------------------------------------------------

    def write(self, effect: WriteEffect) -> None:
        entries: list[Entry] = []
        wants_sync = True
        match effect:
            case Append():
                entries = self.tree.extend(
                    self.written.last, effect.records, is_guessed=self.written.is_origin_guessed
                )
                assert sum(len(entry.records) for entry in entries) == len(effect.records)
                self.written.entries += entries
                self.aborted += effect.aborted
                wants_sync = effect.durability is Durability.SYNCED
            case Truncate():
                self.written.truncate(effect.end_offset)
                end_offset = self.written.end_offset
                self.aborted = [each for each in self.aborted if each.last_offset < end_offset]
                wants_sync = effect.durability is Durability.SYNCED
            case ResetLog():
                self.written = self.anew(effect.start)
                self.aborted = []
                self.start_max = max(self.start_max, effect.start.offset)
                self._trimmed_to = 0
            case SaveElection():
                pass
            case _:
                assert_never(effect)
        self.waiting.append(_Waiting(effect, entries))
        if wants_sync:
            self.wanted = effect.token

    def anew(self, start: OffsetAndEpoch) -> Content:
        """An empty log that begins there, after the history that it stands for."""
        if start.epoch < 0:
            return Content([], self.tree.latest_before(start.offset), start)
        origin = self.tree.ending_at(start)
        if origin is None and start.offset > 0:
            raise Violation("R-SS", f"a log begins anew at {start}, where no record ends")
        return Content([], origin, start)

    def trim(self, start_offset: int) -> None:
        """Whole segments before it go, and the snapshots that end before it."""
        self.start_max = max(self.start_max, start_offset)
        count = self.written.index_of(start_offset)
        if count:
            self.tree.let_go(self.written.entries[count - 1])
        first = self.written.entries[0].index if self.written.entries else 0
        count -= (first + count) % self.segment_batches
        self.written.trim(max(0, count))
        self._trimmed_to = self.written.start_offset
        self.snapshots.remove_before(start_offset)

    def retained_from(self, effect: Retain) -> int:
        """Where the log may start by that: whole batches go, as each were a segment."""
        start_offset = self.written.start_offset
        excess = 0 if effect.bytes_max is None else self.size_bytes - effect.bytes_max
        for entry in self.written.entries:
            size = len(entry.records)
            is_old = (
                effect.since_ms is not None
                and read_header(entry.records).max_timestamp_ms < effect.since_ms
            )
            is_excess = effect.bytes_max is not None and excess >= size
            if entry.next_offset > effect.end_offset or not (is_old or is_excess):
                break
            excess -= size
            start_offset = entry.next_offset
        return start_offset

    def make_durable(self, count: int) -> None:
        """The first `count` waiting operations are on the medium."""
        for waiting in self.waiting[:count]:
            match waiting.effect:
                case Append():
                    for entry in waiting.entries:
                        entry.is_public = True
                    self.durable.entries += waiting.entries
                case Truncate(end_offset=end_offset):
                    self.durable.truncate(end_offset)
                case ResetLog(start=start):
                    self.durable = self.anew(start)
                case SaveElection(election=election):
                    self.election = election
                case _:
                    assert_never(waiting.effect)
        del self.waiting[:count]

    # --- crash and recovery -------------------------------------------------------------

    def crash(self, random: Random, counts: Counts, *, power_loss: bool, tear: bool) -> None:
        """Keep what the medium would hold, and forget the rest."""
        keep = self._survivors(random, power_loss=power_loss or self.failed)
        lost = self.waiting[keep:]
        self.make_durable(keep)
        if lost and isinstance(lost[0].effect, Append) and tear:
            self.torn = _torn(lost[0].effect.records, random)
        if lost and isinstance(lost[0].effect, ResetLog):  # segment by segment, the last one first
            del self.durable.entries[random.randint(0, len(self.durable.entries)) :]
        if any(isinstance(waiting.effect, Append) for waiting in lost):
            counts.fired("lost_tail")
        if any(isinstance(waiting.effect, SaveElection) for waiting in lost):
            counts.fired("lost_election")
        self.waiting = lost
        self.lose_unsynced()
        self.wanted = None
        self._trim_durable(random, counts, power_loss=power_loss)
        self.snapshots.crash(random, counts, power_loss=power_loss)
        self.written = self.durable.copy()
        self.syncing = False
        self.failed = False

    def lose_unsynced(self) -> None:
        for waiting in self.waiting:
            for entry in waiting.entries:
                self.tree.forget(entry)
        self.waiting.clear()

    def _survivors(self, random: Random, *, power_loss: bool) -> int:
        """How many of the waiting operations reach the medium although no sync has said so."""
        count = len(self.waiting)
        if power_loss:
            return random.choice((0, random.randint(0, count), count))
        # The process alone dies: the system still has what was written. Saving an election,
        # truncating or beginning anew takes several steps, so the process may die before any of
        # them, with all that comes after.
        steps = [
            place
            for place, waiting in enumerate(self.waiting)
            if isinstance(waiting.effect, SaveElection | Truncate | ResetLog)
        ]
        return random.choice((*steps, count))

    def _trim_durable(self, random: Random, counts: Counts, *, power_loss: bool) -> None:
        """Some of what was trimmed may be there again."""
        count = sum(entry.next_offset <= self._trimmed_to for entry in self.durable.entries)
        if count and power_loss and random.random() < 0.5:
            counts.fired("trim_undone")
            count = random.randrange(count)
        self.durable.trim(count)
        self._trimmed_to = 0

    def recover(self, counts: Counts) -> None:
        """Keep of a torn write the whole batches that are sound."""
        sound = _sound_bytes(self.torn)
        if sound < len(self.torn):
            counts.fired("torn_write")
        entries = self.tree.extend(self.durable.last, self.torn[:sound])
        for entry in entries:
            entry.is_public = True
        self.durable.entries += entries
        self.torn = b""
        self._agree_with_snapshots()
        self.written = self.durable.copy()
        _, self.aborted = producers_in(self.written.entries)

    def _agree_with_snapshots(self) -> None:
        newest = self.snapshots.newest
        if newest is not None and not self.durable.end.is_at_least(newest):
            self.durable = self.anew(newest)
        self.snapshots.remove_before(self.durable.start_offset)
        start_offset = self.durable.start_offset
        if not self.has_snapshots:
            return
        if start_offset > 0 and self.snapshots.newest is None and self.durable.start.epoch >= 0:
            raise Violation("R-SS", f"a log starts at {start_offset}, and no snapshot is there")

    def state(self, name: str, high_watermark: int) -> LogState:
        durable = self.durable
        epochs = durable.epochs()
        producers, _ = producers_in(durable.entries)
        return LogState(
            log=name,
            topic_id=self.topic_id,
            start_offset=durable.start_offset,
            end_offset=durable.end_offset,
            last_epoch=epochs[-1].epoch if epochs else -1,
            epochs=epochs,
            high_watermark=min(high_watermark, durable.end_offset),
            producers=tuple(producers.values()),
            size_bytes=self.size_bytes,
            snapshots=self.snapshots.files(),
            control_batches=tuple(entry.records for entry in durable.entries if entry.is_control),
        )

    # --- reading ------------------------------------------------------------------------

    def aborted_in(self, records: bytes) -> tuple[AbortedTransaction, ...]:
        """What is told of whole batches that were read."""
        found = [header for _, header in headers(records)]
        if not found or not self.aborted:
            return ()
        return overlapping(self.aborted, found[0].base_offset, found[-1].next_offset)

    def read(self, effect: Read) -> bytes:
        """Nothing where the log no longer reaches back so far."""
        chunks: list[bytes] = []
        size_bytes = 0
        entries = self.written.entries
        if effect.start_offset < self.written.start_offset:
            return b""
        for index in range(self.written.index_of(effect.start_offset), len(entries)):
            entry = entries[index]
            size_bytes += len(entry.records)
            if entry.next_offset > effect.end_offset:
                break
            if chunks and size_bytes > effect.bytes_max:
                break
            chunks.append(entry.records)
        return b"".join(chunks)

    def find(self, effect: FindTimestamp) -> TimestampFound:
        for entry in self.written.entries:
            header = read_header(entry.records)
            if entry.next_offset <= effect.end_offset and (
                header.max_timestamp_ms >= effect.timestamp_ms
            ):
                return TimestampFound(
                    token=effect.token,
                    log=effect.log,
                    offset=entry.base_offset,
                    timestamp_ms=header.base_timestamp_ms,
                    leader_epoch=entry.epoch,
                )
        return TimestampFound(
            token=effect.token, log=effect.log, offset=-1, timestamp_ms=-1, leader_epoch=-1
        )


def new_log(tree_of: Callable[[str, UUID], LogTree], name: str, topic_id: UUID) -> StoredLog:
    """An empty one."""
    tree = tree_of(name, topic_id)
    return StoredLog(tree=tree, topic_id=topic_id, has_snapshots=name == METADATA_LOG)


def _sound_bytes(tail: bytes) -> int:
    """How much of `tail` is whole batches with a checksum that holds."""
    sound = 0
    try:
        for position, header in headers(tail):
            if not is_intact(tail, position, header):
                break
            sound = position + header.size_bytes
    except CorruptBatch:
        return sound
    return sound


def _torn(records: bytes, random: Random) -> bytes:
    """The beginning of a write, or all of its length with zeros where sectors did not make it."""
    cut = random.randrange(len(records))
    return records[:cut] + bytes(len(records) - cut) if random.random() < 0.5 else records[:cut]


def producers_in(
    entries: Iterable[Entry],
) -> tuple[dict[int, ProducerEntry], list[AbortedTransaction]]:
    """Returns the producers that batches name, and the transactions that these have aborted."""
    producers: dict[int, ProducerEntry] = {}
    aborted: list[AbortedTransaction] = []
    for entry in entries:
        header = read_header(entry.records)
        marker = read_marker(entry.records, header) if header.is_control else None
        ended = observe(producers, header, marker)
        if ended is not None:
            aborted.append(ended)
    return producers, aborted


def overlapping(
    aborted: Sequence[AbortedTransaction], start_offset: int, end_offset: int
) -> tuple[AbortedTransaction, ...]:
    """Those with records between two offsets."""
    return tuple(
        each
        for each in aborted
        if each.first_offset < end_offset and start_offset <= each.last_offset
    )
