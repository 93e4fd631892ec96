"""EndTxn: a producer commits or aborts; or its transaction is aborted for it.

A client that did not hear the answer asks again. With transaction.version 2 (KIP-890) the epoch
tells such a retry from a new request: the end that was decided has raised it. Then a retry has the
epoch before, or the last one of the id before.

    Empty            abort: an empty transaction, as the client may not know   commit: refused
    Ongoing          decided
    Prepare*         the same end: it is not over yet                          another: refused
    Complete*        a retry of the same end: done; with version 2 a new abort begins from here

Source: Kafka's TransactionCoordinator.endTransaction, endTransactionWithTV1 and
abortTimedOutTransactions.
"""

from dataclasses import replace

from broker.transactions.decisions import Decision, NeedsProducerId, Refused, Settled, Step
from broker.transactions.transaction import (
    EPOCH_BUMPS,
    EPOCH_MAX,
    NO_EPOCH,
    NO_ID,
    Transaction,
    TransactionState,
    ended,
    is_exhausted,
)
from wire.errors import ErrorCode
from wire.messages.transactions import EndTxnRequest

__all__ = ["end", "fenced"]

_PREPARED = {True: TransactionState.PREPARE_COMMIT, False: TransactionState.PREPARE_ABORT}
_COMPLETED = {True: TransactionState.COMPLETE_COMMIT, False: TransactionState.COMPLETE_ABORT}
_INVALID = Refused(ErrorCode.INVALID_TXN_STATE)
_CONCURRENT = Refused(ErrorCode.CONCURRENT_TRANSACTIONS)


def end(
    known: Transaction | None,
    request: EndTxnRequest,
    *,
    raises_epoch: bool,
    new_id: int | None,
    now_ms: int,
) -> Decision:
    """`raises_epoch`: the client takes the next epoch from the answer."""
    if known is None:
        return Refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if raises_epoch:
        return _end_with_epoch(known, request, new_id, now_ms)
    return _end(known, request, now_ms)


def _end(known: Transaction, request: EndTxnRequest, now_ms: int) -> Decision:
    if known.producer_id != request.producer_id:
        return Refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if known.producer_epoch != request.producer_epoch:
        return Refused(ErrorCode.PRODUCER_FENCED)
    if known.state is TransactionState.ONGOING:
        return Step(ended(known, _PREPARED[request.committed], now_ms, client_version=0))
    if known.state is _COMPLETED[request.committed]:
        return Settled(known.producer_id, known.producer_epoch)
    return _CONCURRENT if known.state is _PREPARED[request.committed] else _INVALID


def _end_with_epoch(
    known: Transaction, request: EndTxnRequest, new_id: int | None, now_ms: int
) -> Decision:
    state = known.state
    has_new_id = (
        known.previous_producer_id == request.producer_id
        and request.producer_epoch == EPOCH_MAX - 1
        and known.producer_epoch == 0
    )
    if known.producer_id != request.producer_id and not has_new_id:
        return Refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    was_raised = known.producer_epoch == request.producer_epoch + 1
    if not _is_valid(known, request, was_raised=was_raised, has_new_id=has_new_id):
        return Refused(ErrorCode.PRODUCER_FENCED)
    is_retry = was_raised or has_new_id
    if state.is_prepared:
        return _CONCURRENT if state is _PREPARED[request.committed] else _INVALID
    if state is not TransactionState.ONGOING:
        if is_retry and state is _COMPLETED[request.committed]:
            return Settled(known.producer_id, known.producer_epoch)
        # A new commit of nothing; or a retry after the opposite end.
        if request.committed or is_retry:
            return _INVALID
    return _decided(known, _PREPARED[request.committed], EPOCH_BUMPS, new_id, now_ms)


def _is_valid(
    known: Transaction, request: EndTxnRequest, *, was_raised: bool, has_new_id: bool
) -> bool:
    is_same = known.producer_epoch == request.producer_epoch
    if known.state.is_prepared:
        return was_raised
    if known.state in _COMPLETED.values():
        return is_same or was_raised or has_new_id
    return is_same


def fenced(
    known: Transaction, *, version: int, new_id: int | None, now_ms: int
) -> Step | NeedsProducerId:
    """Abort what is going on, under an epoch that its producer does not have."""
    assert known.state is TransactionState.ONGOING, known
    if version >= EPOCH_BUMPS:
        return _decided(known, TransactionState.PREPARE_ABORT, version, new_id, now_ms)
    aborted = ended(known, TransactionState.PREPARE_ABORT, now_ms, client_version=0)
    epoch = min(known.producer_epoch + 1, EPOCH_MAX)
    return Step(replace(aborted, producer_epoch=epoch, last_producer_epoch=NO_EPOCH))


def _decided(
    known: Transaction, state: TransactionState, version: int, new_id: int | None, now_ms: int
) -> Step | NeedsProducerId:
    needs_id = is_exhausted(known.producer_epoch)
    if needs_id and new_id is None:
        return NeedsProducerId()
    next_id = new_id if needs_id and new_id is not None else NO_ID
    return Step(ended(known, state, now_ms, client_version=version, next_producer_id=next_id))
