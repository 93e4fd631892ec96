"""The state of one transactional id at its coordinator, and which step may follow which.

A transaction is a value; a step makes the next one. The coordinator writes the next value down, and
it counts once it is committed.

    Empty, Complete*   a partition is added      Ongoing
    Ongoing            EndTxn, or its time-out   Prepare*: it is decided, and markers are written
    Prepare*           all have their marker     Complete*
    Empty, Complete*   not used for long         Dead: a tombstone

With transaction.version 2 each end raises the producer's epoch, so that a late batch of the ended
transaction is never taken for one of the next (KIP-890). When the epoch cannot be raised any more,
a new producer id is chosen as the end is decided, and is used from Complete* on.

Kafka fences a producer in a step of its own (PrepareEpochFence). Here one step fences and decides
to abort, so that nothing is half done when the log refuses it.

Source: KIP-98, KIP-360, KIP-890; Kafka's TransactionMetadata and TransactionState.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from broker.verifying import Place
from wire.primitives import INT32_MAX

__all__ = [
    "EPOCH_BUMPS",
    "EPOCH_MAX",
    "NO_EPOCH",
    "NO_ID",
    "Transaction",
    "TransactionState",
    "begun_by",
    "completed",
    "ended",
    "is_exhausted",
    "is_expired",
    "is_timed_out",
    "opened",
    "places_by_topic",
]

NO_ID = -1
NO_EPOCH = -1
EPOCH_BUMPS = 2  # the transaction.version since which each end raises the epoch
EPOCH_MAX = 32767
_NEVER_MS = -1


def places_by_topic(places: Iterable[Place]) -> dict[str, list[int]]:
    """In order, as messages and records tell them."""
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(places):
        topics.setdefault(topic, []).append(index)
    return topics


class TransactionState(Enum):
    """With the id in the log, and the name that tools show."""

    EMPTY = (0, "Empty")
    ONGOING = (1, "Ongoing")
    PREPARE_COMMIT = (2, "PrepareCommit")
    PREPARE_ABORT = (3, "PrepareAbort")
    COMPLETE_COMMIT = (4, "CompleteCommit")
    COMPLETE_ABORT = (5, "CompleteAbort")
    DEAD = (6, "Dead")

    @property
    def id(self) -> int:
        return self.value[0]

    @property
    def label(self) -> str:
        return self.value[1]

    @property
    def is_prepared(self) -> bool:
        """Its end is decided, and not yet told everywhere."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_over(self) -> bool:
        """Nothing is going on: the next transaction may begin."""
        return self in _OVER


_OVER = (
    TransactionState.EMPTY,
    TransactionState.COMPLETE_COMMIT,
    TransactionState.COMPLETE_ABORT,
)
# PrepareAbort may follow where nothing was written: a producer that is not sure aborts (KIP-890).
_ALLOWED = {
    TransactionState.EMPTY: _OVER,
    TransactionState.ONGOING: (*_OVER, TransactionState.ONGOING),
    TransactionState.PREPARE_COMMIT: (TransactionState.ONGOING,),
    TransactionState.PREPARE_ABORT: (*_OVER, TransactionState.ONGOING),
    TransactionState.COMPLETE_COMMIT: (TransactionState.PREPARE_COMMIT,),
    TransactionState.COMPLETE_ABORT: (TransactionState.PREPARE_ABORT,),
    TransactionState.DEAD: _OVER,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    id: str  # the transactional id
    producer_id: int
    previous_producer_id: int = NO_ID  # before the last step
    next_producer_id: int = NO_ID  # after Complete*, if it changes there
    producer_epoch: int
    last_producer_epoch: int = NO_EPOCH  # not in the log: a producer may come again with it
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    places: frozenset[Place] = frozenset()
    start_ms: int = _NEVER_MS
    update_ms: int
    client_version: int = 0  # the transaction.version with which it was made

    def become(self, state: TransactionState, now_ms: int, **changes: object) -> "Transaction":
        """The next value, after a step that is allowed."""
        assert self.state in _ALLOWED[state], (self.state, state)
        step = {"previous_producer_id": self.producer_id, "update_ms": now_ms, **changes}
        return replace(self, state=state, **step)  # type: ignore[arg-type]  # fields by name


def is_exhausted(producer_epoch: int) -> bool:
    """The last epoch is left for fencing."""
    return producer_epoch >= EPOCH_MAX - 1


def opened(
    transaction: Transaction, places: frozenset[Place], now_ms: int, *, client_version: int
) -> Transaction:
    """Partitions are added; with the first of them it begins."""
    return transaction.become(
        TransactionState.ONGOING,
        now_ms,
        places=transaction.places | places,
        start_ms=now_ms if transaction.state.is_over else transaction.start_ms,
        client_version=client_version,
    )


def ended(
    transaction: Transaction,
    state: TransactionState,
    now_ms: int,
    *,
    client_version: int,
    next_producer_id: int = NO_ID,
) -> Transaction:
    """Its end is decided, by its producer or for it."""
    epoch, last = transaction.producer_epoch, transaction.last_producer_epoch
    if client_version >= EPOCH_BUMPS:
        epoch, last = min(epoch + 1, EPOCH_MAX), epoch
    return transaction.become(
        state,
        now_ms,
        producer_epoch=epoch,
        last_producer_epoch=last,
        next_producer_id=next_producer_id,
        start_ms=now_ms if transaction.state.is_over else transaction.start_ms,
        client_version=client_version,
    )


def completed(transaction: Transaction, now_ms: int) -> Transaction:
    """Every partition has its marker."""
    is_commit = transaction.state is TransactionState.PREPARE_COMMIT
    state = TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT
    producer_id, epoch = transaction.producer_id, transaction.producer_epoch
    if transaction.client_version >= EPOCH_BUMPS and transaction.next_producer_id != NO_ID:
        producer_id, epoch = transaction.next_producer_id, 0
    return transaction.become(
        state,
        now_ms,
        producer_id=producer_id,
        producer_epoch=epoch,
        next_producer_id=NO_ID,
        places=frozenset(),
    )


def begun_by(transaction: Transaction, now_ms: int) -> Transaction:
    """As a coordinator takes it over whose clock may be behind the one before: else nobody would
    abort it for as long. Kafka goes by the clocks alone."""
    return replace(transaction, start_ms=min(transaction.start_ms, now_ms))


def is_timed_out(transaction: Transaction, now_ms: int) -> bool:
    """Its producer did not end it in time. Two-phase commits, with the longest time, may wait."""
    return (
        transaction.state is TransactionState.ONGOING
        and transaction.timeout_ms < INT32_MAX
        and transaction.start_ms + transaction.timeout_ms < now_ms
    )


def is_expired(transaction: Transaction, now_ms: int, *, expiration_ms: int) -> bool:
    """Its producer has not been seen for so long that its id is forgotten."""
    return transaction.state.is_over and transaction.update_ms <= now_ms - expiration_ms
