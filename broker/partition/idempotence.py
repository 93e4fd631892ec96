"""A batch of an idempotent producer is the next one, a repetition, or out of order.

That is decided by the sequence numbers of the last batches that each producer wrote to one
partition. The state follows the log: appends extend it on leader and follower alike, truncation
takes it back, and recovery (`quorum.core.producers`) rebuilds it from batch headers.
Transactions are not decided here.

Kafka remembers five batches of a producer, which is how many a client may have in flight. Here a
producer's batches are kept until five lie below the high watermark, so that truncation, which
stays above it, leaves exact knowledge behind; a bound holds for logs that never commit.

Source: KIP-98; Kafka's ProducerAppendInfo and ProducerStateManager.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from quorum.core.producers import BATCHES_KEPT, BATCHES_MAX, ProducerBatch, ProducerEntry
from wire.batch import BatchHeader
from wire.errors import ErrorCode
from wire.primitives import INT32_MAX, INT64_MAX

__all__ = [
    "Duplicate",
    "InSequence",
    "OutOfSequence",
    "ProducerStates",
    "SequenceVerdict",
    "base_offset",
    "find_duplicate",
    "last_sequence",
    "next_sequence",
]

_NO_SEQUENCE = -1
_NEVER_MS = -1 - INT64_MAX


@dataclass(frozen=True, slots=True)
class InSequence:
    """Append it."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """It is in the log already, as `batch`: answer as when it was appended."""

    batch: ProducerBatch


@dataclass(frozen=True, slots=True)
class OutOfSequence:
    """Refuse it."""

    error: ErrorCode
    reason: str


SequenceVerdict = InSequence | Duplicate | OutOfSequence


def last_sequence(entry: ProducerEntry) -> int:
    """-1 while the epoch has no batch: its first then begins at 0."""
    return entry.batches[-1].last_sequence if entry.batches else _NO_SEQUENCE


def base_offset(batch: ProducerBatch) -> int:
    """The offset of the batch's first record: sequences count records, as offsets do."""
    return batch.last_offset - ((batch.last_sequence - batch.base_sequence) & INT32_MAX)


def next_sequence(sequence: int) -> int:
    return 0 if sequence == INT32_MAX else sequence + 1


def check_sequence(entry: ProducerEntry | None, header: BatchHeader) -> SequenceVerdict:
    """What to do with a client's batch. `entry` is None for a producer that is not known."""
    if entry is None:
        return InSequence()
    if header.producer_epoch < entry.producer_epoch:
        return OutOfSequence(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"epoch {header.producer_epoch} of producer {header.producer_id}"
            f" is behind {entry.producer_epoch}",
        )
    if header.producer_epoch > entry.producer_epoch:
        if header.base_sequence == 0:
            return InSequence()
        return _out_of_order(header, expected=0)
    duplicate = find_duplicate(entry, header)
    if duplicate is not None:
        return Duplicate(duplicate)
    expected = next_sequence(last_sequence(entry))
    if header.base_sequence == expected:
        return InSequence()
    return _out_of_order(header, expected=expected)


def find_duplicate(entry: ProducerEntry, header: BatchHeader) -> ProducerBatch | None:
    wanted = (header.base_sequence, header.last_sequence)
    for batch in entry.batches[-BATCHES_KEPT:]:
        if (batch.base_sequence, batch.last_sequence) == wanted:
            return batch
    return None


def _out_of_order(header: BatchHeader, *, expected: int) -> OutOfSequence:
    return OutOfSequence(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"sequence {header.base_sequence} of producer {header.producer_id}"
        f" where {expected} was expected",
    )


class ProducerStates:
    """A partition remembers its producers.

    `is_whole` until a truncation below what is remembered of a producer: the log may have earlier
    batches of it, which only those know who read the log.
    """

    __slots__ = ("_entries", "is_whole", "oldest_ms")

    def __init__(self, entries: Iterable[ProducerEntry] = (), *, high_watermark: int = 0) -> None:
        """`entries` as a log tells them that has just been opened."""
        self._entries = {
            entry.producer_id: entry._replace(batches=_still_needed(entry.batches, high_watermark))
            for entry in entries
        }
        self.is_whole = True
        self.oldest_ms = self._oldest_ms()  # or earlier: when the first of them wrote last

    def _oldest_ms(self) -> int | None:
        return min(map(_last_ms, self._entries.values()), default=None)

    def entry(self, producer_id: int) -> ProducerEntry | None:
        return self._entries.get(producer_id)

    def entries(self) -> tuple[ProducerEntry, ...]:
        return tuple(self._entries.values())

    def check(self, header: BatchHeader) -> SequenceVerdict:
        return check_sequence(self._entries.get(header.producer_id), header)

    def appended(self, header: BatchHeader, *, high_watermark: int = 0) -> None:
        """A batch is in the log. Replication and recovery call this without `check`."""
        if header.producer_id < 0 or header.is_control:
            return
        batch = ProducerBatch(
            header.base_sequence, header.last_sequence, header.last_offset, header.max_timestamp_ms
        )
        entry = self._entries.get(header.producer_id)
        kept: tuple[ProducerBatch, ...] = ()
        if entry is not None and entry.producer_epoch == header.producer_epoch:
            kept = _still_needed(entry.batches, high_watermark)
        self._entries[header.producer_id] = ProducerEntry(
            header.producer_id, header.producer_epoch, (*kept, batch)
        )
        if self.oldest_ms is None or batch.timestamp_ms < self.oldest_ms:
            self.oldest_ms = batch.timestamp_ms

    def truncated(self, end_offset: int) -> None:
        """Records at and after `end_offset` are gone; forget what they taught."""
        for entry in self.entries():
            left = tuple(batch for batch in entry.batches if batch.last_offset < end_offset)
            if left:
                self._entries[entry.producer_id] = entry._replace(batches=left)
            elif entry.batches:
                del self._entries[entry.producer_id]
                self.is_whole = self.is_whole and _is_from_its_beginning(entry)
        self.oldest_ms = self._oldest_ms()

    def expire(self, before_ms: int) -> None:
        """Forget producers whose last batch is older than `before_ms`."""
        for entry in self.entries():
            if _last_ms(entry) < before_ms:
                del self._entries[entry.producer_id]
        self.oldest_ms = self._oldest_ms()


def _is_from_its_beginning(entry: ProducerEntry) -> bool:
    """Was there surely no batch of the producer before these?"""
    return entry.producer_epoch == 0 and entry.batches[0].base_sequence == 0


def _last_ms(entry: ProducerEntry) -> int:
    return entry.batches[-1].timestamp_ms if entry.batches else _NEVER_MS


def _still_needed(
    batches: tuple[ProducerBatch, ...], high_watermark: int
) -> tuple[ProducerBatch, ...]:
    """`batches` without those that neither a repetition nor a truncation can ask for."""
    excess = 0
    while (
        len(batches) - excess > BATCHES_KEPT
        and batches[excess + BATCHES_KEPT].last_offset < high_watermark
    ):
        excess += 1
    return batches[max(excess, len(batches) + 1 - BATCHES_MAX) :]
