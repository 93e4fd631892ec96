"""Is this file a part of a metadata log? The first records tell.

A later Kafka's records are, though this version does not know them: their frame is known. What the
preview of KRaft in Kafka 2.8 wrote has an older frame, which no later release reads.

Source: Kafka's AbstractApiMessageSerde (frame version 1; 0 in 2.8), KIP-595 (control records).
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from quorumlab.inspection.batches import Batch, read_batches
from wire.batch import CorruptBatch, UnsupportedCompression, records_of
from wire.varint import Malformed

__all__ = ["PREVIEW", "why_foreign"]

PREVIEW = (
    "was written by the preview of KRaft in Kafka 2.8, whose records no later release reads, and"
    " this one neither"
)
_ANOTHER = "is the log of another topic, not of the metadata"
_BATCHES_MAX = 16  # the first of them tell
_FRAME_VERSION, _PREVIEW_FRAME_VERSION = 1, 0
_MARKERS = (0, 1)  # control types of transactions: abort and commit


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
    except UnsupportedCompression:
        return [(None, None)]
    except (CorruptBatch, Malformed):
        return []
