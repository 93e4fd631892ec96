"""A disk in memory that keeps the contract of `quorum.effects` and breaks every promise beyond it.

What is WRITTEN is visible at once and lost in a power cut; what is SYNCED stays. Each log holds two
contents: `written`, which the process sees, and `durable`, which a crash leaves, and between them
the operations that wait for a sync, in order. A crash keeps a prefix of those and may tear the next
one; a failed sync is final. Saving an election is all or nothing, in its place among the others.

One sync serves every operation that was waiting when it began, and its `Stored` names only the last
of them: group commit as the contract describes it. Logs are independent.

Recovery reads back what a real one would: whole batches whose checksum holds, and not a byte after.
It also syncs, as a real one must: what a restarted node saw may not vanish in the next power cut.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import assert_never
from uuid import UUID

from jepsen_like.sim.counts import Counts
from jepsen_like.sim.logtree import Entry, LogTree
from jepsen_like.sim.world import World
from quorum.effects import (
    Append,
    DeleteLog,
    Durability,
    EpochStart,
    Event,
    FindTimestamp,
    LogState,
    Opened,
    OpenLog,
    Read,
    ReadDone,
    SaveCheckpoint,
    SaveElection,
    StorageFailed,
    Stored,
    TimestampFound,
    Token,
    Truncate,
)
from quorum.producers import ProducerEntry, observe
from quorum.types import ElectionState
from wire.batch import CorruptBatch, headers, is_intact, read_header
from wire.primitives import ZERO_UUID

__all__ = ["Content", "Disk", "DiskFaults", "StorageEffect", "StoredLog"]

StorageEffect = (
    Append | Truncate | SaveElection | Read | FindTimestamp | OpenLog | DeleteLog | SaveCheckpoint
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFaults:
    """How slow and how treacherous a disk is. Chances are per sync or per crash."""

    sync_us_min: int = 50
    sync_us_mean: int = 200  # on top of the minimum, exponentially distributed
    read_us: int = 20
    fsync_failure: float = 0.0
    torn_write: float = 0.0


class Content:
    """A log as one reader sees it."""

    __slots__ = ("entries",)

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries

    @property
    def last(self) -> Entry | None:
        return self.entries[-1] if self.entries else None

    @property
    def end_offset(self) -> int:
        return self.entries[-1].next_offset if self.entries else 0

    def index_of(self, offset: int) -> int:
        """The index of the entry that holds `offset`, or the number of entries."""
        return bisect_right(self.entries, offset, key=lambda entry: entry.next_offset)

    def truncate(self, end_offset: int) -> None:
        del self.entries[self.index_of(end_offset) :]

    def holds(self, entry: Entry) -> bool:
        return len(self.entries) > entry.index and self.entries[entry.index] is entry

    def epochs(self) -> tuple[EpochStart, ...]:
        starts: list[EpochStart] = []
        for entry in self.entries:
            if not starts or starts[-1].epoch != entry.epoch:
                starts.append(EpochStart(entry.epoch, entry.base_offset))
        return tuple(starts)


@dataclass(slots=True)
class _Waiting:
    """An operation that is written and not yet durable."""

    effect: Append | Truncate | SaveElection
    entries: list[Entry]  # of an Append


@dataclass(slots=True)
class StoredLog:
    """One log directory: what the process sees, what the medium holds, what lies between."""

    tree: LogTree
    topic_id: UUID
    written: Content = field(default_factory=lambda: Content([]))
    durable: Content = field(default_factory=lambda: Content([]))
    election: ElectionState = field(default_factory=ElectionState)  # durable: there is no other
    waiting: list[_Waiting] = field(default_factory=list)
    wanted: Token | None = None  # the last operation that asked for a sync and waits for it
    syncing: bool = False
    failed: bool = False
    torn: bytes = b""  # what lies on the medium after the last whole operation

    def write(self, effect: Append | Truncate | SaveElection) -> None:
        entries: list[Entry] = []
        wants_sync = True
        match effect:
            case Append():
                entries = self.tree.extend(self.written.last, effect.records)
                assert sum(len(entry.records) for entry in entries) == len(effect.records)
                self.written.entries += entries
                wants_sync = effect.durability is Durability.SYNCED
            case Truncate():
                self.written.truncate(effect.end_offset)
                wants_sync = effect.durability is Durability.SYNCED
            case SaveElection():
                pass
            case _:
                assert_never(effect)
        self.waiting.append(_Waiting(effect, entries))
        if wants_sync:
            self.wanted = effect.token

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
                case SaveElection(election=election):
                    self.election = election
                case _:
                    assert_never(waiting.effect)
        del self.waiting[:count]

    def crash(self, random: Random, counts: Counts, *, power_loss: bool, tear: bool) -> None:
        """Keep what the medium would hold, and forget the rest."""
        keep = self._survivors(random, power_loss=power_loss or self.failed)
        lost = self.waiting[keep:]
        self.make_durable(keep)
        if lost and isinstance(lost[0].effect, Append) and tear:
            self.torn = _torn(lost[0].effect.records, random)
        if any(isinstance(waiting.effect, Append) for waiting in lost):
            counts.fired("lost_tail")
        if any(isinstance(waiting.effect, SaveElection) for waiting in lost):
            counts.fired("lost_election")
        for waiting in lost:
            for entry in waiting.entries:
                self.tree.forget(entry)
        self.waiting.clear()
        self.wanted = None
        self.written = Content(list(self.durable.entries))
        self.syncing = False
        self.failed = False

    def _survivors(self, random: Random, *, power_loss: bool) -> int:
        """How many of the waiting operations reach the medium although no sync has said so."""
        count = len(self.waiting)
        if power_loss:
            return random.choice((0, random.randint(0, count), count))
        # The process alone dies: the system still has what was written. Saving an election takes
        # several steps, so the process may die before any of them, with all that comes after.
        elections = [
            place
            for place, waiting in enumerate(self.waiting)
            if isinstance(waiting.effect, SaveElection)
        ]
        return random.choice((*elections, count))

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
        self.written = Content(list(self.durable.entries))

    def state(self, name: str, high_watermark: int) -> LogState:
        last = self.durable.last
        producers: dict[int, ProducerEntry] = {}
        for entry in self.durable.entries:
            observe(producers, read_header(entry.records))
        return LogState(
            log=name,
            topic_id=self.topic_id,
            end_offset=self.durable.end_offset,
            last_epoch=-1 if last is None else last.epoch,
            epochs=self.durable.epochs(),
            high_watermark=min(high_watermark, self.durable.end_offset),
            producers=tuple(producers.values()),
        )

    def read(self, effect: Read) -> bytes:
        chunks: list[bytes] = []
        size_bytes = 0
        entries = self.written.entries
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


class Disk:
    """The disk of one node. It outlives every process of the node."""

    def __init__(
        self,
        *,
        world: World,
        random: Random,
        counts: Counts,
        faults: DiskFaults,
        tree_of: Callable[[str], LogTree],
    ) -> None:
        self.logs: dict[str, StoredLog] = {}
        self.checkpoints: dict[str, tuple[tuple[str, int, int], ...]] = {}
        self.faults = faults
        self.saved: Callable[[str, ElectionState], None] = lambda _log, _election: None
        self._world = world
        self._random = random
        self._counts = counts
        self._tree_of = tree_of
        self._deliver: Callable[[Event], None] = _nobody
        self._generation = 0  # completions of an earlier process are dropped
        self._read_done_us = 0

    def attach(self, deliver: Callable[[Event], None]) -> None:
        """A new process runs on this disk and gets its completions."""
        self._deliver = deliver

    def log(self, name: str, topic_id: UUID = ZERO_UUID) -> StoredLog:
        stored = self.logs.get(name)
        if stored is None:
            stored = self.logs[name] = StoredLog(tree=self._tree_of(name), topic_id=topic_id)
        return stored

    def recover(self, name: str, topic_id: UUID = ZERO_UUID) -> tuple[LogState, ElectionState]:
        stored = self.log(name, topic_id)
        stored.recover(self._counts)
        return stored.state(name, self._checkpointed(name)), stored.election

    def _checkpointed(self, name: str) -> int:
        """The high watermark of a partition as its broker last saved it."""
        for entries in self.checkpoints.values():
            for topic, partition, offset in entries:
                if f"{topic}-{partition}" == name:
                    return offset
        return 0

    def crash(self, *, power_loss: bool) -> None:
        self._generation += 1
        self._deliver = _nobody
        self._read_done_us = 0
        for stored in self.logs.values():
            tear = self._random.random() < self.faults.torn_write
            stored.crash(self._random, self._counts, power_loss=power_loss, tear=tear)

    def perform(self, effect: StorageEffect) -> None:
        """Carry out one effect; `begin_syncs` follows after the last of those taken together."""
        match effect:
            case SaveCheckpoint(name=name, entries=entries):
                self.checkpoints[name] = entries
            case DeleteLog(log=name):
                self.logs.pop(name, None)
            case OpenLog(log=name, topic_id=topic_id, token=token):
                state, _ = self.recover(name, topic_id)
                self._later(self._sync_us(), Opened(token=token, state=state))
            case Append() | Truncate() | SaveElection():
                stored = self.log(effect.log)
                if not stored.failed:
                    stored.write(effect)
            case Read(token=token, log=name):
                stored = self.log(name)
                if not stored.failed:
                    records = stored.read(effect)
                    self._answer(ReadDone(token=token, log=name, records=records))
            case FindTimestamp(log=name):
                stored = self.log(name)
                if not stored.failed:
                    self._answer(stored.find(effect))
            case _:
                assert_never(effect)

    def begin_syncs(self) -> None:
        for name, stored in self.logs.items():
            if not stored.syncing and not stored.failed:
                self._begin_sync(name, stored)

    def _begin_sync(self, name: str, stored: StoredLog) -> None:
        covered, token = len(stored.waiting), stored.wanted
        if token is None:
            return
        stored.wanted = None
        stored.syncing = True
        generation = self._generation

        def done() -> None:
            if generation == self._generation:
                self._sync_done(name, stored, covered, token)

        self._world.after(self._sync_us(), done)

    def _sync_done(self, name: str, stored: StoredLog, covered: int, token: Token) -> None:
        stored.syncing = False
        if self._random.random() < self.faults.fsync_failure:
            stored.failed = True
            self._counts.fired("fsync_failed")
            self._deliver(StorageFailed(log=name, token=token, reason="fsync failed (injected)"))
            return
        before = stored.election
        stored.make_durable(covered)
        if stored.election is not before:
            self.saved(name, stored.election)
        self._deliver(Stored(log=name, token=token))
        self.begin_syncs()

    def _sync_us(self) -> int:
        extra = self._random.expovariate(1 / self.faults.sync_us_mean)
        return self.faults.sync_us_min + int(extra)

    def _answer(self, event: Event) -> None:
        """Reads are answered in the order in which they were asked."""
        due_us = self._world.now_us + self._random.randint(1, 2 * self.faults.read_us)
        self._read_done_us = max(self._read_done_us, due_us)
        self._later(self._read_done_us - self._world.now_us, event)

    def _later(self, delay_us: int, event: Event) -> None:
        generation = self._generation

        def done() -> None:
            if generation == self._generation:
                self._deliver(event)

        self._world.after(delay_us, done)


def _nobody(event: Event) -> None:
    raise AssertionError(f"a disk without a process has nobody to tell {event}")


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
