"""Is this file a part of a metadata log? Its beginning tells.

A file has batches if one of them is whole, anywhere in it: what is damaged before that is told as
damage. The border is a file without a whole batch. A crash cuts the very first write off, so that a
prefix of one batch is there, with zeros behind it where the file was preallocated. Such a file is
read as a log that has nothing yet: every field of the header that is there in full is what the
first batch of a metadata log would have in it. Any other file never was a log, and is refused;
among the files of a log that has batches elsewhere it is damage.

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
_LENGTH_FROM = 12  # a batch's length does not count what is before this byte
_CONTROL = 0x20
# Where a field begins, and its size: `wire.batch` names them.
_FIELDS = ((8, 4), (12, 4), (16, 1), (21, 2), (23, 4), (43, 8), (51, 2), (53, 4), (57, 4))
_BATCHES_MAX = 16  # the first of them tell
_FRAME_VERSION, _PREVIEW_FRAME_VERSION = 1, 0
_MARKERS = (0, 1)  # control types of transactions: abort and commit


def is_blank(path: Path) -> bool:
    """Empty, or preallocated and never written."""
    with path.open("rb") as file:
        return not any(any(piece) for piece in iter(partial(file.read, _PIECE_BYTES), b""))


def has_batches(path: Path) -> bool:
    """A whole one, or the beginning of the first one, which a crash has cut off."""
    first = next(read_batches(path), None)
    if first is None:
        return False
    return isinstance(first, Batch) or not first.is_tail or is_torn(first)


def is_torn(damage: Damage) -> bool:
    """Whether a crash may have left it: a write that was cut off, at the end of the file."""
    return damage.is_tail and (damage.position > 0 or _begins_batch(damage.path))


def _begins_batch(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(HEADER_BYTES).rstrip(b"\0")
    named = int(path.stem) if _NAMED.fullmatch(path.name) else None
    offset = head[:8] if named is None else named.to_bytes(8)[: len(head)]
    fields = {
        first: int.from_bytes(head[first : first + size], signed=True)
        for first, size in _FIELDS
        if first + size <= len(head)
    }
    return (
        head[:8] == offset
        and not any(head[:_OFFSET_HIGH_BYTES])
        and HEADER_BYTES - _LENGTH_FROM <= fields.get(8, HEADER_BYTES) <= BATCH_BYTES_MAX
        and fields.get(12, 0) >= 0  # leader_epoch
        and fields.get(16, 2) == 2  # magic
        and fields.get(21, 0) in (0, _CONTROL)  # attributes: neither compressed nor transactional
        and all(fields.get(at, -1) == -1 for at in (43, 51, 53))  # no producer
        and (57 not in fields or fields[57] == fields[23] + 1)  # a record for each offset
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
