"""A coordinator writes to its partition as a producer with acks=all would.

A write counts, and its request is answered, when the high watermark has passed it. If that takes
too long, or if leadership is lost, the request is answered with an error. The write may be
committed all the same, and then it counts.

Source: Kafka's CoordinatorPartitionWriter and CoordinatorRuntime.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from broker.partition import appends
from broker.partition.partition import Partition
from broker.partition.transactional import Guard, check_verified, is_under_way
from broker.verifying import Producer
from broker.waiting import Deadlines, OffsetWaiters
from wire.batch import BATCH_BYTES_MAX, Record, build_batch, read_header
from wire.errors import ErrorCode

__all__ = ["Concluded", "Write", "Writing", "coordinator_error", "nobody_waits"]

_CHANGES_MAX = 500  # in a batch
_BYTES_BESIDE_RECORD = 100  # at most, of its key and value, with a share of the batch's header
_NO_SEQUENCE = -1

Change = TypeVar("Change")
Concluded = Callable[[ErrorCode, int], None]  # (error, now_ms), once


@dataclass(slots=True, eq=False)
class Write(Generic[Change]):
    """What is written counts when it is committed, also if it was answered as late before."""

    changes: Sequence[Change]
    concluded: Concluded
    is_answered: bool = False
    is_done: bool = False  # committed, or leadership is lost

    def conclude(self, error: ErrorCode, now_ms: int) -> None:
        if not self.is_answered:
            self.is_answered = True
            self.concluded(error, now_ms)


class Writing(Generic[Change]):
    def __init__(
        self,
        partition: Partition,
        encode: Callable[[Change], Record],
        *,
        deadlines: Deadlines,
        timeout_ms: int,
    ) -> None:
        self._partition = partition
        self._encode = encode
        self._deadlines = deadlines
        self._timeout_ms = timeout_ms
        self._waiting: OffsetWaiters[Write[Change]] = OffsetWaiters()  # for the high watermark

    def write(
        self,
        changes: Sequence[Change],
        concluded: Concluded,
        now_ms: int,
        *,
        producer: Producer | None = None,
        guard: Guard | None = None,
        bytes_max: int | None = None,
    ) -> bool:
        """Append them as one batch, all or none. `concluded` may be called at once.

        With a `producer` they belong to its transaction, which has been verified under the `guard`.
        `bytes_max` is the topic's max.message.bytes unless it is given.
        """
        if not changes:
            concluded(ErrorCode.NONE, now_ms)
            return True
        bytes_max = self._bytes_max if bytes_max is None else bytes_max
        error = self._append(changes, producer, guard, bytes_max, now_ms)
        if error is not ErrorCode.NONE:
            concluded(coordinator_error(error), now_ms)
            return False
        self._wait(changes, concluded, now_ms)
        self._partition.advance(now_ms)
        return True

    def in_batches(self, changes: Iterable[Change]) -> Iterator[Sequence[Change]]:
        """As many in one as it may hold: names of tens of kilobytes are allowed."""
        part: list[Change] = []
        size = 0
        for change in changes:
            record = self._encode(change)
            added = len(record.key or b"") + len(record.value or b"") + _BYTES_BESIDE_RECORD
            if part and (len(part) == _CHANGES_MAX or size + added > self._bytes_max):
                yield part
                part, size = [], 0
            part.append(change)
            size += added
        if part:
            yield part

    def start_guard(self, producer: Producer) -> Guard | None:
        """Under it a transaction is verified before the first write; None: it is going on here."""
        if is_under_way(self._partition.open_log.producers.entry(producer.id), producer.epoch):
            return None
        return self._partition.led.guards.start(*producer, _NO_SEQUENCE, begins_at_zero=False)

    def appended(self, change: Change) -> None:
        """Another has just appended this: it counts when it is committed, like what we write."""
        write = Write((change,), nobody_waits, is_answered=True)
        self._waiting.add(self._partition, self._partition.open_log.end_offset, write)

    def flush(self, concluded: Concluded, now_ms: int) -> None:
        """When all that was written before is committed."""
        if self._waiting.has(self._partition):
            self._wait((), concluded, now_ms)
        else:
            concluded(ErrorCode.NONE, now_ms)

    def in_flight(self) -> Iterator[Change]:
        """What has been written, and does not count yet."""
        for write in self._waiting.waiting(self._partition):
            yield from write.changes

    def committed(self) -> Iterator[Write[Change]]:
        """Return the writes that the high watermark has passed, in the order of the log."""
        high_watermark = self._partition.open_log.high_watermark
        for write in self._waiting.reached(self._partition, high_watermark):
            write.is_done = True
            yield write

    def close(self, error: ErrorCode, now_ms: int) -> None:
        for write in self._waiting.clear(self._partition):
            write.is_done = True
            write.conclude(error, now_ms)

    @property
    def _bytes_max(self) -> int:
        return min(self._partition.settings.max_message_bytes, BATCH_BYTES_MAX)

    def _append(
        self,
        changes: Sequence[Change],
        producer: Producer | None,
        guard: Guard | None,
        bytes_max: int,
        now_ms: int,
    ) -> ErrorCode:
        partition = self._partition
        error = appends.required_replicas_error(partition)
        if error is not ErrorCode.NONE:
            return error
        records = [self._encode(change) for change in changes]
        if producer is None:
            batch = build_batch(records, timestamp_ms=now_ms)
        else:
            batch = build_batch(
                records,
                timestamp_ms=now_ms,
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                is_transactional=True,
            )
        if len(batch) > bytes_max:
            return ErrorCode.MESSAGE_TOO_LARGE
        header = read_header(batch)
        if producer is not None:
            entry = partition.open_log.producers.entry(producer.id)
            if entry is not None and producer.epoch < entry.producer_epoch:
                return ErrorCode.INVALID_PRODUCER_EPOCH
            current = partition.led.guards.of(producer.id)
            refused = check_verified(entry, header, current=current, shown=guard)
            if refused is not None:
                return refused.error
        partition.append(batch, header)
        return ErrorCode.NONE

    def _wait(self, changes: Sequence[Change], concluded: Concluded, now_ms: int) -> None:
        write = Write(changes, concluded)
        self._waiting.add(self._partition, self._partition.open_log.end_offset, write)
        late = coordinator_error(ErrorCode.REQUEST_TIMED_OUT)
        deadline_ms = now_ms + self._timeout_ms
        if not self._deadlines.add(write, deadline_ms, partial(write.conclude, late)):
            write.conclude(late, now_ms)


def nobody_waits(_result: object, _now_ms: int) -> None:
    """What is refused is tried again later."""


def coordinator_error(error: ErrorCode) -> ErrorCode:
    """What a client is told when its coordinator could not write: where to turn to, if at all.

    Source: Kafka's CoordinatorOperationExceptionHelper.
    """
    match error:
        case ErrorCode.NETWORK_EXCEPTION:  # of a verification: older clients do not retry after it
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        case (
            ErrorCode.NOT_ENOUGH_REPLICAS
            | ErrorCode.REQUEST_TIMED_OUT
            | ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        case ErrorCode.NOT_LEADER_OR_FOLLOWER | ErrorCode.KAFKA_STORAGE_ERROR:
            return ErrorCode.NOT_COORDINATOR
        case ErrorCode.MESSAGE_TOO_LARGE | ErrorCode.RECORD_LIST_TOO_LARGE:
            return ErrorCode.UNKNOWN_SERVER_ERROR
        case _:
            return error
