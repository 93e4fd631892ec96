"""What the active controller decides within a turn goes into the log as one batch.

Each decision has its offsets at once, so that the next one can rest on it; its records are written
with all others of the turn. A batch costs every node as much as a few records do, in its header and
its checksum, its place in the index, its sync and its delivery.

A batch travels whole. So decisions whose bytes together are too many are written one by one: what
one request may change is bounded where it is decided (`controller.decisions.decision`).

Source: Kafka's BatchAccumulator; KIP-595, whose `appendLingerMs` is here the length of a turn.
"""

from collections.abc import Iterable, Sequence
from itertools import chain

from controller.metadata.changes import Change, encode_changes, record_count
from quorum.core.application import MetadataLog

__all__ = ["BATCH_BYTES_MAX", "Accumulator", "batch_records_max"]

BATCH_BYTES_MAX = 8 << 20  # Kafka's, of several decisions; a single one may have more
_RECORDS_MAX = 10_000  # Kafka's
_RECORDS_OF_A_BROKER = 500
_REPLICAS = 3  # of most partitions


def batch_records_max(brokers: int) -> int:
    """How many records a batch may have in a cluster of so many brokers; an atomic one may be more.

    A broker applies a batch in one turn, in which it sends no heartbeat. Each of its partitions
    takes 0.15 ms, and three times as long beside other busy nodes: 500 of them may come together.
    Where brokers are many, a batch is about few partitions of each; smaller ones would have every
    node copy the table of partitions for the sake of some.
    """
    own = _RECORDS_OF_A_BROKER * brokers // _REPLICAS
    return min(max(own, _RECORDS_OF_A_BROKER), _RECORDS_MAX)


class Accumulator:
    """The end of `log`, which nobody else may append to while there is something in here."""

    __slots__ = ("_log", "_now_ms", "_record_count", "_version", "decisions")

    def __init__(self, log: MetadataLog) -> None:
        self._log = log
        self.decisions: list[Sequence[Change]] = []  # the changes of each `add`
        self._record_count = 0
        self._version = 0  # the metadata.version of the changes
        self._now_ms = 0  # when the last of them was added

    @property
    def end_offset(self) -> int:
        """Where the next record goes."""
        return self._log.end_offset + self._record_count

    def add(
        self, changes: Sequence[Change], *, records_max: int, metadata_version: int, now_ms: int
    ) -> int:
        """Put the records of one decision, or of a part of it, behind all others, to be written
        together if they are no more than `records_max`; returns the last offset.
        """
        count = record_count(changes)
        is_full = self._record_count + count > records_max
        if is_full or metadata_version != self._version:
            self.write()
        self._version, self._now_ms = metadata_version, now_ms
        self.decisions.append(changes)
        self._record_count += count
        return self.end_offset - 1

    def write(self) -> None:
        """Append what is in here."""
        if not self.decisions:
            return
        decisions, last_offset = self.decisions, self.end_offset - 1
        batches = [self._encoded(chain.from_iterable(decisions))]
        if len(batches[0]) > BATCH_BYTES_MAX and len(decisions) > 1:
            batches = [self._encoded(changes) for changes in decisions]
        self.clear()
        written = -1
        for batch in batches:
            written = self._log.append(batch, self._now_ms)
        assert written == last_offset, f"{written} is not {last_offset}: somebody else appended"

    def _encoded(self, changes: Iterable[Change]) -> bytes:
        return encode_changes(changes, timestamp_ms=self._now_ms, metadata_version=self._version)

    def clear(self) -> None:
        """Leadership is lost: forget what was not written."""
        self.decisions = []
        self._record_count = 0
