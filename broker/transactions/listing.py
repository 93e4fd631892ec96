"""DescribeTransactions and ListTransactions: where transactions stand.

Source: KIP-664, KIP-994, KIP-1152; Kafka's TransactionStateManager.listTransactionStates.
"""

from collections.abc import Callable, Iterable, Iterator

from broker.transactions.transaction import Transaction, TransactionState, places_by_topic
from wire.errors import ErrorCode
from wire.messages.transactions import (
    DescribedTransaction,
    ListedTransaction,
    ListTransactionsRequest,
    TransactionTopic,
)

__all__ = ["STATE_NAMES", "describe", "list_transactions"]

# Kafka knows one more, which no transaction is ever in here.
STATE_NAMES = frozenset({*(state.label for state in TransactionState), "PrepareEpochFence"})


def describe(transactional_id: str, transaction: Transaction | None) -> DescribedTransaction:
    if transaction is None:
        return DescribedTransaction(
            transactional_id=transactional_id, error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        )
    return DescribedTransaction(
        transactional_id=transactional_id,
        transaction_state=transaction.state.label,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=tuple(
            TransactionTopic(topic=topic, partitions=tuple(indexes))
            for topic, indexes in places_by_topic(transaction.places).items()
        ),
    )


def list_transactions(
    transactions: Iterable[Transaction],
    request: ListTransactionsRequest,
    matches: Callable[[str], bool],
    now_ms: int,
) -> Iterator[ListedTransaction]:
    """Those that pass every filter that is given."""
    producers, states = request.producer_id_filters, request.state_filters
    for each in transactions:
        running_ms = now_ms - each.start_ms
        if (
            (not producers or each.producer_id in producers)
            and (not states or each.state.label in states)
            and (request.duration_filter < 0 or running_ms > request.duration_filter)
            and matches(each.id)
        ):
            yield ListedTransaction(
                transactional_id=each.id,
                producer_id=each.producer_id,
                transaction_state=each.state.label,
            )
