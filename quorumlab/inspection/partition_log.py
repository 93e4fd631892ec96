"""The log of a topic's partition: batches, markers, and the transactions that they make up.

A line is a batch, or a marker that ends a producer's transaction. What is read says which
transactions are open at its end, and what the index of aborted ones should have: an entry that is
missing, or begins too late, shows aborted records to consumers that read committed ones only.
Compaction may have removed the first records of a transaction, so an entry may begin earlier than
what is still there.

Source: Kafka's DumpLogSegments, ProducerStateManager and TransactionIndex; KIP-98.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quorum.core.producers import AbortedTransaction
from quorumlab.inspection.batches import Batch, Damage, read_batches
from wire.batch import CorruptBatch, records_of
from wire.transaction_markers import Marker, read_marker
from wire.varint import Malformed

__all__ = ["Line", "Seen", "lines_of", "partition_batches", "problems_of_index"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    offset: int
    epoch: int
    timestamp_ms: int
    type: str
    data: Mapping[str, Any]


@dataclass(slots=True)
class Seen:
    """The transactions that the batches so far make up."""

    start_offset: int = -1
    end_offset: int = -1
    open: dict[int, int] = field(default_factory=dict)  # first offsets, by producer
    aborts: dict[tuple[int, int], int | None] = field(default_factory=dict)
    # first offsets, by producer and offset of the marker; None: none of its records was seen

    def take(self, batch: Batch, marker: Marker | None) -> None:
        header = batch.header
        if self.start_offset < 0:
            self.start_offset = header.base_offset
        self.end_offset = header.next_offset
        if marker is not None:
            first = self.open.pop(marker.producer_id, None)
            if not marker.is_commit:
                self.aborts[marker.producer_id, header.base_offset] = first
        elif header.is_transactional and not header.is_control:
            self.open.setdefault(header.producer_id, header.base_offset)


def partition_batches(segments: Sequence[Path]) -> Iterator[Batch | Damage]:
    for segment in segments:
        yield from read_batches(segment)


def marker_of(batch: Batch) -> Marker | None:
    """None as well if it cannot be read: its line says so."""
    try:
        return read_marker(batch.content, batch.header)
    except Malformed:
        return None


def lines_of(batch: Batch, seen: Seen) -> Iterator[Line]:
    """`seen` is what came before, and takes this batch too."""
    marker = marker_of(batch)
    begins_at = None if marker is None else seen.open.get(marker.producer_id)
    seen.take(batch, marker)
    if marker is not None:
        type_ = "COMMIT_MARKER" if marker.is_commit else "ABORT_MARKER"
        ended = {} if begins_at is None else {"firstOffset": begins_at}
        data = {**_producer(batch), "coordinatorEpoch": marker.coordinator_epoch, **ended}
        yield _line(batch, type_, data)
    elif batch.header.is_control and batch.header.record_count:
        yield from _unknown(batch)
    else:
        yield _line(batch, "BATCH", {**_extent(batch), **_producer(batch)})


def _line(batch: Batch, type_: str, data: Mapping[str, Any]) -> Line:
    header = batch.header
    return Line(
        offset=header.base_offset,
        epoch=header.leader_epoch,
        timestamp_ms=header.max_timestamp_ms,
        type=type_,
        data=data,
    )


def _extent(batch: Batch) -> dict[str, Any]:
    header = batch.header
    try:
        compression = header.compression.name.lower()
    except CorruptBatch:
        compression = f"unknown, attributes {header.attributes}"
    horizon = header.delete_horizon_ms
    return {
        "lastOffset": header.last_offset,
        "count": header.record_count,
        "size": header.size_bytes,
        **({} if compression == "none" else {"compression": compression}),
        **({} if horizon is None else {"deleteHorizonMs": horizon}),
    }


def _producer(batch: Batch) -> dict[str, Any]:
    header = batch.header
    if header.producer_id < 0:
        return {}
    return {
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        **({} if header.base_sequence < 0 else {"baseSequence": header.base_sequence}),
        **({"isTransactional": True} if header.is_transactional and not header.is_control else {}),
    }


def _unknown(batch: Batch) -> Iterator[Line]:
    """A control record of a kind that only a later Kafka writes, or one that cannot be read."""
    try:
        for record in records_of(batch.content):
            data = {"key": _hex(record.key), "value": _hex(record.value), **_producer(batch)}
            yield _line(batch, "UNKNOWN", data)
    except (CorruptBatch, Malformed) as error:
        yield _line(batch, "UNKNOWN", {"value": batch.content.hex(), "reason": str(error)})


def _hex(content: bytes | None) -> str | None:
    return None if content is None else content.hex()


# --- what the index should have -----------------------------------------------------------------


def problems_of_index(seen: Seen, index: Iterable[AbortedTransaction]) -> Iterator[str]:
    """`seen` is the whole log, and `index` has the entries of all its segments."""
    entries = {(each.producer_id, each.last_offset): each for each in index}
    for (producer_id, marker_offset), first in seen.aborts.items():
        entry = entries.get((producer_id, marker_offset))
        marker = f"the abort marker of producer {producer_id} at offset {marker_offset}"
        if first is not None and entry is None:
            yield f"{marker} is in no .txnindex: consumers would get what it aborts"
        elif first is not None and entry is not None and entry.first_offset > first:
            yield f"{marker} aborts from {first} on, and the .txnindex says {entry.first_offset}"
    for (producer_id, last_offset), entry in entries.items():
        is_read = last_offset >= seen.start_offset
        if is_read and (producer_id, last_offset) not in seen.aborts:
            yield (
                f"the .txnindex has offsets {entry.first_offset} to {last_offset} of producer"
                f" {producer_id} aborted, and no such marker is in the log"
            )
