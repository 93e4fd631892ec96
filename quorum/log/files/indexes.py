"""The two sparse indexes of a segment, held in memory in the very form of their files.

    .index      8 bytes an entry: last offset of a batch - base offset, position of that batch
    .timeindex 12 bytes an entry: largest timestamp so far, offset of its batch - base offset

A batch gets an entry when more than `interval_bytes` lie between it and the last batch that got
one. While a segment is active its indexes live here only: a crash loses nothing, because the tail
of a log is read again anyway when it is opened. They are written out when the segment is rolled.

An index is a hint: a reader checks that the batch it was sent to is the one that the entry names.

Source: Kafka's OffsetIndex, TimeIndex and LogSegment.append (from 4.0: an entry a batch).
"""

import struct
from bisect import bisect_left, bisect_right

from wire.batch import BatchHeader
from wire.primitives import INT32_MAX

__all__ = ["ENTRY_BYTES", "Indexes"]

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")
ENTRY_BYTES = (_OFFSET_ENTRY.size, _TIME_ENTRY.size)
_NO_TIMESTAMP = -1


class Indexes:
    """Mutable, and owned by its segment."""

    __slots__ = (
        "_base_offset",
        "_indexed_position",
        "interval_bytes",
        "max_timestamp_ms",
        "max_timestamp_offset",
        "offsets",
        "times",
    )

    def __init__(
        self, base_offset: int, *, interval_bytes: int, offsets: bytes = b"", times: bytes = b""
    ) -> None:
        self._base_offset = base_offset
        self.interval_bytes = interval_bytes
        self.offsets = bytearray(offsets)
        self.times = bytearray(times)
        self._indexed_position = self._last_position()
        self.max_timestamp_ms, self.max_timestamp_offset = self._last_time()

    def add(self, position: int, header: BatchHeader) -> None:
        """Take the batch at `position` into account; harmless to repeat."""
        if header.max_timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = header.max_timestamp_ms
            self.max_timestamp_offset = header.last_offset
        if position - self._indexed_position > self.interval_bytes:
            self.offsets += _OFFSET_ENTRY.pack(header.last_offset - self._base_offset, position)
            self._indexed_position = position
            self._add_time()

    def finish(self) -> None:
        """The segment will not grow: let the last time entry hold its largest timestamp."""
        self._add_time()

    def truncate(self, end_offset: int) -> None:
        """Forget the batches at or after `end_offset`.

        What follows the last remaining entry must be added again: it may hold the largest
        timestamp.
        """
        relative = end_offset - self._base_offset
        del self.offsets[self._count_below(relative) * _OFFSET_ENTRY.size :]
        kept = bisect_left(
            range(len(self.times) // _TIME_ENTRY.size), relative, key=lambda i: self._time(i)[1]
        )
        del self.times[kept * _TIME_ENTRY.size :]
        self._indexed_position = self._last_position()
        self.max_timestamp_ms, self.max_timestamp_offset = self._last_time()

    def entry_before(self, offset: int, *, position_max: int = INT32_MAX) -> tuple[int, int] | None:
        """(last offset, position) of the last indexed batch that ends before `offset`, and begins
        at or before `position_max`."""
        count = self._count_below(offset - self._base_offset)
        if position_max < INT32_MAX:
            count = bisect_right(range(count), position_max, key=lambda i: self._offset(i)[1])
        if count == 0:
            return None
        relative, position = self._offset(count - 1)
        return self._base_offset + relative, position

    def offset_before_timestamp(self, timestamp_ms: int) -> int:
        """An offset before which every record is older than `timestamp_ms`."""
        count = bisect_right(
            range(len(self.times) // _TIME_ENTRY.size),
            timestamp_ms,
            key=lambda i: self._time(i)[0],
        )
        return self._base_offset + (self._time(count - 1)[1] if count else 0)

    def is_sound(self, *, end_offset: int, size_bytes: int) -> bool:
        """Could these be the indexes of a whole segment that ends there? Looks at the
        outermost entries only."""
        if len(self.offsets) % _OFFSET_ENTRY.size or len(self.times) % _TIME_ENTRY.size:
            return False
        relative_end = end_offset - self._base_offset
        if self.times:
            first_ms, first = self._time(0)
            last_ms, last = self._time(len(self.times) // _TIME_ENTRY.size - 1)
            is_one = len(self.times) == _TIME_ENTRY.size
            if not (0 <= first <= last < relative_end and (is_one or first_ms < last_ms)):
                return False
        if not self.offsets:
            return size_bytes <= self.interval_bytes
        relative, position = self._offset(len(self.offsets) // _OFFSET_ENTRY.size - 1)
        return 0 <= relative < relative_end and 0 < position < size_bytes

    def _add_time(self) -> None:
        if self.max_timestamp_ms > self._last_time()[0]:
            relative = self.max_timestamp_offset - self._base_offset
            self.times += _TIME_ENTRY.pack(self.max_timestamp_ms, relative)

    def _count_below(self, relative: int) -> int:
        count = len(self.offsets) // _OFFSET_ENTRY.size
        return bisect_left(range(count), relative, key=lambda i: self._offset(i)[0])

    def _offset(self, entry: int) -> tuple[int, int]:
        relative, position = _OFFSET_ENTRY.unpack_from(self.offsets, entry * _OFFSET_ENTRY.size)
        return relative, position

    def _time(self, entry: int) -> tuple[int, int]:
        timestamp, relative = _TIME_ENTRY.unpack_from(self.times, entry * _TIME_ENTRY.size)
        return timestamp, relative

    def _last_position(self) -> int:
        count = len(self.offsets) // _OFFSET_ENTRY.size
        return self._offset(count - 1)[1] if count else 0

    def _last_time(self) -> tuple[int, int]:
        count = len(self.times) // _TIME_ENTRY.size
        if count == 0:
            return _NO_TIMESTAMP, self._base_offset
        timestamp, relative = self._time(count - 1)
        return timestamp, self._base_offset + relative
