"""The idempotent producers of a log, as an orderly stop leaves them in a file.

    <end offset, 20 digits>.snapshot    version, checksum, then an entry for each producer

A start that finds the file of its log's end need not read the log for them. A producer has an entry
for each of its batches that may be asked for, the oldest first. Kafka writes one for the last batch
alone, and of several that it reads the last one counts. The file is not synced; a torn one is none.

What a truncation would bring back has no place in it: where markers or epochs may yet be cut off, a
start has to read the log (`is_whole`).

Source: Kafka's ProducerStateManager, version 1.
"""

import struct
from collections.abc import Iterable
from typing import NamedTuple

from crc32c import crc32c

from quorum.core.producers import ProducerBatch, ProducerEntry, ProducerTransaction
from wire.primitives import INT32_MAX
from wire.varint import Malformed

__all__ = [
    "ProducerRow",
    "format_producers",
    "is_whole",
    "parse_producers",
    "producer_rows",
    "producers_path",
]

_VERSION = 1
_HEAD = struct.Struct(">hI")  # version, CRC-32C of what follows
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_NO_BATCH = ProducerBatch(base_sequence=-1, last_sequence=-1, last_offset=-1, timestamp_ms=-1)


class ProducerRow(NamedTuple):
    """An entry of the file, field by field."""

    producer_id: int
    producer_epoch: int
    last_sequence: int  # of a batch; -1: it has none
    last_offset: int
    offset_delta: int  # of the batch's first record, backwards
    timestamp_ms: int
    coordinator_epoch: int  # of the last marker
    first_offset: int  # of the open transaction; -1: there is none


def producers_path(directory: str, end_offset: int) -> str:
    return f"{directory}/{end_offset:020d}.snapshot"


def is_whole(entries: Iterable[ProducerEntry]) -> bool:
    """Does a file say all that is known of them?"""
    return not any(
        each.earlier or any(ended.marker_offset >= 0 for ended in each.transactions)
        for each in entries
    )


def format_producers(entries: Iterable[ProducerEntry]) -> bytes:
    packed = [_pack(entry, batch) for entry in entries for batch in _timed(entry)]
    content = _COUNT.pack(len(packed)) + b"".join(packed)
    return _HEAD.pack(_VERSION, crc32c(content)) + content


def _timed(entry: ProducerEntry) -> tuple[ProducerBatch, ...]:
    """Its batches; the time of the last one is that of a marker behind it."""
    *earlier, last = entry.batches or (_NO_BATCH,)
    return (*earlier, last._replace(timestamp_ms=max(last.timestamp_ms, entry.marker_ms)))


def _pack(entry: ProducerEntry, batch: ProducerBatch) -> bytes:
    before = (batch.last_sequence - batch.base_sequence) & INT32_MAX  # they begin again at 0
    return _ENTRY.pack(
        entry.producer_id,
        entry.producer_epoch,
        batch.last_sequence,
        batch.last_offset,
        before,
        batch.timestamp_ms,
        entry.coordinator_epoch,
        entry.open_since,
    )


def parse_producers(content: bytes) -> dict[int, ProducerEntry] | None:
    """By producer id. None if it is torn, or of another version."""
    try:
        rows = producer_rows(content)
    except Malformed:
        return None
    producers: dict[int, ProducerEntry] = {}
    for producer_id, epoch, *batch, coordinator_epoch, open_since in rows:
        known = producers.get(producer_id)
        earlier = known.batches if known is not None and known.producer_epoch == epoch else ()
        producers[producer_id] = ProducerEntry(
            producer_id,
            epoch,
            (*earlier, *_unpacked(*batch)),
            coordinator_epoch=coordinator_epoch,
            transactions=(ProducerTransaction(open_since),) if open_since >= 0 else (),
            marker_ms=batch[-1] if coordinator_epoch >= 0 else -1,
        )
    return producers


def producer_rows(content: bytes) -> list[ProducerRow]:
    """Raises `Malformed` with what is wrong."""
    start = _HEAD.size + _COUNT.size
    if len(content) < start:
        raise Malformed(f"{len(content)} bytes are no snapshot of producers")
    version, checksum = _HEAD.unpack_from(content)
    (count,) = _COUNT.unpack_from(content, _HEAD.size)
    if version != _VERSION:
        raise Malformed(f"a snapshot of version {version}")
    if crc32c(content[_HEAD.size :]) != checksum:
        raise Malformed("its checksum is wrong")
    if len(content) - start != count * _ENTRY.size:
        raise Malformed(f"{len(content) - start} bytes for {count} entries")
    return list(map(ProducerRow._make, _ENTRY.iter_unpack(content[start:])))


def _unpacked(
    last_sequence: int, last_offset: int, before: int, timestamp_ms: int
) -> tuple[ProducerBatch, ...]:
    if last_sequence < 0:
        return ()
    first_sequence = (last_sequence - before) & INT32_MAX
    return (ProducerBatch(first_sequence, last_sequence, last_offset, timestamp_ms),)
