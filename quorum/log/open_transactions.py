"""The producers whose transactions are open at the end of a log, by the headers of its batches.

It is what a storage has to know of them, so that it can say at the start of each segment which
transactions began before it. What may be appended, and where the last stable offset lies, is
decided with more than that: see `broker.partition`.

Source: Kafka's ProducerStateManager (`ongoingTxns`).
"""

from collections.abc import Iterable

from quorum.core.producers import ProducerEntry, ProducerTransaction
from wire.batch import BatchHeader

__all__ = ["OpenTransactions", "only_open"]


class OpenTransactions:
    """`last_offset` is that of the last batch of any transaction, or one behind it."""

    __slots__ = ("last_offset", "producers")

    def __init__(self, producers: Iterable[ProducerEntry] = (), *, last_offset: int = -1) -> None:
        self.producers = only_open(producers)
        self.last_offset = last_offset

    def observe(self, header: BatchHeader) -> None:
        if not header.is_transactional:
            return
        self.last_offset = header.last_offset
        producer_id = header.producer_id
        if header.is_control:
            self.producers.pop(producer_id, None)
        elif producer_id not in self.producers:
            transactions = (ProducerTransaction(header.base_offset),)
            self.producers[producer_id] = ProducerEntry(
                producer_id, header.producer_epoch, (), transactions=transactions
            )


def only_open(producers: Iterable[ProducerEntry]) -> dict[int, ProducerEntry]:
    """By producer id, and of each only that its transaction is open."""
    return {
        each.producer_id: ProducerEntry(
            each.producer_id,
            each.producer_epoch,
            (),
            coordinator_epoch=each.coordinator_epoch,
            transactions=(ProducerTransaction(each.open_since),),
        )
        for each in producers
        if each.open_since >= 0
    }
