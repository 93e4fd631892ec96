"""A node's disk on which the shipped storage runs, beside the model (`jepsen_like.sim.disks.disk`).

`quorum.log.files.file_storage` with all that it rests on, on a virtual file system with faults; its
threads are virtual time. The metadata log lies there. The logs of partitions lie there, too, or on
a model disk beside it, which loses its power at the same time. What was promised of those that lie
there is noted, and compared with what each start finds (promises.py, partition_ledgers.py).

A disk recovers as soon as its process has ended: nothing happens to it until the next one starts. A
process may die while it recovers, and meet a faulty disk, a few times in a row. A start that no
such fault explains must succeed (S-UP), and one on a damaged log must not (S-BF).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from stat import S_ISDIR
from typing import TypeVar
from uuid import UUID

from jepsen_like.sim.disks.disk import Disk, nobody
from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.disks.partition_ledgers import PartitionLedgers, read_all
from jepsen_like.sim.disks.promises import found, promise
from jepsen_like.sim.disks.virtual_files import Died, VirtualFiles
from jepsen_like.sim.disks.world_workers import QueuedWorkers, WorldWorkers
from jepsen_like.sim.logs.logtree import LogTree
from jepsen_like.sim.logs.stored_log import StoredLog, new_log
from jepsen_like.sim.logs.stored_snapshots import snapshot_file
from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.violation import Violation
from quorum.core.effects import (
    Append,
    Configure,
    DeleteLog,
    Event,
    FoundLog,
    LogState,
    OpenLog,
    Read,
    ResetLog,
    SaveElection,
    SaveHighWatermarks,
    SnapshotSaved,
    StorageFailed,
    Stored,
    Trimmed,
    Truncate,
)
from quorum.core.log_settings import LogSettings
from quorum.core.storage import METADATA_LOG, Loaded, StorageEffect, StorageError, StorageEvent
from quorum.core.types import ElectionState, OffsetAndEpoch
from quorum.log.files.disk import Disk as Files
from quorum.log.files.file_storage import FileStorage, StorageSettings
from quorum.log.files.jobs import Pool, Workers
from quorum.log.files.snapshot_files import snapshot_name
from wire.batch import headers
from wire.message import replace as replace_effect
from wire.primitives import METADATA_TOPIC_ID, ZERO_UUID

__all__ = ["FileOptions", "NodeDisk", "ShippedDisk"]

T = TypeVar("T")

_DATA = "/data"
_LOG = f"{_DATA}/{METADATA_LOG}"
_STARTS_MAX = 4  # in a row, of which the last meets no fault
_START_CALLS_MAX = 20  # of a start that the process does not survive


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """How the storage is set up, and what befalls it while a process starts."""

    segment_bytes: int = 8000
    preallocate_bytes: int = 0
    descriptors_max: int = 100
    inline_sync_us: int = 0  # the most that one may take in the driver's thread; 0: none
    dies_at_start: float = 0.0
    flips: float = 0.0  # chance that a start looks what it would do with a flipped bit
    voters: tuple[int, ...] = ()  # static ones
    holds_partitions: bool = False  # else the metadata log alone lies there
    partition_segment_bytes: int = 1 << 30


class ShippedDisk:
    """The disk of one node, with the interface of the model. It outlives every process."""

    def __init__(
        self,
        *,
        world: VirtualTime,
        random: Random,
        faults: DiskFaults,
        options: FileOptions,
        tree_of: Callable[[str, UUID], LogTree],
        beside: Disk,
    ) -> None:
        """`beside`: where the logs of partitions lie, unless they lie here, and what brokers save
        with them."""
        self._beside = beside
        self._logs: dict[str, StoredLog] = {}  # those that lie here
        self.logs = self._logs if options.holds_partitions else beside.logs
        self.high_watermarks, self.directories = beside.high_watermarks, beside.directories
        self.generation = 0
        self.is_damaged = False
        self.saved: Callable[[str, ElectionState], None] = lambda _log, _election: None
        self.syncs_at: Callable[[str], None] = lambda _moment: None  # there are no such moments
        self._world = world
        self._random = random
        self._faults = faults
        self._options = options
        self._tree_of = tree_of
        self._deliver: Callable[[Event], None] = nobody
        self._files = self._empty_files()
        self._workers: WorldWorkers | None = None
        self._storage: FileStorage | None = None
        self._loaded: Loaded | None = None  # by the storage, for the next process
        self._ledgers = PartitionLedgers(self._logs, tree_of)
        self._is_called = False  # the storage is: it wakes the process after that
        self._has_lost = False  # what was written, since a process was last given something to do
        world.counts.fired("shipped_storage")

    def _empty_files(self) -> VirtualFiles:
        files = VirtualFiles(
            self._random, fired=self._world.counts.fired, sync_seconds=lambda: self._sync_us() / 1e6
        )
        files.mkdir(_DATA)
        files.make_durable()
        return files

    # --- faults and time --------------------------------------------------------------------

    @property
    def faults(self) -> DiskFaults:
        return self._faults

    @faults.setter
    def faults(self, faults: DiskFaults) -> None:
        self._faults = self._files.faults = self._beside.faults = faults

    @property
    def syncs(self) -> int:
        return self._files.syncs + self._beside.syncs

    @property
    def busy_until_us(self) -> int:
        own_us = 0 if self._workers is None else self._workers.busy_until_us
        return max(own_us, self._beside.busy_until_us)

    def _sync_us(self) -> int:
        return self._faults.draw_sync_us(self._random)

    def _job_us(self, pool: Pool) -> int:
        return self._sync_us() * (self._faults.snapshot_syncs if pool is Pool.SNAPSHOT else 1)

    # --- starting ---------------------------------------------------------------------------

    def attach(self, deliver: Callable[[Event], None]) -> None:
        self._deliver = deliver
        self._beside.attach(deliver)

    def log(self, name: str, topic_id: UUID = ZERO_UUID) -> StoredLog:
        if not self._lies_here(name):
            return self._beside.log(name, topic_id)
        stored = self._logs.get(name)
        if stored is None:
            topic_id = METADATA_TOPIC_ID if name == METADATA_LOG else topic_id
            stored = self._logs[name] = new_log(self._tree_of, name, topic_id)
        return stored

    def _lies_here(self, name: str) -> bool:
        return self._options.holds_partitions or name == METADATA_LOG

    def format(self, snapshot_id: OffsetAndEpoch, content: bytes) -> None:
        disk = Files(system=self._files)
        disk.make_directory(_LOG)
        disk.replace(f"{_LOG}/{snapshot_name(snapshot_id)}", content)
        disk.close()
        self._files.make_durable()
        self.log(METADATA_LOG).snapshots.whole[snapshot_id] = content

    def recover(
        self, name: str, topic_id: UUID = METADATA_TOPIC_ID
    ) -> tuple[LogState, ElectionState]:
        if self._loaded is None:
            self._start()
        loaded, self._loaded = self._loaded, None
        assert loaded is not None, name
        return loaded.state, loaded.election

    def _start(self) -> None:
        for start in range(_STARTS_MAX):
            if self._starts(is_last=start == _STARTS_MAX - 1):
                break
        assert self._loaded is not None
        self._files.faults = DiskFaults()
        self._look()
        if self._options.holds_partitions:
            self._look_at_partitions()
        if self._random.random() < self._options.flips:
            self._try_with_damage()
        self._files.faults = self._faults

    def _starts(self, *, is_last: bool) -> bool:
        errors = self._files.errors
        self._files.faults = DiskFaults() if is_last else self._faults
        if not is_last and self._random.random() < self._options.dies_at_start:
            self._files.die_after(self._random.randrange(_START_CALLS_MAX))
        try:
            self._open()
        except Died:
            self._world.counts.fired("died_at_start")
            self._end(power_loss=self._random.random() < 0.5)
            return False
        except StorageError as error:
            if self._files.errors == errors:
                raise Violation("S-UP", f"no start on an undamaged disk: {error}") from error
            self._end(power_loss=False)
            return False
        self._files.die_after(None)
        return True

    def _open(self) -> None:
        """Raises `StorageError`, and `Died`."""
        self._workers = self._workers_on(self._files)
        self._storage = self._storage_on(self._files, self._workers)
        self._storage.wake_with(self._woken)
        self._loaded = self._storage.load(METADATA_LOG, METADATA_TOPIC_ID)

    def _workers_on(self, files: VirtualFiles) -> WorldWorkers:
        return WorldWorkers(
            world=self._world, random=self._random, files=files, delay_us=self._job_us
        )

    def _storage_on(self, files: VirtualFiles, workers: Workers) -> FileStorage:
        return FileStorage(
            _DATA,
            settings=self._settings(),
            disk=Files(descriptors_max=self._options.descriptors_max, system=files),
            workers=workers,
        )

    def _settings(self) -> StorageSettings:
        metadata = LogSettings(
            segment_bytes=self._options.segment_bytes,
            preallocate_bytes=self._options.preallocate_bytes,
            index_interval_bytes=500,
        )
        return StorageSettings(
            metadata=metadata,
            voters=self._options.voters,
            inline_sync_seconds=self._options.inline_sync_us / 1e6,
        )

    def _look(self) -> None:
        """At what the process has found."""
        assert self._loaded is not None
        state = self._loaded.state
        snapshots = {
            file.id: self._files.content(f"{_LOG}/{snapshot_name(file.id)}")
            for file in state.snapshots
        }
        election = self._loaded.election
        records = read_all(self._running, state)
        found(self.log(METADATA_LOG), state, records, election, snapshots)

    def _look_at_partitions(self) -> None:
        """Look at what a process would find, on a copy: it opens them later."""
        workers = QueuedWorkers()
        storage = self._storage_on(self._files.copy(), workers)
        lost, self._has_lost = self._has_lost, False
        self._ledgers.look(storage, workers, lost=lost)

    # --- ending -----------------------------------------------------------------------------

    def crash(self, *, power_loss: bool) -> None:
        self._beside.crash(power_loss=power_loss)
        self._deliver = nobody
        self._end(power_loss=power_loss)
        self._start()

    def _end(self, *, power_loss: bool) -> None:
        if self._workers is not None:
            self._workers.die()
        self._workers = self._storage = self._loaded = None
        self._has_lost |= self._files.crash(power_loss=power_loss)

    def close(self) -> None:
        self._running.close(broker_epoch=-1)
        self._heard(self._running.take_answers())

    @property
    def found(self) -> tuple[FoundLog, ...]:
        return self._running.found if self._options.holds_partitions else self._beside.found

    def wipe_partitions(self) -> None:
        assert self._deliver is nobody, "a process runs on this disk"
        self._beside.wipe_partitions()
        if not self._options.holds_partitions:
            return
        self._end(power_loss=False)
        self._files.faults = DiskFaults()
        disk = Files(system=self._files)
        for name in self._files.listdir(_DATA):
            path = f"{_DATA}/{name}"
            if S_ISDIR(self._files.stat(path).st_mode) and name != METADATA_LOG:
                disk.remove_tree(path)
        disk.close()
        self._files.make_durable()
        for log in [log for log in self._logs if log != METADATA_LOG]:
            del self._logs[log]
        self._start()

    def wipe(self) -> None:
        assert self._deliver is nobody, "a process runs on this disk"
        self._end(power_loss=True)
        self._logs.clear()
        self._files = self._empty_files()
        self._files.faults = self._faults
        self.generation += 1
        self.is_damaged = False
        self._beside.wipe()

    def damage(self) -> None:
        assert self._deliver is nobody, "a process runs on this disk"
        self.is_damaged = True

    def fail_directory(self, directory_id: UUID) -> None:
        self._beside.fail_directory(directory_id)

    def _try_with_damage(self) -> None:
        """On a copy: no process may start on a log in which a bit has flipped."""
        files = self._files.copy()
        flipped = self._flip_a_bit(files)
        if flipped is None:
            return
        self._world.counts.fired("bit_flipped")
        try:
            found = self._storage_on(files, self._workers_on(files)).load(
                METADATA_LOG, METADATA_TOPIC_ID
            )
        except StorageError:
            return
        raise Violation("S-BF", f"{flipped}, and a process finds {found.state}")

    def _flip_a_bit(self, files: VirtualFiles) -> str | None:
        """In a batch, the last one as likely as all others. None: there is none."""
        paths = [f"{_LOG}/{name}" for name in files.listdir(_LOG) if name.endswith(".log")]
        batches = [
            (path, position, header.size_bytes)
            for path in sorted(paths)
            for position, header in headers(files.content(path))
        ]
        if not batches:
            return None
        path, start, size = self._random.choice((batches[-1], self._random.choice(batches)))
        at, bit = self._random.randrange(size), self._random.randrange(8)
        files.flip(path, position=start + at, bit=bit)
        return f"bit {bit} of byte {at} has flipped in the batch at byte {start} of {path}"

    # --- effects and events -----------------------------------------------------------------

    @property
    def _running(self) -> FileStorage:
        assert self._storage is not None, "no process runs on this disk"
        return self._storage

    def perform(self, effect: StorageEffect) -> None:
        if not self._lies_here("" if isinstance(effect, SaveHighWatermarks) else effect.log):
            self._beside.perform(effect)
            return
        match effect:
            case Append() | Truncate() | SaveElection() | ResetLog():
                stored = self.log(effect.log)
                if not stored.failed:
                    stored.write(effect)
            case SaveHighWatermarks(entries=entries):
                self._ledgers.saves(entries)
            case DeleteLog(log=name):
                self._ledgers.deletes(name)
            case Read():
                self._ledgers.reads(effect)
            case OpenLog() | Configure():
                if isinstance(effect, OpenLog):
                    self._ledgers.opens(effect)
                effect = self._in_small_segments(effect)
        self._call(lambda storage: storage.perform(effect))

    def _in_small_segments(self, effect: OpenLog | Configure) -> OpenLog | Configure:
        """In the one directory that there is."""
        settings = effect.settings or LogSettings()
        small = replace(
            settings,
            segment_bytes=min(settings.segment_bytes, self._options.partition_segment_bytes),
            index_interval_bytes=500,
            reread_bytes=self._options.partition_segment_bytes,
        )
        if isinstance(effect, OpenLog):
            return replace_effect(effect, settings=small, directory_id=ZERO_UUID)
        return replace_effect(effect, settings=small)

    def take_failures(self) -> list[Event]:
        return self._heard(self._running.take_answers()) + self._beside.take_failures()

    def begin_syncs(self) -> list[Event]:
        return self._heard(self._call(FileStorage.take_events)) + self._beside.begin_syncs()

    def _call(self, work: Callable[[FileStorage], T]) -> T:
        self._is_called = True
        try:
            return work(self._running)
        finally:
            self._is_called = False

    def _woken(self) -> None:
        storage = self._running
        if self._is_called:
            self._world.after(0, lambda: self._woken() if storage is self._storage else None)
            return
        for event in self._heard(self._call(FileStorage.take_events)):
            if storage is self._storage:  # the process may end at any of them
                self._deliver(event)

    def _heard(self, events: list[StorageEvent]) -> list[Event]:
        """Note what the process is about to be told."""
        for event in events:
            self._note(event)
        return list(events)

    def _note(self, event: StorageEvent) -> None:
        match event:
            case Stored(log=name, token=token):
                stored = self.log(name)
                before = stored.election
                promise(stored, token)
                if stored.election is not before:
                    self.saved(name, stored.election)
            case SnapshotSaved(log=name, file=file):
                content = self._files.content(f"{_LOG}/{snapshot_name(file.id)}")
                if snapshot_file(file.id, content) != file:
                    raise Violation("S-DU", f"{file} is said of another snapshot")
                self.log(name).snapshots.whole[file.id] = content
            case Trimmed(log=name, start_offset=start_offset) if name == METADATA_LOG:
                stored = self.log(name)
                stored.written.trim(stored.written.index_of(start_offset))
                stored.snapshots.remove_before(start_offset)
            case StorageFailed(log=name) if name in self._logs:
                self.log(name).failed = True
            case _:
                self._ledgers.note(event)


NodeDisk = Disk | ShippedDisk
