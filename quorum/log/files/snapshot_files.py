"""Snapshots of the metadata log, as files beside its segments (KIP-630).

    <end offset, 20 digits>-<epoch, 10 digits>.checkpoint         whole, and on the medium
    <end offset>-<epoch>-<saved or received>.checkpoint.part      being written

A file gets its final name when it is whole and synced, so that a snapshot that is there can be
relied on; what a crash leaves under another name goes when the log is recovered. Kafka's files have
the same names and content.

Writing is long work in a thread beside the one that runs the core. They share the interpreter's
lock and the disk: hence small pieces, a pause after each, and a sync now and then, lest the log's
own sync wait for a hundred megabytes.

Decides nothing about which snapshots there should be. Everything raises `StorageError`.

Source: Kafka's FileRawSnapshotWriter, Snapshots and KafkaRaftLog.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator

from quorum.core.effects import SnapshotFile
from quorum.core.types import OffsetAndEpoch
from quorum.log.files.checkpoints import CorruptFile
from quorum.log.files.disk import Disk
from quorum.log.snapshots import SnapshotLoad
from wire.batch import CorruptBatch, read_header
from wire.varint import Malformed

__all__ = ["SnapshotFiles", "snapshot_name"]

_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_HEAD_BYTES = 64 << 10  # the first batch: a header, and the voters
_SYNC_BYTES = 4 << 20
_CHECK_BYTES = 256 << 10
_BUSY_SECONDS = 0.001
_PAUSE_SECONDS_MAX = 0.1


def snapshot_name(snapshot_id: OffsetAndEpoch) -> str:
    return f"{snapshot_id.offset:020d}-{snapshot_id.epoch:010d}.checkpoint"


class SnapshotFiles:
    """Those in one log's directory. One thread at a time works on one file."""

    def __init__(
        self, disk: Disk, directory: str, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._sleep = sleep

    def path(self, snapshot_id: OffsetAndEpoch) -> str:
        return f"{self._directory}/{snapshot_name(snapshot_id)}"

    # --- at the start -----------------------------------------------------------------------

    def recover(self) -> tuple[SnapshotFile, ...]:
        """All snapshots, ascending. Recovery of the log has removed what is not whole."""
        found = []
        for name in self._disk.names(self._directory):
            match = _NAME.fullmatch(name)
            if match:
                snapshot_id = OffsetAndEpoch(int(match[1]), int(match[2]))
                found.append(self._describe(self.path(snapshot_id), snapshot_id))
        return tuple(found)

    def _describe(self, path: str, snapshot_id: OffsetAndEpoch) -> SnapshotFile:
        size = self._disk.size(path)
        head = self._disk.read_once(path, position=0, length=_HEAD_BYTES)
        try:
            header = read_header(head)
            if header.size_bytes > len(head):
                raise CorruptBatch("the first batch is cut short, or far too large")
            head = head[: header.size_bytes]
            SnapshotLoad(snapshot_id).take(head, size)
        except Malformed as error:
            raise CorruptFile(path, None, f"no snapshot: {error}") from error
        return SnapshotFile(id=snapshot_id, size_bytes=size, head=head)

    # --- writing ----------------------------------------------------------------------------

    def save(
        self,
        snapshot_id: OffsetAndEpoch,
        content: Iterator[bytes],
        *,
        is_abandoned: Callable[[], bool] = lambda: False,
    ) -> SnapshotFile | None:
        """Write what `content` gives; None if that was abandoned on the way."""
        part = self._part(snapshot_id, "saved")
        self._disk.create(part)
        position = synced = 0
        busy_from = time.thread_time()
        for piece in content:
            if is_abandoned():
                self._disk.remove(part)
                return None
            self._disk.write(part, piece, position=position)
            position += len(piece)
            if position - synced >= _SYNC_BYTES:
                self._disk.sync(part)
                synced = position
            busy_from = self._pause(busy_from)
        return self._publish(part, snapshot_id)

    def receive(self, snapshot_id: OffsetAndEpoch, position: int, records: bytes) -> None:
        """Write a piece of what another node sends. Takes no waiting."""
        part = self._part(snapshot_id, "received")
        if position == 0:
            self._disk.create(part)
        self._disk.write(part, records, position=position)

    def finish(self, snapshot_id: OffsetAndEpoch) -> SnapshotFile | None:
        """All pieces are there; None, and no file, if they make no snapshot."""
        part = self._part(snapshot_id, "received")
        try:
            self._check(part, snapshot_id)
            return self._publish(part, snapshot_id)
        except (Malformed, CorruptFile):
            self._disk.remove(part)
            return None

    def discard(self, snapshot_id: OffsetAndEpoch) -> None:
        """Forget the pieces that were received: no more will come."""
        self._disk.remove(self._part(snapshot_id, "received"))

    def _publish(self, part: str, snapshot_id: OffsetAndEpoch) -> SnapshotFile:
        """Raises `CorruptFile` rather than name what the next start would refuse."""
        file = self._describe(part, snapshot_id)
        self._disk.publish(part, self.path(snapshot_id))
        return file

    def _check(self, path: str, snapshot_id: OffsetAndEpoch) -> None:
        """Raises `Malformed` unless it can be loaded: it is to take the place of the log."""
        load = SnapshotLoad(snapshot_id)
        size = self._disk.size(path)
        busy_from = time.thread_time()
        while not load.is_complete:
            load.take(self._disk.read(path, position=load.position, length=_CHECK_BYTES), size)
            busy_from = self._pause(busy_from)

    def _pause(self, busy_from: float) -> float:
        """Leave the interpreter to the others for as long as it was kept from them since then."""
        busy = time.thread_time() - busy_from
        if busy < _BUSY_SECONDS:
            return busy_from
        self._sleep(min(busy, _PAUSE_SECONDS_MAX))
        return time.thread_time()

    def _part(self, snapshot_id: OffsetAndEpoch, origin: str) -> str:
        name = snapshot_name(snapshot_id).removesuffix(".checkpoint")
        return f"{self._directory}/{name}-{origin}.checkpoint.part"

    # --- reading and removing ---------------------------------------------------------------

    def read(self, snapshot_id: OffsetAndEpoch, *, position: int, length: int) -> bytes:
        return self._disk.read_once(self.path(snapshot_id), position=position, length=length)

    def remove(self, snapshot_ids: Iterable[OffsetAndEpoch]) -> None:
        """Not durably: one that comes back after a crash does no harm."""
        for snapshot_id in snapshot_ids:
            self._disk.remove(self.path(snapshot_id))
