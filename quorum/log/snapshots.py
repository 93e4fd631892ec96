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

from quorum.core.effects import SnapshotFile
from quorum.core.types import OffsetAndEpoch
from wire.batch import (
    BatchHeader,
    CorruptBatch,
    headers,
    is_intact,
    placed,
    records_of,
)
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
        content, found = placed(piece, base_offset=offset, leader_epoch=epoch)
        offset = found[-1].next_offset
        yield content


# --- reading ----------------------------------------------------------------------------------


def last_timestamp_ms(file: SnapshotFile) -> int:
    """When the last record in it was written, as its header says."""
    record = decode_control(next(records_of(file.head)))
    assert isinstance(record, SnapshotHeader), (file.id, record)
    return record.last_contained_log_timestamp


class SnapshotLoad:
    """A snapshot on its way to the applications, in pieces that cut batches anywhere.

    Raises `Malformed`: the file was found whole when it was written, so that a mistake is damage.
    """

    def __init__(self, snapshot_id: OffsetAndEpoch) -> None:
        self.id = snapshot_id
        self.position = 0  # of the next piece
        self.last_timestamp_ms = -1  # as the header says
        self.is_complete = False
        self._rest = b""  # the begin of a batch that goes on in the next piece
        self._next_offset = 0
        self._has_footer = False

    @property
    def is_at_start(self) -> bool:
        """No batch has been given yet."""
        return self._next_offset == 0

    def take(self, piece: bytes, size_bytes: int) -> bytes:
        """The whole batches up to here that were not given before; empty while there is none."""
        if not piece:
            raise CorruptBatch(f"nothing at byte {self.position} of {size_bytes}")
        known = self._rest + piece
        end = 0
        for position, header in headers(known):
            end = position + header.size_bytes
            if not is_intact(known, position, header):
                raise CorruptBatch(f"checksum of the batch at offset {header.base_offset}")
            self._check(header, known[position:end])
            self._next_offset = header.next_offset
        self._rest = known[end:]
        self.position += len(piece)
        self.is_complete = self.position >= size_bytes
        if self.is_complete and (self._rest or not self._has_footer):
            raise CorruptBatch("the footer record is missing: the file was cut short")
        return known[:end]

    def _check(self, header: BatchHeader, batch: bytes) -> None:
        """The header record first, the footer record last, and offsets from 0."""
        if header.base_offset != self._next_offset or self._has_footer:
            raise CorruptBatch(f"a batch at offset {header.base_offset} is out of place")
        found = _controls(batch) if header.is_control else []
        if self.is_at_start:
            if not found or not isinstance(found[0], SnapshotHeader):
                raise CorruptBatch("a snapshot begins with a header record")
            self.last_timestamp_ms = found[0].last_contained_log_timestamp
        self._has_footer = bool(found) and isinstance(found[-1], SnapshotFooter)


def _controls(batch: bytes) -> list[ControlRecord | None]:
    return [decode_control(record) for record in records_of(batch)]
