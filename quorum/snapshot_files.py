"""Snapshots of the metadata log, as files beside its segments (KIP-630).

    <end offset, 20 digits>-<epoch, 10 digits>.checkpoint         whole, and on the medium
    <end offset>-<epoch>-<saved or received>.checkpoint.part      being written

A file gets its final name when it is whole and synced, so that a snapshot that is there can be
relied on; what a crash leaves under another name is removed at the next start. Kafka's files have
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

from quorum.checkpoints import CorruptFile
from quorum.disk import Disk
from quorum.effects import SnapshotFile
from quorum.segment import batches_in
from quorum.types import OffsetAndEpoch
from wire.batch import CorruptBatch, UnsupportedCompression, is_intact, read_header, records_of
from wire.control_records import (
    ControlRecord,
    SnapshotFooter,
    SnapshotHeader,
    decode_control,
)
from wire.varint import Malformed

__all__ = ["SnapshotFiles", "snapshot_name"]

_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_LEFTOVER = re.compile(r".+\.checkpoint\.(part|deleted)")
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
        """All that are whole, ascending; what an interrupted operation left is removed."""
        found = []
        for name in self._disk.names(self._directory):
            match = _NAME.fullmatch(name)
            if match:
                found.append(self._describe(OffsetAndEpoch(int(match[1]), int(match[2]))))
            elif _LEFTOVER.fullmatch(name):
                self._disk.remove(f"{self._directory}/{name}")
        return tuple(found)

    def _describe(self, snapshot_id: OffsetAndEpoch) -> SnapshotFile:
        path = self.path(snapshot_id)
        size = self._disk.size(path)
        head = self.read(snapshot_id, position=0, length=_HEAD_BYTES)
        try:
            header = read_header(head)
            if header.size_bytes > len(head) or not is_intact(head, 0, header):
                raise CorruptBatch("the checksum of the first batch is wrong")
            head = head[: header.size_bytes]
            if not isinstance(_controls(head)[0], SnapshotHeader):
                raise CorruptBatch("a snapshot begins with a header record")
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
        if not self._is_whole(part):
            self._disk.remove(part)
            return None
        return self._publish(part, snapshot_id)

    def discard(self, snapshot_id: OffsetAndEpoch) -> None:
        """Forget the pieces that were received: no more will come."""
        self._disk.remove(self._part(snapshot_id, "received"))

    def _publish(self, part: str, snapshot_id: OffsetAndEpoch) -> SnapshotFile:
        path = self.path(snapshot_id)
        self._disk.sync(part)
        self._disk.forget(part)
        self._disk.forget(path)
        self._disk.rename(part, path)
        return self._describe(snapshot_id)

    def _is_whole(self, path: str) -> bool:
        """Intact batches from end to end, a header record first and a footer record last."""
        size = self._disk.size(path)
        first: ControlRecord | None = None
        last: ControlRecord | None = None
        end = 0
        busy_from = time.thread_time()
        try:
            for position, header, batch in batches_in(
                self._disk, path, position=0, end=size, chunk_bytes=_CHECK_BYTES
            ):
                if not is_intact(batch, 0, header):
                    return False
                controls = _controls(bytes(batch)) if header.is_control else [None]
                first = controls[0] if position == 0 else first
                last = controls[-1]
                end = position + header.size_bytes
                busy_from = self._pause(busy_from)
        except Malformed:
            return False
        is_framed = isinstance(first, SnapshotHeader) and isinstance(last, SnapshotFooter)
        return is_framed and end == size

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


def _controls(batch: bytes) -> list[ControlRecord | None]:
    """The control records of one batch, None for each of an unknown type; at least one."""
    try:
        found = [decode_control(record) for record in records_of(batch)]
    except UnsupportedCompression as error:
        raise CorruptBatch(str(error)) from error
    if not found:
        raise CorruptBatch("a control batch without a record")
    return found
