"""What the active controller decides within a turn goes into the log as one batch, if it fits.

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

__all__ = ["BATCH_BYTES_MAX", "BATCH_RECORDS_MAX", "Accumulator", "spread_records_max"]

BATCH_BYTES_MAX = 8 << 20  # Kafka's, of several decisions; a single one may have more
# A broker applies a batch in one turn, in which it sends no heartbeat: up to 0.15 ms for each
# partition of which it has a replica, and three times as long beside other busy nodes. A decision
# that is atomic may have more records.
BATCH_RECORDS_MAX = 500
_SPREAD_RECORDS_MAX = 10_000  # Kafka's, of any batch
_REPLICATION_FACTOR = 3  # of most topics


def spread_records_max(active_brokers: int) -> int:
    """How many records a batch may have that is about partitions of all brokers alike.

    Where replicas are spread evenly, each broker has one of `BATCH_RECORDS_MAX` of them at most.
    Smaller batches would cost more in all: for each of them every node copies parts of its table of
    partitions.
    """
    spread = BATCH_RECORDS_MAX * active_brokers // _REPLICATION_FACTOR
    return max(BATCH_RECORDS_MAX, min(spread, _SPREAD_RECORDS_MAX))


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
        self,
        changes: Sequence[Change],
        *,
        records_max: int = BATCH_RECORDS_MAX,
        metadata_version: int,
        now_ms: int,
    ) -> int:
        """Put the records of a decision, or of a part of it, behind all others.

        They share a batch with those before them, unless it would then have more than `records_max`
        records, or two metadata versions. Returns the last offset (inclusive).
        """
        count = record_count(changes)
        is_too_many = self._record_count + count > records_max
        if is_too_many or metadata_version != self._version:
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
