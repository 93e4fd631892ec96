"""The batches of a log say which idempotent producers wrote it, and what each wrote last.

Read from headers and markers alone, so a log can rebuild it when it is opened. What lies above its
high watermark may yet be cut off, so more than the five that Kafka keeps are told: without a
producer's earlier batches a leader would take any sequence for its next. Whether a batch may be
appended (duplicate, gap, fenced epoch) is decided in `broker.partition.idempotence`.

A transactional batch of a producer without a transaction begins one at its first offset; a marker
ends it, and may end none.

Source: KIP-98; Kafka's ProducerStateEntry, which keeps five batches because that is how many
requests an idempotent producer may have in flight.
"""

from typing import NamedTuple

from wire.batch import BatchHeader
from wire.transaction_markers import Marker

__all__ = [
    "BATCHES_KEPT",
    "BATCHES_MAX",
    "EARLIER_MAX",
    "AbortedTransaction",
    "EarlierEntry",
    "ProducerBatch",
    "ProducerEntry",
    "ProducerTransaction",
    "after",
    "observe",
    "tells_of_producer",
]

BATCHES_KEPT = 5  # as many as a client may have in flight
BATCHES_MAX = 64  # with those above the high watermark
# Markers of a producer that may be cut off. Its coordinator begins no transaction before those of
# the last one are committed, so that there is rarely more than one.
EARLIER_MAX = 4


class ProducerBatch(NamedTuple):
    base_sequence: int
    last_sequence: int  # inclusive
    last_offset: int
    timestamp_ms: int


class ProducerTransaction(NamedTuple):
    """A transaction of one producer in one partition: it is open, or a marker has ended it."""

    first_offset: int
    marker_offset: int = -1  # -1: it is open


class ProducerEntry(NamedTuple):
    producer_id: int
    producer_epoch: int
    batches: tuple[ProducerBatch, ...]  # oldest first, at most BATCHES_MAX
    coordinator_epoch: int = -1  # of the last marker; -1: there was none
    transactions: tuple[ProducerTransaction, ...] = ()  # ended above the high watermark, or open
    marker_ms: int = -1  # of the last marker
    earlier: "tuple[EarlierEntry, ...]" = ()  # oldest first, at most EARLIER_MAX

    @property
    def open_since(self) -> int:
        """The first offset of the transaction that is going on; -1 if there is none."""
        if not self.transactions:
            return -1
        first_offset, marker_offset = self.transactions[-1]
        return first_offset if marker_offset < 0 else -1


class EarlierEntry(NamedTuple):
    """What a marker or another epoch has replaced: a truncation at or below `offset` restores it.

    An entry is kept whole because a marker may change all of it. With `transaction.version` 2 it
    raises the epoch, and the batches of the epoch before count no longer. None: there was no entry,
    and the batches of the one that there is do not say so.
    """

    offset: int
    entry: ProducerEntry | None  # without those earlier than itself


class AbortedTransaction(NamedTuple):
    """Consumers that read committed records only skip the producer's records in between."""

    producer_id: int
    first_offset: int
    last_offset: int  # of the marker
    last_stable_offset: int  # when the marker was written


def observe(
    entries: dict[int, ProducerEntry], header: BatchHeader, marker: Marker | None = None
) -> AbortedTransaction | None:
    """Take one appended batch into account. `entries` is by producer id; `marker` is the batch's.

    Returns the transaction that it has aborted.
    """
    if not tells_of_producer(header, marker):
        return None
    known = entries.get(header.producer_id)
    entries[header.producer_id] = after(known, header, marker)
    if known is None or known.open_since < 0 or marker is None or marker.is_commit:
        return None
    others = (entry.open_since for entry in entries.values() if entry.open_since >= 0)
    return AbortedTransaction(
        header.producer_id,
        known.open_since,
        header.last_offset,
        last_stable_offset=min(others, default=header.next_offset),
    )


def tells_of_producer(header: BatchHeader, marker: Marker | None) -> bool:
    """Not a control batch of another kind, nor a marker that compaction has emptied."""
    return header.producer_id >= 0 and (marker is not None or not header.is_control)


def after(known: ProducerEntry | None, header: BatchHeader, marker: Marker | None) -> ProducerEntry:
    """What is known of a producer once its batch, or its marker, is in the log."""
    entry = ProducerEntry(header.producer_id, header.producer_epoch, ()) if known is None else known
    _, epoch, batches, coordinator_epoch, transactions, marker_ms, earlier = entry
    if not is_undone_without(known, header, marker):
        before = None if known is None else known._replace(earlier=())
        earlier = (*earlier[1 - EARLIER_MAX :], EarlierEntry(header.base_offset, before))
    if header.producer_epoch != epoch:
        batches = ()
    is_open = entry.open_since >= 0
    if marker is not None:
        coordinator_epoch, marker_ms = marker.coordinator_epoch, header.max_timestamp_ms
        if is_open:
            ended = transactions[-1]._replace(marker_offset=header.last_offset)
            transactions = (*transactions[:-1], ended)
    else:
        if header.base_sequence >= 0:
            batch = ProducerBatch(
                header.base_sequence,
                header.last_sequence,
                header.last_offset,
                header.max_timestamp_ms,
            )
            batches = (*batches[1 - BATCHES_MAX :], batch)
        if header.is_transactional and not is_open:
            opened = ProducerTransaction(header.base_offset)
            transactions = (*transactions[-EARLIER_MAX:], opened)
    return ProducerEntry(
        header.producer_id,
        header.producer_epoch,
        batches,
        coordinator_epoch,
        transactions,
        marker_ms,
        earlier,
    )


def is_undone_without(
    known: ProducerEntry | None, header: BatchHeader, marker: Marker | None
) -> bool:
    """Does what is left of the entry tell what it was before this batch, should it be cut off?

    A marker that is repeated, because nobody knows whether the first lasts, changes nothing.
    """
    if known is None:
        return marker is None and header.base_sequence >= 0
    if header.producer_epoch != known.producer_epoch:
        return False
    if marker is None:
        return True
    return known.open_since < 0 and marker.coordinator_epoch == known.coordinator_epoch
