"""A batch of an idempotent producer is the next one, a repetition, or out of order.

That is decided by the sequence numbers of the last batches that each producer wrote to one
partition, which producer_states.py remembers. Transactions are decided in transactional.py.

Source: KIP-98; Kafka's ProducerAppendInfo.
"""

from dataclasses import dataclass

from quorum.core.producers import BATCHES_KEPT, ProducerBatch, ProducerEntry
from wire.batch import BatchHeader
from wire.errors import ErrorCode
from wire.primitives import INT32_MAX

__all__ = [
    "Duplicate",
    "InSequence",
    "OutOfSequence",
    "SequenceVerdict",
    "base_offset",
    "check_sequence",
    "find_duplicate",
    "last_sequence",
    "next_sequence",
]

_NO_SEQUENCE = -1


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
