"""The idempotent producers of a log, as an orderly stop leaves them in a file.

    <end offset, 20 digits>.snapshot    version, checksum, then an entry for each producer

A start that finds the file of its log's end need not read the log for them. A producer has an entry
for each of its batches that may be asked for, the oldest first. Kafka writes one for the last batch
alone, and of several that it reads the last one counts. The file is not synced; a torn one is none.

Source: Kafka's ProducerStateManager, version 1.
"""

import struct
from collections.abc import Iterable

from crc32c import crc32c

from quorum.core.producers import ProducerBatch, ProducerEntry
from wire.primitives import INT32_MAX

__all__ = ["format_producers", "parse_producers", "producers_path"]

_VERSION = 1
_HEAD = struct.Struct(">hI")  # version, CRC-32C of what follows
_COUNT = struct.Struct(">i")
# Producer's id and epoch; a batch: its last sequence, last offset, how many before that, time;
# coordinator's epoch, and first offset of an open transaction.
_ENTRY = struct.Struct(">qhiqiqiq")
_NO_BATCH = ProducerBatch(base_sequence=-1, last_sequence=-1, last_offset=-1, timestamp_ms=-1)
_NO_TRANSACTION = (-1, -1)


def producers_path(directory: str, end_offset: int) -> str:
    return f"{directory}/{end_offset:020d}.snapshot"


def format_producers(entries: Iterable[ProducerEntry]) -> bytes:
    packed = [_pack(entry, batch) for entry in entries for batch in (entry.batches or (_NO_BATCH,))]
    content = _COUNT.pack(len(packed)) + b"".join(packed)
    return _HEAD.pack(_VERSION, crc32c(content)) + content


def _pack(entry: ProducerEntry, batch: ProducerBatch) -> bytes:
    before = (batch.last_sequence - batch.base_sequence) & INT32_MAX  # they begin again at 0
    return _ENTRY.pack(
        entry.producer_id,
        entry.producer_epoch,
        batch.last_sequence,
        batch.last_offset,
        before,
        batch.timestamp_ms,
        *_NO_TRANSACTION,
    )


def parse_producers(content: bytes) -> dict[int, ProducerEntry] | None:
    """By producer id. None if it is torn, or of another version."""
    start = _HEAD.size + _COUNT.size
    if len(content) < start or (len(content) - start) % _ENTRY.size:
        return None
    version, checksum = _HEAD.unpack_from(content)
    (count,) = _COUNT.unpack_from(content, _HEAD.size)
    is_whole = count == (len(content) - start) // _ENTRY.size
    if version != _VERSION or not is_whole or crc32c(content[_HEAD.size :]) != checksum:
        return None
    producers: dict[int, ProducerEntry] = {}
    for producer_id, epoch, *batch in _ENTRY.iter_unpack(content[start:]):
        known = producers.get(producer_id)
        earlier = known.batches if known is not None and known.producer_epoch == epoch else ()
        producers[producer_id] = ProducerEntry(producer_id, epoch, (*earlier, *_unpacked(*batch)))
    return producers


def _unpacked(
    last_sequence: int, last_offset: int, before: int, timestamp_ms: int, *_transaction: int
) -> tuple[ProducerBatch, ...]:
    if last_sequence < 0:
        return ()
    first_sequence = (last_sequence - before) & INT32_MAX
    return (ProducerBatch(first_sequence, last_sequence, last_offset, timestamp_ms),)
