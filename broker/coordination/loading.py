"""A coordinator's partition is read before the coordinator serves.

Only committed records are read, so that nothing that was loaded is ever truncated. All records
that lay in the log at the election are read, so that nothing that was acknowledged is missing.
The coordinator is loading until the high watermark of the new leader has passed those records. One
piece is read at a time, so that a long log stops nothing else. What the records mean is up to the
`Contents`.

Source: Kafka's CoordinatorLoaderImpl.
"""

from collections.abc import Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from broker.partition.local_log import LocalLog
from broker.partition.partition import Partition
from quorum.core.effects import Event, ReadDone
from quorum.core.outbox import Answered
from wire.batch import BatchHeader, Record, headers, records_of
from wire.varint import Malformed

__all__ = ["Batches", "Contents", "Loading", "last_of_each_key", "load_end"]

Batches = Sequence[tuple[BatchHeader, bytes]]


class Contents(Protocol):
    """The records say this so far."""

    def take(self, batches: Batches) -> None:
        """Take the next piece of the log into account. Raises `Malformed`."""


C = TypeVar("C", bound=Contents)


def last_of_each_key(batches: Batches) -> Iterator[Record]:
    """The others need not be decoded, which would take most of the time."""
    latest: dict[bytes | None, Record] = {}
    for _, batch in batches:
        latest.update((record.key, record) for record in records_of(batch))
    yield from latest.values()


def load_end(log: LocalLog) -> int:
    """Up to where a new leader reads: a follower learns late how far its log is committed."""
    return log.end_offset


class Loading(Generic[C]):
    def __init__(self, partition: Partition, contents: C, *, bytes_max: int) -> None:
        self._log = partition.open_log
        self._bytes_max = bytes_max
        self._contents = contents
        self._next_offset = self._log.start_offset
        self._end_offset = load_end(self._log)
        self._asked_end = 0  # of what is read, or was read last
        self._empty_end = 0  # up to there nothing is left to be read: a compacted log has gaps
        self._is_reading = False
        self._is_over = False

    def go_on(self, answered: Answered) -> C | None:
        """Read the next piece, if it is committed. Returns the contents once all are read."""
        if self._is_reading or self._is_over:
            return None
        if self._next_offset >= self._end_offset:
            self._is_over = True
            return self._contents
        committed = min(self._log.high_watermark, self._end_offset)
        if max(self._next_offset, self._empty_end) < committed:
            self._is_reading, self._asked_end = True, committed
            self._log.read(
                start_offset=self._next_offset,
                end_offset=committed,
                bytes_max=self._bytes_max,
                answered=answered,
            )
        return None

    def cancel(self) -> None:
        self._is_over = True

    def take(self, event: Event) -> str | None:
        """A piece was read. Returns a sentence if it cannot be: then this is over."""
        self._is_reading = False
        if self._is_over:
            return None
        problem: str | None = None
        if isinstance(event, ReadDone) and event.records:
            try:
                self._apply(event.records)
            except Malformed as error:
                problem = str(error)
        elif isinstance(event, ReadDone) and self._asked_end < self._end_offset:
            self._empty_end = self._asked_end  # the next batch may begin behind the high watermark
        else:
            problem = f"offset {self._next_offset} cannot be read"
        self._is_over = problem is not None
        return problem

    def _apply(self, records: bytes) -> None:
        batches = [
            (header, records[position : position + header.size_bytes])
            for position, header in headers(records)
        ]
        if not batches:
            raise Malformed(f"no whole batch at offset {self._next_offset}")
        self._contents.take(batches)
        self._next_offset = batches[-1][0].next_offset
