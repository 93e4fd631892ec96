"""A coordinator writes to `__consumer_offsets` as a producer with acks=all would.

A write counts, and its request is answered, when the high watermark has passed it. If that takes
too long, or if leadership is lost, the request is answered with an error. The write may be
committed all the same, and then it counts.

Source: Kafka's CoordinatorPartitionWriter and CoordinatorRuntime.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from broker.groups.records import Change, encode_change
from broker.partition import appends
from broker.partition.batch_checks import Refused, check_batch
from broker.partition.partition import Partition
from broker.waiting import Deadlines, OffsetWaiters
from wire.batch import build_batch
from wire.errors import ErrorCode

__all__ = ["Concluded", "Write", "Writing"]

Concluded = Callable[[ErrorCode, int], None]  # (error, now_ms), once


@dataclass(slots=True, eq=False)
class Write:
    """What is written counts when it is committed, also if it was answered as late before."""

    changes: Sequence[Change]
    concluded: Concluded
    is_answered: bool = False
    is_done: bool = False  # committed, or leadership is lost

    def conclude(self, error: ErrorCode, now_ms: int) -> None:
        if not self.is_answered:
            self.is_answered = True
            self.concluded(error, now_ms)


class Writing:
    def __init__(
        self,
        partition: Partition,
        *,
        deadlines: Deadlines,
        timeout_ms: int,
    ) -> None:
        self._partition = partition
        self._deadlines = deadlines
        self._timeout_ms = timeout_ms
        self._waiting: OffsetWaiters[Write] = OffsetWaiters()  # for the high watermark

    @property
    def bytes_max(self) -> int:
        """The size limit of a batch."""
        return self._partition.settings.max_message_bytes

    def write(self, changes: Sequence[Change], concluded: Concluded, now_ms: int) -> bool:
        """Append them as one batch, all or none. `concluded` may be called at once."""
        error = self._append(changes, now_ms)
        if error is not ErrorCode.NONE:
            concluded(coordinator_error(error), now_ms)
            return False
        self._wait(changes, concluded, now_ms)
        self._partition.advance(now_ms)
        return True

    def flush(self, concluded: Concluded, now_ms: int) -> None:
        """When all that was written before is committed."""
        if self._waiting.has(self._partition):
            self._wait((), concluded, now_ms)
        else:
            concluded(ErrorCode.NONE, now_ms)

    def committed(self) -> Iterator[Write]:
        """Return the writes that the high watermark has passed, in the order of the log."""
        high_watermark = self._partition.open_log.high_watermark
        for write in self._waiting.reached(self._partition, high_watermark):
            write.is_done = True
            yield write

    def close(self, error: ErrorCode, now_ms: int) -> None:
        for write in self._waiting.clear(self._partition):
            write.is_done = True
            write.conclude(error, now_ms)

    def _append(self, changes: Sequence[Change], now_ms: int) -> ErrorCode:
        partition = self._partition
        error = appends.required_replicas_error(partition)
        if error is not ErrorCode.NONE:
            return error
        records = [encode_change(change) for change in changes]
        batch = build_batch(records, timestamp_ms=now_ms)
        header = check_batch(batch, partition.settings)
        if isinstance(header, Refused):
            return header.error
        partition.append(batch, header)
        return ErrorCode.NONE

    def _wait(self, changes: Sequence[Change], concluded: Concluded, now_ms: int) -> None:
        write = Write(changes, concluded)
        self._waiting.add(self._partition, self._partition.open_log.end_offset, write)
        late = coordinator_error(ErrorCode.REQUEST_TIMED_OUT)
        deadline_ms = now_ms + self._timeout_ms
        if not self._deadlines.add(write, deadline_ms, partial(write.conclude, late)):
            write.conclude(late, now_ms)


def coordinator_error(error: ErrorCode) -> ErrorCode:
    """What a member is told when its coordinator could not write: where to turn to, if at all."""
    match error:
        case ErrorCode.NOT_ENOUGH_REPLICAS | ErrorCode.REQUEST_TIMED_OUT:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        case ErrorCode.MESSAGE_TOO_LARGE:
            return ErrorCode.UNKNOWN_SERVER_ERROR
        case _:
            return error
