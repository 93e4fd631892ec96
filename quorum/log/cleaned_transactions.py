"""Which batches of a compacted log belong to transactions that were aborted.

By the index of aborted transactions, of which a log keeps those that have data left. What it does
not name was committed: nothing at or above the last stable offset is cleaned.

Source: Kafka's CleanedTransactionMetadata.
"""

from bisect import bisect_left
from collections.abc import Iterable
from operator import attrgetter

from quorum.core.producers import AbortedTransaction
from wire.batch import BatchHeader

__all__ = ["AbortedTransactions"]


class AbortedTransactions:
    def __init__(self, aborted: Iterable[AbortedTransaction] = ()) -> None:
        """In the order of their markers."""
        self._by_producer: dict[int, list[AbortedTransaction]] = {}
        for each in aborted:
            self._by_producer.setdefault(each.producer_id, []).append(each)

    def of(self, header: BatchHeader) -> AbortedTransaction | None:
        """The one that a transactional batch belongs to, or that a marker has ended."""
        own = self._by_producer.get(header.producer_id) if header.is_transactional else None
        if own is None:
            return None
        place = bisect_left(own, header.last_offset, key=attrgetter("last_offset"))
        if place == len(own) or own[place].first_offset > header.base_offset:
            return None
        return own[place]
