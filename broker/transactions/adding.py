"""Partitions are added to a transaction, or it is verified that they are in it.

A partition is added before the first record of the transaction is written there, so that the
coordinator knows where to write the marker. With transaction.version 2 the leader of the partition
adds it (KIP-890); before, the client does, and the leader verifies that it has.

Source: Kafka's TransactionCoordinator.handleAddPartitionsToTransaction and
handleVerifyPartitionsInTransaction.
"""

from collections.abc import Mapping

from broker.transactions.decisions import Decision, Refused, Settled, Step
from broker.transactions.transaction import Transaction, TransactionState, opened
from broker.verifying import Place, Producer
from wire.errors import ErrorCode

__all__ = ["add", "verify"]


def add(
    known: Transaction | None,
    producer: Producer,
    places: frozenset[Place],
    *,
    client_version: int,
    now_ms: int,
) -> Decision:
    error = _error(known, producer)
    if known is None or error is not ErrorCode.NONE:
        return Refused(error)
    if known.state is TransactionState.ONGOING and places <= known.places:
        return Settled(known.producer_id, known.producer_epoch)
    return Step(opened(known, places, now_ms, client_version=client_version))


def verify(
    known: Transaction | None, producer: Producer, places: frozenset[Place]
) -> Mapping[Place, ErrorCode]:
    """By partition: NONE if it is in the transaction that is going on."""
    error = _error(known, producer)
    if known is None or error is not ErrorCode.NONE:
        return dict.fromkeys(places, error)
    return {
        place: ErrorCode.NONE if place in known.places else ErrorCode.TRANSACTION_ABORTABLE
        for place in places
    }


def _error(known: Transaction | None, producer: Producer) -> ErrorCode:
    if known is None or known.producer_id != producer.id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if known.producer_epoch != producer.epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.CONCURRENT_TRANSACTIONS if known.state.is_prepared else ErrorCode.NONE
