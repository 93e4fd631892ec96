"""Is this file a part of a metadata log?

A file with a whole batch in it, wherever, may be one; bytes before that batch are damage. A file
without a whole batch is the border case. A crash that cuts off the very first write leaves a prefix
of one batch, with zeros behind it where the file was preallocated. Such a file is read as a log
without records: each header field that is there in full has a value that the first batch of a
metadata log may have. Any other file never was a log, and is refused; beside files of the same log
that have batches it is damage.

A later Kafka's records are, though this version does not know them: their frame is known. What the
preview of KRaft in Kafka 2.8 wrote has an older frame, which no later release reads.

Source: Kafka's AbstractApiMessageSerde (frame version 1; 0 in 2.8), KIP-595 (control records).
"""

import re
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from quorumlab.inspection.batches import Batch, Damage, read_batches
from wire.batch import (
    BATCH_BYTES_MAX,
    HEADER_BYTES,
    CorruptBatch,
    records_of,
)
from wire.varint import Malformed

__all__ = ["PREVIEW", "has_batches", "is_blank", "is_torn", "why_foreign"]

PREVIEW = (
    "was written by the preview of KRaft in Kafka 2.8, whose records no later release reads, and"
    " this one neither"
)
_ANOTHER = "is the log of another topic, not of the metadata"
_PIECE_BYTES = 1 << 20
_NAMED = re.compile(r"\d{20}\.log")
_OFFSET_HIGH_BYTES = 2  # of an offset, which no log has reached
_CONTROL = 0x20
_FIELDS = {  # where each begins in the header, and its size in bytes
    "batch_length": (8, 4),
    "leader_epoch": (12, 4),
    "magic": (16, 1),
    "attributes": (21, 2),
    "last_offset_delta": (23, 4),
    "producer_id": (43, 8),
    "producer_epoch": (51, 2),
    "base_sequence": (53, 4),
    "record_count": (57, 4),
}
_OF_PRODUCERS = ("producer_id", "producer_epoch", "base_sequence")
_BATCH_LENGTHS = range(HEADER_BYTES - 12, BATCH_BYTES_MAX + 1)  # offset and length do not count
_BATCHES_MAX = 16  # the first of them tell
_FRAME_VERSION, _PREVIEW_FRAME_VERSION = 1, 0
_MARKERS = (0, 1)  # control types of transactions: abort and commit


def is_blank(path: Path) -> bool:
    """Is it empty, or preallocated and never written?"""
    with path.open("rb") as file:
        return not any(any(piece) for piece in iter(partial(file.read, _PIECE_BYTES), b""))


def has_batches(path: Path) -> bool:
    """Has it a whole one, or the beginning of the first one, which a crash has cut off?"""
    first = next(read_batches(path), None)
    if first is None:
        return False
    return isinstance(first, Batch) or not first.is_tail or is_torn(first)


def is_torn(damage: Damage) -> bool:
    """May a crash have left it: is it a write that was cut off, at the end of the file?"""
    return damage.is_tail and (damage.position > 0 or _begins_batch(damage.path))


def _begins_batch(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(HEADER_BYTES).rstrip(b"\0")
    named = int(path.stem) if _NAMED.fullmatch(path.name) else None
    offset = head[:8] if named is None else named.to_bytes(8)[: len(head)]
    there = {
        name: int.from_bytes(head[first : first + size], signed=True)
        for name, (first, size) in _FIELDS.items()
        if first + size <= len(head)
    }
    return (
        head[:8] == offset
        and not any(head[:_OFFSET_HIGH_BYTES])
        and there.get("batch_length", HEADER_BYTES) in _BATCH_LENGTHS
        and there.get("leader_epoch", 0) >= 0
        and there.get("magic", 2) == 2
        and there.get("attributes", 0) in (0, _CONTROL)  # neither compressed nor transactional
        and all(there.get(name, -1) == -1 for name in _OF_PRODUCERS)
        and ("record_count" not in there or there["record_count"] == there["last_offset_delta"] + 1)
    )


def why_foreign(path: Path) -> str | None:
    """What it is instead; None for a metadata log, and for what holds nothing that could tell."""
    is_quorums = False
    for batch in islice(_batches(path), _BATCHES_MAX):
        if batch.header.producer_id >= 0:
            return _ANOTHER
        for key, value in _records(batch):
            if batch.header.is_control:
                if int.from_bytes((key or b"")[2:4]) in _MARKERS:
                    return _ANOTHER
                is_quorums = True
            elif key is not None or not value:
                return _ANOTHER
            elif value[0] == _FRAME_VERSION:
                return None
            else:
                is_preview = is_quorums and value[0] == _PREVIEW_FRAME_VERSION
                return PREVIEW if is_preview else _ANOTHER
    return None


def _batches(path: Path) -> Iterator[Batch]:
    return (found for found in read_batches(path) if isinstance(found, Batch))


def _records(batch: Batch) -> list[tuple[bytes | None, bytes | None]]:
    """Keys and values; a metadata log is never compressed, whatever may be in it."""
    try:
        return [(record.key, record.value) for record in records_of(batch.content)]
    except (CorruptBatch, Malformed):
        return []
