"""These rules say whether a producer's batch belongs to a transaction, and what a marker may end.

A producer may be dead, and its transaction over, when a batch of it arrives that has been on its
way. Appended behind the marker, the batch would begin a transaction that nobody ends. So a batch
that would begin one needs a `Guard`: it says that the coordinator has been asked since, and a
marker that is written meanwhile takes it away.

    1. A batch of producer 7 arrives. No transaction is open: the leader makes a guard, and asks.
    2. The coordinator answers that the transaction is going on. The answer is on its way.
    3. The producer's time is up: the coordinator aborts, and its marker is written here.
    4. The answer arrives. Were it taken, the batch would hang. The guard is gone: it is refused.

With `transaction.version` 2 each marker raises the producer's epoch, so that a batch of the
transaction before is fenced without being verified. Repetitions of a marker are told from markers
of the transaction that has followed: a marker must be of a later epoch than an open transaction.

Source: KIP-98, KIP-890; Kafka's ProducerAppendInfo, VerificationGuard and VerificationStateEntry.
"""

from dataclasses import dataclass

from broker.partition.batch_checks import Refused
from quorum.core.producers import ProducerEntry
from wire.batch import BatchHeader
from wire.errors import ErrorCode
from wire.primitives import INT16_MAX
from wire.transaction_markers import Marker

__all__ = ["Guard", "Guards", "check_beginning", "check_marker", "check_verified", "is_under_way"]

_GUARDS_MAX = 10_000  # those of producers that never came back are the oldest
_EPOCHS_BY_MARKERS = 2  # the `transaction.version` since which each marker raises the epoch


@dataclass(slots=True, eq=False)
class Guard:
    """The coordinator is being asked, or was asked, about a producer's transaction here."""

    producer_epoch: int
    lowest_sequence: int  # of the batches that wait: no other may begin the transaction
    begins_at_zero: bool  # the producer is of transaction.version 2


class Guards:
    """A leader has these in one epoch. Each producer has one at most, for all its batches.

    It stays when a verification fails: the sequences that it has seen are still to come.
    """

    __slots__ = ("_guards",)

    def __init__(self) -> None:
        self._guards: dict[int, Guard] = {}

    def of(self, producer_id: int) -> Guard | None:
        return self._guards.get(producer_id)

    def start(
        self, producer_id: int, producer_epoch: int, sequence: int, *, begins_at_zero: bool
    ) -> Guard:
        """The guard of a batch of which the coordinator is about to be asked."""
        guard = self._guards.pop(producer_id, None)
        if guard is None:
            guard = Guard(producer_epoch, sequence, begins_at_zero)
        self._guards[producer_id] = guard
        if len(self._guards) > _GUARDS_MAX:
            del self._guards[next(iter(self._guards))]
        if producer_epoch > guard.producer_epoch:
            guard.producer_epoch = producer_epoch
            guard.lowest_sequence = sequence
        elif producer_epoch == guard.producer_epoch:
            guard.lowest_sequence = min(guard.lowest_sequence, sequence)
        return guard

    def appended(self, header: BatchHeader) -> None:
        """A batch, or a marker: what was asked before says nothing of what comes."""
        self._guards.pop(header.producer_id, None)


def is_under_way(entry: ProducerEntry | None, producer_epoch: int) -> bool:
    """Has the producer a transaction here, in this epoch?"""
    return entry is not None and entry.open_since >= 0 and entry.producer_epoch == producer_epoch


def check_verified(
    entry: ProducerEntry | None,
    header: BatchHeader,
    *,
    current: Guard | None,
    shown: Guard | None,
) -> Refused | None:
    """Why a transactional batch is part of no transaction that is known to be going on.

    `current` is the producer's guard by now, `shown` that under which the batch was verified.
    """
    if not header.is_transactional or is_under_way(entry, header.producer_epoch):
        return None
    if shown is not None and shown is current:
        return None
    return Refused(
        error=ErrorCode.INVALID_TXN_STATE,
        reason=f"the batch of producer {header.producer_id} is of no transaction that is going on",
    )


def check_beginning(
    entry: ProducerEntry | None, header: BatchHeader, guard: Guard | None
) -> Refused | None:
    """Why a batch in sequence is not the one that may begin its producer's transaction.

    A producer that is not known here may begin with any sequence, but not with a later one than it
    has sent already; nor with any but 0, if each of its epochs begins a transaction.
    """
    if not header.is_transactional:
        if entry is None or entry.open_since < 0:
            return None
        return Refused(
            error=ErrorCode.INVALID_TXN_STATE,
            reason=f"producer {header.producer_id} has a transaction that is going on",
        )
    if guard is None or header.base_sequence == 0:
        return None
    is_known = entry is not None and len(entry.batches) > 0
    if header.base_sequence <= guard.lowest_sequence and (is_known or not guard.begins_at_zero):
        return None
    return Refused(
        error=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        reason=f"sequence {header.base_sequence} of producer {header.producer_id}"
        " where another begins its transaction",
    )


def check_marker(
    entry: ProducerEntry | None, marker: Marker, transaction_version: int
) -> ErrorCode:
    """May this marker be written?"""
    if entry is None:
        return ErrorCode.NONE
    if not _is_of_epoch(entry, marker, transaction_version):
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if marker.coordinator_epoch < entry.coordinator_epoch:
        return ErrorCode.TRANSACTION_COORDINATOR_FENCED
    return ErrorCode.NONE


def _is_of_epoch(entry: ProducerEntry, marker: Marker, transaction_version: int) -> bool:
    if marker.producer_epoch > entry.producer_epoch:
        return True
    if marker.producer_epoch < entry.producer_epoch:
        return False
    if transaction_version < _EPOCHS_BY_MARKERS:
        return True
    # A repetition; or the last epoch that there is, which no marker can raise.
    return entry.open_since < 0 or marker.producer_epoch == INT16_MAX
