"""What a snapshot of the metadata log holds, from its first byte to its last.

    control batch   SNAPSHOT_HEADER, and from kraft.version 1 on KRAFT_VERSION and KRAFT_VOTERS
    data batches    the state after everything before the snapshot's end
    control batch   SNAPSHOT_FOOTER: without it, the file is not whole

Offsets count from 0 and mean nothing in the log; every batch bears the epoch of the snapshot's id.
Nodes write their snapshots on their own. Nothing in one but the state depends on who writes it.

Decides neither when a snapshot is taken (`snapshot_schedule`) nor what becomes of it
(`compaction`).

Source: KIP-630; Kafka's RecordsSnapshotWriter.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from quorum.effects import SnapshotFile
from wire.batch import CorruptBatch, assign, headers, is_intact, records_of
from wire.control_records import (
    ControlRecord,
    SnapshotFooter,
    SnapshotHeader,
    decode_control,
    encode_control_batch,
)

__all__ = ["SnapshotLoad", "last_timestamp_ms", "snapshot_content", "snapshot_head"]


# --- writing ----------------------------------------------------------------------------------


def snapshot_head(last_timestamp_ms: int, membership: Sequence[ControlRecord]) -> bytes:
    """The first batch. `membership` is what held of voters and kraft.version at the end."""
    header = SnapshotHeader(last_contained_log_timestamp=last_timestamp_ms)
    return encode_control_batch([header, *membership], timestamp_ms=last_timestamp_ms)


def snapshot_content(
    head: bytes, batches: Iterable[bytes], *, epoch: int, last_timestamp_ms: int
) -> Iterator[bytes]:
    """The whole file, drawn piece by piece: a state of many records is never whole in memory."""
    offset = 0
    footer = encode_control_batch([SnapshotFooter()], timestamp_ms=last_timestamp_ms)
    for piece in chain([head], batches, [footer]):
        placed = assign(piece, base_offset=offset, leader_epoch=epoch)
        offset = max(header.next_offset for _, header in headers(placed))
        yield placed


# --- reading ----------------------------------------------------------------------------------


def last_timestamp_ms(file: SnapshotFile) -> int:
    """When the last record in it was written, as its header says."""
    record = decode_control(next(records_of(file.head)))
    assert isinstance(record, SnapshotHeader), (file.id, record)
    return record.last_contained_log_timestamp


class SnapshotLoad:
    """A snapshot that is read in pieces, which cut batches anywhere.

    Raises `Malformed`: a file that a node calls a snapshot has been found whole once, so that a
    mistake in it is damage.
    """

    def __init__(self) -> None:
        self.position = 0  # of the next piece
        self._rest = b""  # the begin of a batch that goes on in the next piece
        self._next_offset = 0
        self._has_ended = False

    def take(self, piece: bytes) -> bytes:
        """The whole batches up to here that were not given before; empty while there is none."""
        known = self._rest + piece
        self.position += len(piece)
        end = 0
        for position, header in headers(known):
            end = position + header.size_bytes
            if not is_intact(known, position, header):
                raise CorruptBatch(f"checksum of the batch at offset {header.base_offset}")
            if header.base_offset != self._next_offset or self._has_ended:
                raise CorruptBatch(f"a batch at offset {header.base_offset} is out of place")
            if header.is_control:
                self._control(known[position:end])
            elif self._next_offset == 0:
                raise CorruptBatch("a snapshot begins with a header record")
            self._next_offset = header.next_offset
        self._rest = known[end:]
        return known[:end]

    def _control(self, batch: bytes) -> None:
        found = [decode_control(record) for record in records_of(batch)]
        if not found or (self._next_offset == 0) != isinstance(found[0], SnapshotHeader):
            raise CorruptBatch("a snapshot begins with a header record, and has no other")
        self._has_ended = isinstance(found[-1], SnapshotFooter)

    def finish(self) -> None:
        """That was the last piece."""
        if not self._has_ended or self._rest:
            raise CorruptBatch("the footer record is missing: the file was cut short")
