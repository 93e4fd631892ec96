"""A disk in memory that keeps the contract of `quorum.core.effects` and no promise beyond it.

One sync serves every operation that was waiting when it began, and its `Stored` names only the last
of them: group commit as the contract describes it. A failed write or sync is final for its log.
Logs are independent; snapshots are written beside them, in no order with the log's own operations.

What a log holds, and what of it a crash leaves, is in `jepsen_like.sim.logs.stored_log`.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import assert_never
from uuid import UUID

from jepsen_like.sim.disks.node_disk import DataDirectories, DiskFaults
from jepsen_like.sim.logs.logtree import LogTree
from jepsen_like.sim.logs.stored_log import StoredLog, WriteEffect, new_log
from jepsen_like.sim.logs.stored_snapshots import is_whole
from jepsen_like.sim.time.virtual_time import Action, VirtualTime
from quorum.core.cleaning import Clean, Cleaned
from quorum.core.effects import (
    Append,
    Configure,
    DeleteLog,
    Event,
    FindTimestamp,
    FoundLog,
    LogState,
    Opened,
    OpenLog,
    Read,
    ReadDone,
    ReadSnapshot,
    ReceiveSnapshot,
    ResetLog,
    Retain,
    SaveElection,
    SaveHighWatermarks,
    SaveProducers,
    SaveSnapshot,
    SnapshotRead,
    SnapshotSaved,
    StorageFailed,
    Stored,
    Token,
    Trim,
    Trimmed,
    Truncate,
)
from quorum.core.storage import METADATA_LOG, SnapshotEffect, StorageEffect
from quorum.core.types import ElectionState, OffsetAndEpoch
from wire.primitives import METADATA_TOPIC_ID, ZERO_UUID

__all__ = ["Disk", "nobody"]

_UNASKED = Token("broker", 0)  # nobody waits for it


class Disk:
    """The disk of one node. It outlives every process of the node."""

    def __init__(
        self,
        *,
        world: VirtualTime,
        random: Random,
        faults: DiskFaults,
        tree_of: Callable[[str, UUID], LogTree],
    ) -> None:
        self.logs: dict[str, StoredLog] = {}
        self.high_watermarks: dict[str, int] = {}  # by log, as a broker last saved them
        self.directories = DataDirectories()
        self.faults = faults
        self.generation = 0  # how often it was wiped
        self.is_damaged = False  # a bit has flipped in what was synced: no node starts on it
        self.syncs = 0  # begun so far
        self.saved: Callable[[str, ElectionState], None] = lambda _log, _election: None
        self.syncs_at: Callable[[str], None] = lambda _moment: None  # "begun", "due", "done"
        self._world = world
        self._random = random
        self._inline = world.fork("inline syncs")  # a stream of its own: others keep their order
        self._inline_share = self._inline.choice((0.0, 0.5, 1.0))
        self._tree_of = tree_of
        self._deliver: Callable[[Event], None] = nobody
        self._failures: list[Event] = []  # of the effects performed since the last look
        self._has_written = False  # something that no sync that has begun covers
        self._life = 0  # completions of an earlier process are dropped
        self.held_reads: dict[str, list[Event]] = {}  # by log: a script says when they are answered
        self._read_done_us = 0
        self.busy_until_us = 0  # all that is under way: a sync that is slow stays so

    def attach(self, deliver: Callable[[Event], None]) -> None:
        """A new process runs on this disk and gets its completions."""
        self._deliver = deliver

    def log(self, name: str, topic_id: UUID = ZERO_UUID) -> StoredLog:
        """What the process has written, and what it was promised to be durable."""
        stored = self.logs.get(name)
        if stored is None:
            stored = self.logs[name] = new_log(self._tree_of, name, topic_id)
            stored.segment_batches = self.faults.segment_batches
        return stored

    def recover(self, name: str, topic_id: UUID = ZERO_UUID) -> tuple[LogState, ElectionState]:
        stored = self.log(name, topic_id)
        stored.recover(self._world.counts)
        return stored.state(name, self.high_watermarks.get(name, 0)), stored.election

    def crash(self, *, power_loss: bool) -> None:
        self._life += 1
        self.held_reads.clear()
        self._deliver = nobody
        self._read_done_us = 0
        self.busy_until_us = 0
        self._failures.clear()
        for stored in self.logs.values():
            tear = self._random.random() < self.faults.torn_write
            if power_loss and not self.faults.keeps_unsynced:
                stored.lose_unsynced()
            stored.crash(self._random, self._world.counts, power_loss=power_loss, tear=tear)

    @property
    def found(self) -> tuple[FoundLog, ...]:
        """The partition logs that a new process is told of.

        None where all lie in one place: no broker asked for them yet.
        """
        if len(self.directories.ids) < 2:
            return ()
        return self.directories.found((log, each.topic_id) for log, each in self.logs.items())

    def wipe_partitions(self) -> None:
        """All of them are lost, while no process runs."""
        assert self._deliver is nobody, "a process runs on this disk"
        for log in [log for log in self.logs if log != METADATA_LOG]:
            del self.logs[log]
        self.high_watermarks.clear()
        self.directories.clear()

    def wipe(self) -> None:
        """Everything on it is lost, while no process runs."""
        assert self._deliver is nobody, "a process runs on this disk"
        self.logs.clear()
        self.high_watermarks.clear()
        self.directories.clear()
        self.generation += 1
        self.is_damaged = False

    def damage(self) -> None:
        """A bit flips in what was synced, while no process runs."""
        self.is_damaged = True

    def close(self) -> None:
        """What an orderly stop leaves, a crash may leave."""

    def format(self, snapshot_id: OffsetAndEpoch, content: bytes) -> None:
        """Leave a first snapshot of the metadata log on an empty disk."""
        self.log(METADATA_LOG, METADATA_TOPIC_ID).snapshots.whole[snapshot_id] = content

    # --- effects ------------------------------------------------------------------------

    def perform(self, effect: StorageEffect) -> None:
        """Carry out one effect; `begin_syncs` follows after the last of those taken together."""
        if self.directories.unreadable and (failed := self.directories.failed(effect)) is not None:
            self._refuse(effect, failed)
            return
        if isinstance(effect, OpenLog | DeleteLog) and self.directories.note(effect):
            self.logs.pop(effect.log, None)
        match effect:
            case SaveHighWatermarks(entries=entries):
                self.high_watermarks |= {f"{topic}-{index}": at for topic, index, at in entries}
            case DeleteLog(log=name):
                self.logs.pop(name, None)
                self.high_watermarks.pop(name, None)
            case Configure() | SaveProducers():
                pass  # neither segments nor files are modelled
            case OpenLog(log=name, topic_id=topic_id, token=token):
                state, _ = self.recover(name, topic_id)
                if len(self.directories.ids) > 1:
                    state = replace(state, directory_id=self.directories.homes[name])
                self._later(self._sync_us(), Opened(token=token, state=state))
            case _:
                stored = self.log(effect.log)
                if not stored.failed:
                    self._perform_on(stored, effect)

    def fail_directory(self, directory_id: UUID) -> None:
        """One of several cannot be used any more; the process hears so."""
        self.directories.unreadable.add(directory_id)
        life = self._life
        for name in self.directories.logs_in(directory_id):
            if life == self._life and self._deliver is not nobody:  # it may end there
                self._deliver(_lost(name, _UNASKED, directory_id))

    def _refuse(self, effect: StorageEffect, directory_id: UUID) -> None:
        """Say so: what would have been answered later, and at once that a write has failed."""
        match effect:
            case Append() | Truncate() | ResetLog():
                self._failures.append(_lost(effect.log, effect.token, directory_id))
            case OpenLog() | Read() | FindTimestamp() | Trim() | Retain() | Clean():
                self._later(0, _lost(effect.log, effect.token, directory_id))

    def _perform_on(
        self,
        stored: StoredLog,
        effect: WriteEffect | Read | FindTimestamp | Trim | Retain | Clean | SnapshotEffect,
    ) -> None:
        match effect:
            case Append() | Truncate() | SaveElection() | ResetLog():
                self._write(stored, effect)
            case Read(token=token, log=name):
                records = stored.read(effect)
                aborted = stored.aborted_in(records) if effect.wants_aborted else ()
                self._answer(ReadDone(token=token, log=name, records=records, aborted=aborted))
            case FindTimestamp():
                self._answer(stored.find(effect))
            case Trim(token=token, log=name) | Retain(token=token, log=name):
                stored.trim(
                    effect.start_offset
                    if isinstance(effect, Trim)
                    else stored.retained_from(effect)
                )
                trimmed = Trimmed(
                    token=token,
                    log=name,
                    start_offset=stored.written.start_offset,
                    size_bytes=stored.size_bytes,
                )
                self._later(self._sync_us(), trimmed)
            case Clean(token=token, log=name):  # there is never enough to clean
                cleaned = Cleaned(token=token, log=name, size_bytes=stored.size_bytes, next_ms=None)
                self._later(0, cleaned)
            case SaveSnapshot(content=content):
                self._draw_later(stored, effect, content)
            case ReceiveSnapshot():
                self._receive(stored, effect)
            case ReadSnapshot():
                self._answer(self._read_snapshot(stored, effect))
            case _:
                assert_never(effect)

    def _write(self, stored: StoredLog, effect: WriteEffect) -> None:
        if self._random.random() < self.faults.write_failure:
            stored.failed = True
            self._world.counts.fired("write_failed")
            self._failures.append(
                StorageFailed(log=effect.log, token=effect.token, reason="no space (injected)")
            )
        else:
            stored.write(effect)
            self._has_written = True

    def take_failures(self) -> list[Event]:
        """The writes that failed at once: nothing that rests on them has left yet."""
        failures, self._failures = self._failures, []
        return failures

    # --- syncs --------------------------------------------------------------------------

    def begin_syncs(self) -> list[Event]:
        """Sync what a turn has written; returns what the inline syncs have led to."""
        ended: list[Event] = []
        if self._has_written:
            self._begin_syncs(ended.append)
        return ended

    def _begin_syncs(self, tell: Callable[[Event], None]) -> None:
        wanting = [each for each in self.logs.items() if each[1].wanted is not None]
        self._has_written = bool(wanting)
        for name, stored in wanting:
            if not stored.syncing and not stored.failed:
                self._begin_sync(name, stored, tell)

    def _begin_sync(self, name: str, stored: StoredLog, tell: Callable[[Event], None]) -> None:
        """`tell` is given the outcome of an inline sync; any other is delivered when it is due."""
        covered, token = len(stored.waiting), stored.wanted
        if token is None:
            return
        stored.wanted = None
        stored.syncing = True
        self.syncs += 1
        self.syncs_at("begun")
        delay_us = self._sync_us()
        if self.faults.inline_syncs and self._inline.random() < self._inline_share:
            self._sync(name, stored, covered, token, tell)
            return

        def due() -> None:
            self._sync(name, stored, covered, token, self._deliver)
            if not stored.failed:
                self._begin_syncs(self._deliver)

        self._after(delay_us, due)

    def _sync(
        self,
        name: str,
        stored: StoredLog,
        covered: int,
        token: Token,
        tell: Callable[[Event], None],
    ) -> None:
        self.syncs_at("due")
        stored.syncing = False
        if stored.failed or self._fails(stored, name, token, tell):
            return
        before = stored.election
        stored.make_durable(covered)
        if stored.election is not before:
            self.saved(name, stored.election)
        self.syncs_at("done")
        tell(Stored(log=name, token=token))

    def _fails(
        self, stored: StoredLog, name: str, token: Token, tell: Callable[[Event], None]
    ) -> bool:
        """A failed sync is final for its log."""
        if self._random.random() >= self.faults.fsync_failure:
            return False
        stored.failed = True
        self._world.counts.fired("fsync_failed")
        tell(StorageFailed(log=name, token=token, reason="fsync failed (injected)"))
        return True

    # --- snapshots ----------------------------------------------------------------------

    def _draw_later(
        self, stored: StoredLog, effect: SaveSnapshot, content: Iterator[bytes]
    ) -> None:
        """Draw the content some time from now, when the core has changed."""

        def draw() -> None:
            self._rename(stored, effect.log, effect.token, effect.id, b"".join(content))

        self._after(self._snapshot_us(), draw)

    def _receive(self, stored: StoredLog, effect: ReceiveSnapshot) -> None:
        content = stored.snapshots.receive(effect)
        if content is None:
            return
        if is_whole(effect.id, content):
            self._world.counts.fired("snapshot_received")
            self._rename(stored, effect.log, effect.token, effect.id, content)
        else:
            self._later(self._sync_us(), _no_snapshot(effect.token, effect.log))

    def _rename(
        self, stored: StoredLog, name: str, token: Token, end: OffsetAndEpoch, content: bytes
    ) -> None:
        stored.snapshots.rename(end, content)

        def renamed() -> None:
            if not stored.failed and not self._fails(stored, name, token, self._deliver):
                file = stored.snapshots.renamed(end, content)
                self._deliver(SnapshotSaved(token=token, log=name, file=file))

        self._after(self._snapshot_us(), renamed)

    def _read_snapshot(self, stored: StoredLog, effect: ReadSnapshot) -> SnapshotRead:
        content = stored.snapshots.whole.get(effect.id)
        if content is None:
            return _no_snapshot(effect.token, effect.log)
        length = effect.bytes_max
        if length > 1 and self._random.random() < self.faults.short_read:
            length = self._random.randrange(1, length)
            self._world.counts.fired("short_read")
        records = content[effect.position : effect.position + length]
        return SnapshotRead(
            token=effect.token, log=effect.log, size_bytes=len(content), records=records
        )

    # --- time ---------------------------------------------------------------------------

    def _sync_us(self) -> int:
        return self.faults.draw_sync_us(self._random)

    def _snapshot_us(self) -> int:
        return self._sync_us() * self.faults.snapshot_syncs

    def _answer(self, event: Event) -> None:
        """Reads are answered in the order in which they were asked."""
        if isinstance(event, ReadDone) and event.log in self.held_reads:
            self.held_reads[event.log].append(event)
            return
        due_us = self._world.now_us + self._random.randint(1, 2 * self.faults.read_us)
        self._read_done_us = max(self._read_done_us, due_us)
        self._later(self._read_done_us - self._world.now_us, event)

    def let_reads_go(self, log: str) -> None:
        for event in self.held_reads.pop(log):
            self._later(0, event)

    def _later(self, delay_us: int, event: Event) -> None:
        self._after(delay_us, lambda: self._deliver(event))

    def _after(self, delay_us: int, action: Action) -> None:
        """Act after `delay_us`, unless the process has ended by then."""
        life = self._life

        def due() -> None:
            if life == self._life:
                action()

        self.busy_until_us = max(self.busy_until_us, self._world.now_us + delay_us)
        self._world.after(delay_us, due)


def _no_snapshot(token: Token, log: str) -> SnapshotRead:
    return SnapshotRead(token=token, log=log, size_bytes=-1, records=b"")


def _lost(log: str, token: Token, directory_id: UUID) -> StorageFailed:
    reason = "its directory has failed (injected)"
    return StorageFailed(log=log, token=token, reason=reason, directory_id=directory_id)


def nobody(event: Event) -> None:
    raise AssertionError(f"a disk without a process has nobody to tell {event}")
