"""The records that a consumer is given from the batches that it fetched.

No markers of transactions, and with `read_committed` no records of transactions that were aborted:
the leader names these, and a client passes over their batches from the first offset to the marker.

Source: KIP-98; Kafka's CompletedFetch.
"""

from collections.abc import Iterator

from wire.batch import BatchHeader, Record, headers, records_of
from wire.messages.fetching import FetchedPartition
from wire.transaction_markers import read_marker

__all__ = ["READ_COMMITTED", "readable"]

READ_COMMITTED = 1  # an isolation level of Fetch and ListOffsets


def readable(fetched: FetchedPartition) -> Iterator[tuple[BatchHeader, list[Record]]]:
    """Each batch, and what is given of it. Nothing is aborted where the leader names nothing."""
    waiting = sorted(fetched.aborted_transactions or (), key=lambda each: each.first_offset)
    aborted: set[int] = set()
    batches = fetched.records or b""
    for position, header in headers(batches):
        while waiting and waiting[0].first_offset <= header.last_offset:
            aborted.add(waiting.pop(0).producer_id)
        batch = batches[position : position + header.size_bytes]
        if header.is_control:
            marker = read_marker(batch, header)
            if marker is not None and not marker.is_commit:
                aborted.discard(header.producer_id)
            yield header, []
        elif header.is_transactional and header.producer_id in aborted:
            yield header, []
        else:
            yield header, list(records_of(batch))
