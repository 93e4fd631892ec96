"""The batches of a log say which idempotent producers wrote it, and what each wrote last.

Read from headers alone, so a log can rebuild it when it is opened. What lies above its high
watermark may yet be cut off, so more than the five that Kafka keeps are told: without a producer's
earlier batches a leader would take any sequence for its next. Whether a batch may be appended
(duplicate, gap, fenced epoch) is decided in `broker.partition.idempotence`.

Source: KIP-98; Kafka's ProducerStateEntry, which keeps five batches because that is how many
requests an idempotent producer may have in flight.
"""

from typing import NamedTuple

from wire.batch import BatchHeader

__all__ = ["BATCHES_KEPT", "BATCHES_MAX", "ProducerBatch", "ProducerEntry", "observe"]

BATCHES_KEPT = 5  # as many as a client may have in flight
BATCHES_MAX = 64  # with those above the high watermark


class ProducerBatch(NamedTuple):
    base_sequence: int
    last_sequence: int  # inclusive
    last_offset: int
    timestamp_ms: int


class ProducerEntry(NamedTuple):
    producer_id: int
    producer_epoch: int
    batches: tuple[ProducerBatch, ...]  # oldest first, at most BATCHES_MAX


def observe(entries: dict[int, ProducerEntry], header: BatchHeader) -> None:
    """Take one appended batch into account. `entries` is by producer id."""
    if header.producer_id < 0:
        return
    known = entries.get(header.producer_id)
    batches: tuple[ProducerBatch, ...] = ()
    if known is not None and known.producer_epoch == header.producer_epoch:
        batches = known.batches
    if not header.is_control and header.base_sequence >= 0:
        batch = ProducerBatch(
            header.base_sequence,
            header.last_sequence,
            header.last_offset,
            header.max_timestamp_ms,
        )
        batches = (*batches[1 - BATCHES_MAX :], batch)
    entry = ProducerEntry(header.producer_id, header.producer_epoch, batches)
    entries[header.producer_id] = entry
