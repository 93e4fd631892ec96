"""InitProducerId: a producer begins, or begins again, with a transactional id.

Each beginning raises the epoch, which fences whoever had the id before. A transaction that is still
open is aborted first, and the producer asks again. A producer that names its id and epoch wants to
go on after an error (KIP-360): it is fenced if another has begun meanwhile.

Kafka looks at the epoch only where nothing is open. So it aborts what the successor of a zombie has
begun, tells the zombie to ask again, and fences both. Here the zombie is refused at once.

Source: Kafka's TransactionCoordinator.handleInitProducerId and prepareInitProducerIdTransit.
"""

from broker.transactions.decisions import Decision, NeedsProducerId, Refused, Step
from broker.transactions.ending import fenced
from broker.transactions.transaction import (
    NO_EPOCH,
    NO_ID,
    Transaction,
    TransactionState,
    is_exhausted,
)
from broker.verifying import Producer
from wire.errors import ErrorCode

__all__ = ["initialize", "is_zombie"]


def initialize(
    known: Transaction | None,
    expected: Producer | None,
    *,
    transactional_id: str,
    timeout_ms: int,
    version: int,
    new_id: int | None,
    now_ms: int,
) -> Decision:
    """`version` is the cluster's transaction.version; `new_id` a producer id, if one is at hand."""
    if known is None:
        if new_id is None:
            return NeedsProducerId()
        return Step(
            Transaction(
                id=transactional_id,
                producer_id=new_id,
                previous_producer_id=new_id,
                producer_epoch=0,
                timeout_ms=timeout_ms,
                update_ms=now_ms,
            )
        )
    if expected is not None and is_zombie(known, expected):
        return Refused(ErrorCode.PRODUCER_FENCED)
    if known.state.is_prepared:
        return Refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    if known.state is TransactionState.ONGOING:
        decision = fenced(known, version=version, new_id=new_id, now_ms=now_ms)
        if isinstance(decision, Step):
            return decision._replace(error=ErrorCode.CONCURRENT_TRANSACTIONS)
        return decision
    is_newest = expected is None or expected.epoch == known.producer_epoch
    if is_exhausted(known.producer_epoch) and is_newest:
        if new_id is None:
            return NeedsProducerId()
        last = NO_EPOCH if expected is None else known.producer_epoch
        return Step(_initialized(known, Producer(new_id, 0), last, timeout_ms, now_ms))
    return _raised(known, expected, timeout_ms, now_ms)


def _raised(
    known: Transaction, expected: Producer | None, timeout_ms: int, now_ms: int
) -> Decision:
    """The next epoch; the same one again for a producer that did not hear of it."""
    raised = Producer(known.producer_id, known.producer_epoch + 1)
    if expected is None:
        return Step(_initialized(known, raised, NO_EPOCH, timeout_ms, now_ms))
    if expected.epoch == known.producer_epoch:
        return Step(_initialized(known, raised, known.producer_epoch, timeout_ms, now_ms))
    if expected.epoch == known.last_producer_epoch:
        same = Producer(known.producer_id, known.producer_epoch)
        return Step(_initialized(known, same, known.last_producer_epoch, timeout_ms, now_ms))
    return Refused(ErrorCode.PRODUCER_FENCED)


def is_zombie(known: Transaction, expected: Producer) -> bool:
    """Whoever has a transaction open knows its id and epoch. Else the epoch is looked at when it is
    raised; the id is the one that is known, or was until that ran out of epochs."""
    if known.state is TransactionState.ONGOING:
        return expected != Producer(known.producer_id, known.producer_epoch)
    was_replaced = expected.id == known.previous_producer_id and is_exhausted(expected.epoch)
    return not was_replaced and expected.id != known.producer_id


def _initialized(
    known: Transaction, producer: Producer, last_epoch: int, timeout_ms: int, now_ms: int
) -> Transaction:
    return known.become(
        TransactionState.EMPTY,
        now_ms,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        last_producer_epoch=last_epoch,
        next_producer_id=NO_ID,
        timeout_ms=timeout_ms,
        places=frozenset(),
        start_ms=-1,
    )
