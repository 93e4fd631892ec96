"""The records of `__transaction_state`, told by the names that Kafka's decoder uses.

Source: Kafka's DumpLogSegments with --transaction-log-decoder.
"""

from collections.abc import Iterator
from typing import Any

from broker.transactions.transaction import Transaction
from broker.transactions.transaction_records import TransactionChange, decode_change
from quorumlab.inspection.batches import Batch
from quorumlab.inspection.coordinator_log import Told, coordinator_lines
from quorumlab.inspection.partition_log import Line
from wire.batch import Record

__all__ = ["transaction_lines"]


def transaction_lines(batch: Batch) -> Iterator[Line]:
    return coordinator_lines(batch, _tell)


def _tell(record: Record) -> Told | None:
    change = decode_change(record)
    return None if change is None else ("TRANSACTION", _fields(change))


def _fields(change: TransactionChange) -> dict[str, Any]:
    """A forgotten id has nothing but its name."""
    found = change.transaction
    state = {} if found is None else _state(found)
    return {"transactionalId": change.transactional_id, **state}


def _state(found: Transaction) -> dict[str, Any]:
    tagged = {
        "previousProducerId": found.previous_producer_id,
        "nextProducerId": found.next_producer_id,
        "clientTransactionVersion": found.client_version,
    }
    return {
        "transactionStatus": found.state.label,
        "producerId": found.producer_id,
        "producerEpoch": found.producer_epoch,
        "transactionTimeoutMs": found.timeout_ms,
        "transactionPartitions": [f"{topic}-{index}" for topic, index in sorted(found.places)],
        "transactionLastUpdateTimestampMs": found.update_ms,
        "transactionStartTimestampMs": found.start_ms,
        **{name: value for name, value in tagged.items() if value not in (-1, 0)},
    }
