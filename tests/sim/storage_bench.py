"""The shipped storage alone on a virtual disk: random effects, crashes, starts; and what it finds.

Batches are all of one size, so that what a lost truncation leaves may begin where a batch ends.
"""

from collections.abc import Iterator
from random import Random
from uuid import UUID

from jepsen_like.sim.disks.disk import Disk
from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.disks.shipped_disk import FileOptions, ShippedDisk
from jepsen_like.sim.logs.logtree import LogTree
from jepsen_like.sim.time.virtual_time import VirtualTime
from quorum.core.effects import (
    Append,
    Durability,
    Event,
    OpenLog,
    ReceiveSnapshot,
    ResetLog,
    SaveElection,
    SaveSnapshot,
    SnapshotSaved,
    StorageFailed,
    Stored,
    Token,
    Trim,
    Truncate,
)
from quorum.core.storage import METADATA_LOG, StorageEffect
from quorum.core.types import ElectionState, OffsetAndEpoch
from quorum.log.snapshots import snapshot_content, snapshot_head
from wire.batch import assign, data_batch

__all__ = ["StorageBench", "append_in_files", "in_files", "on_files", "run_storage"]

_STEPS = 80


class StorageBench:
    """A disk, its process's mailbox, and numbered effects."""

    def __init__(
        self, seed: int, *, options: FileOptions | None = None, faults: DiskFaults | None = None
    ) -> None:
        self.world = VirtualTime(seed)
        self.counts = self.world.counts
        self.tree = LogTree()
        beside = Disk(
            world=self.world,
            random=Random(f"{seed}/disk"),
            faults=faults or DiskFaults(),
            tree_of=lambda _name, _topic_id: self.tree,
        )
        self.disk = ShippedDisk(
            world=self.world,
            random=Random(f"{seed}/files"),
            faults=faults or DiskFaults(),
            options=options or FileOptions(),
            tree_of=lambda _name, _topic_id: self.tree,
            beside=beside,
        )
        self.durability = Durability.SYNCED
        self.events: list[Event] = []
        self.epoch = 0
        self._number = 0
        self.start()

    def start(self) -> None:
        self.disk.attach(lambda event: self.events.append(event))
        state, election = self.disk.recover(METADATA_LOG)
        self.end_offset, self.start_offset = state.end_offset, state.start_offset
        self.epoch = max(self.epoch, election.epoch, state.last_epoch) + 1
        self.snapshots = [file.id for file in state.snapshots]
        self.floor = max((file.id.offset for file in state.snapshots), default=0)
        self._received: OffsetAndEpoch | None = None
        self.has_failed = False

    def token(self) -> Token:
        self._number += 1
        return Token("raft", self._number)

    def perform(self, effect: StorageEffect) -> None:
        self.disk.perform(effect)
        self._take(self.disk.take_failures())

    def append(self) -> Token:
        records = _batch(self.end_offset, self.epoch)
        self.end_offset += 1
        token = self.token()
        self.perform(
            Append(log=METADATA_LOG, token=token, records=records, durability=self.durability)
        )
        return token

    def truncate(self, end_offset: int) -> Token:
        self.end_offset = end_offset
        self.epoch += 1
        token = self.token()
        self.perform(
            Truncate(
                log=METADATA_LOG, token=token, end_offset=end_offset, durability=self.durability
            )
        )
        return token

    def save_election(self) -> Token:
        self.epoch += 1
        token = self.token()
        election = ElectionState(epoch=self.epoch)
        self.perform(SaveElection(log=METADATA_LOG, token=token, election=election))
        return token

    def save_snapshot(self) -> None:
        """Of all that is durable: it is not truncated any more."""
        log = self.disk.log(METADATA_LOG)
        last = log.durable.last
        if last is not None and last.next_offset > self.start_offset and log.written.holds(last):
            self.floor = max(self.floor, last.next_offset)
            effect = SaveSnapshot(
                log=METADATA_LOG, token=self.token(), id=last.end, content=_snapshot(last.end)
            )
            self.perform(effect)

    def receive_snapshot(self) -> None:
        """Of a log that goes on where this one ends. It replaces it as soon as it is there."""
        self.epoch += 1
        last = self.disk.log(METADATA_LOG).written.last
        for place in range(3):
            batch = _batch(self.end_offset + place, self.epoch)
            (last,) = self.tree.extend(last, batch)
            last.is_public = True
        assert last is not None
        self.floor = self.end_offset = last.next_offset
        self._received = last.end
        content = b"".join(_snapshot(last.end))
        self.perform(
            ReceiveSnapshot(
                log=METADATA_LOG,
                token=self.token(),
                id=last.end,
                position=0,
                records=content,
                is_last=True,
            )
        )

    def trim(self) -> None:
        """Up to the newest snapshot."""
        if self.snapshots and not self.is_receiving:
            start_offset = max(each.offset for each in self.snapshots)
            self.start_offset = max(self.start_offset, start_offset)
            self.perform(Trim(log=METADATA_LOG, token=self.token(), start_offset=start_offset))

    @property
    def is_receiving(self) -> bool:
        """The log waits to be replaced."""
        return self._received is not None

    def run(self, milliseconds: float) -> None:
        self._take(self.disk.begin_syncs())
        self.world.run_until(self.world.now_us + int(1000 * milliseconds), events_max=1_000_000)
        events, self.events = self.events, []
        self._take(events)

    def stored(self) -> set[Token]:
        """What was promised since the last look, once all has come to rest."""
        self._take(self.disk.begin_syncs())
        self.world.run_until(self.world.now_us + 10_000_000, events_max=1_000_000)
        events, self.events = self.events, []
        self._take(events)
        return {event.token for event in events if isinstance(event, Stored)}

    def crash(self, *, power_loss: bool = True) -> int:
        """Crash and start; returns the log end."""
        self.events.clear()
        self.disk.crash(power_loss=power_loss)
        self.start()
        return self.end_offset

    def _take(self, events: list[Event]) -> None:
        for event in events:
            match event:
                case SnapshotSaved(file=file):
                    self.snapshots.append(file.id)
                    if file.id == self._received:
                        self._received = None
                        self.start_offset = file.id.offset
                        self.perform(ResetLog(log=METADATA_LOG, token=self.token(), start=file.id))
                case StorageFailed():
                    self.has_failed = True
                case _:
                    pass


def _batch(offset: int, epoch: int) -> bytes:
    batch = data_batch([b"%08d" % offset], timestamp_ms=1)
    return assign(batch, base_offset=offset, leader_epoch=epoch)


def _snapshot(end: OffsetAndEpoch) -> Iterator[bytes]:
    batches = [data_batch([b"x" * 1000], timestamp_ms=1)]
    head = snapshot_head(0, ())
    return snapshot_content(head, batches, epoch=end.epoch, last_timestamp_ms=0)


def in_files(offset: int, *, epoch: int = 0) -> bytes:
    return assign(data_batch([b"x"], timestamp_ms=1), base_offset=offset, leader_epoch=epoch)


def append_in_files(bench: StorageBench, offset: int, *, is_synced: bool) -> None:
    append = Append(
        log="t-0",
        token=bench.token(),
        records=in_files(offset),
        durability=Durability.SYNCED if is_synced else Durability.WRITTEN,
    )
    bench.perform(append)


def on_files(seed: int, *, synced: int = 0) -> StorageBench:
    """A log of a partition, with eight batches, of which the first few are synced."""
    bench = StorageBench(
        seed, options=FileOptions(holds_partitions=True, partition_segment_bytes=300)
    )
    bench.perform(OpenLog(log="t-0", token=bench.token(), topic_id=UUID(int=7)))
    bench.run(5)
    for offset in range(8):
        append_in_files(bench, offset, is_synced=offset < synced)
        if offset + 1 == synced:
            bench.run(50)
    return bench


def run_storage(seed: int) -> StorageBench:
    """Raises `Violation`."""
    random = Random(f"{seed}/run")
    options = FileOptions(
        segment_bytes=random.choice((200, 500, 2_000)),
        preallocate_bytes=random.choice((0, 1_024)),
        descriptors_max=random.choice((3, 100)),
        inline_sync_us=random.choice((0, 1_000)),
        dies_at_start=random.choice((0.0, 0.3)),
        flips=0.3,
    )
    faults = DiskFaults(
        write_failure=random.choice((0.0, 0.01)),
        fsync_failure=random.choice((0.0, 0.0, 0.05)),
        read_failure=random.choice((0.0, 0.01)),
    )
    bench = StorageBench(seed, options=options, faults=faults)
    if random.random() < 0.3:
        bench.durability = Durability.WRITTEN
    for _ in range(_STEPS):
        _step(bench, random)
    return bench


def _step(bench: StorageBench, random: Random) -> None:
    if bench.has_failed or random.random() < 0.06:
        bench.crash(power_loss=not bench.has_failed and random.random() < 0.7)
        return
    kinds = ("append", "truncate", "save", "snapshot", "receive", "trim", "run")
    kind = random.choices(kinds, (50, 8, 6, 4, 2, 4, 20))[0]
    if bench.is_receiving:
        kind = "run"
    match kind:
        case "append":
            for _ in range(random.choice((1, 1, 4))):
                bench.append()
        case "truncate":
            bench.truncate(random.randint(bench.floor, bench.end_offset))
        case "save":
            bench.save_election()
        case "snapshot":
            bench.save_snapshot()
        case "receive":
            bench.receive_snapshot()
        case "trim":
            bench.trim()
        case _:
            bench.run(random.choice((0.1, 0.5, 5)))
