"""The producers of a log are read back after a truncation below its high watermark.

Only an unclean election asks for that. Of the transactions that had ended, and were committed,
nothing is kept in memory: if the marker of one is cut off, it is open again, and only the batches
tell where it began. Without that the replica, once it leads, would show its records to readers of
committed records, and name it in no index when it is aborted.

Kafka reads from the last snapshot of the producers on. Here the whole log is read, piece by piece.
"""

from quorum.core.producers import ProducerEntry, observe
from wire.batch import headers
from wire.transaction_markers import read_marker

__all__ = ["Recall"]


class Recall:
    """`next_offset` is the first that is still to be read."""

    __slots__ = ("_entries", "next_offset")

    def __init__(self, start_offset: int) -> None:
        self.next_offset = start_offset
        self._entries: dict[int, ProducerEntry] = {}

    def take(self, records: bytes) -> None:
        """The next piece of the log, in whole batches."""
        for position, header in headers(records):
            marker = None
            if header.is_control:
                marker = read_marker(records[position : position + header.size_bytes], header)
            observe(self._entries, header, marker)
            self.next_offset = header.next_offset

    def entries(self) -> tuple[ProducerEntry, ...]:
        return tuple(self._entries.values())
