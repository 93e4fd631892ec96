"""The newest batches of a log, in memory: what almost every reader of a log asks for.

A follower asks for what was appended since its last Fetch, and an application for what was
committed since. Both are here, so that neither waits for a read of the disk. The bytes are those
that were appended, offsets and epochs in them are final, and they are the end of the log without a
gap. A truncation drops all of them: a record that was cut off must never be shown again, and the
leader of a new epoch writes another at its offset.

Decides nothing about who may read what.
"""

from bisect import bisect_right

from wire.batch import headers

__all__ = ["TAIL_BYTES_MAX", "Tail"]

TAIL_BYTES_MAX = 8 << 20  # Kafka's maximal answer to a Fetch of the metadata log


class Tail:
    """Runs of whole batches, each as it was appended.

    Followers ask for the same at the same time: what several runs were joined to for one of them
    is kept for the others, until the log changes. Joined for each, 4 MB for 30 brokers kept all of
    them waiting for 100 ms.
    """

    __slots__ = ("_bytes", "_ends", "_joined", "_runs", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []  # of each run, ascending
        self._ends: list[int] = []  # exclusive; each the start of the next run
        self._runs: list[bytes] = []
        self._bytes = 0
        self._joined: tuple[tuple[int, int, int], bytes] | None = None  # what was asked, the answer

    def append(self, start_offset: int, end_offset: int, batches: bytes) -> None:
        """`batches` hold all records from `start_offset`, where the log ended, to `end_offset`."""
        self._joined = None
        self._starts.append(start_offset)
        self._ends.append(end_offset)
        self._runs.append(batches)
        self._bytes += len(batches)
        if self._bytes > TAIL_BYTES_MAX:
            self._forget()

    def clear(self) -> None:
        self._joined = None
        del self._starts[:], self._ends[:], self._runs[:]
        self._bytes = 0

    def read(self, *, start_offset: int, end_offset: int, bytes_max: int) -> bytes | None:
        """Whole batches from the one that holds `start_offset`, all below `end_offset`.

        As `Read` gives them: at least one, if it ends there, and otherwise `bytes_max` at most.
        None if the first is not here (any more).
        """
        asked = (start_offset, end_offset, bytes_max)
        if self._joined is not None and self._joined[0] == asked:
            return self._joined[1]
        first = bisect_right(self._starts, start_offset) - 1
        if first < 0:
            return None
        found: list[bytes] = []
        left = bytes_max
        for place in range(first, len(self._runs)):
            if found and self._starts[place] >= end_offset:
                break
            run = self._runs[place]
            is_within = self._starts[place] >= start_offset and self._ends[place] <= end_offset
            if not is_within or len(run) > left:
                found.append(_cut(run, start_offset, end_offset, left, is_first=not found))
                break  # a reader that began within a run gets the next run with its next read
            found.append(run)
            left -= len(run)
        if len(found) == 1:
            return found[0]
        self._joined = asked, b"".join(found)
        return self._joined[1]

    def whole_batches(self, offset: int) -> int:
        """Where the last batch ends that ends at `offset` or before it.

        It is `offset` itself where the batch that holds it is not here (any more).
        """
        place = bisect_right(self._starts, offset - 1) - 1
        if place < 0 or self._ends[place] <= offset:
            return offset
        end = self._starts[place]
        for _, header in headers(self._runs[place]):
            if header.next_offset > offset:
                break
            end = header.next_offset
        return end

    def _forget(self) -> None:
        """Enough of the oldest runs, so that this is seldom done."""
        count = 0
        while self._bytes > TAIL_BYTES_MAX * 3 // 4 and count < len(self._runs):
            self._bytes -= len(self._runs[count])
            count += 1
        del self._starts[:count], self._ends[:count], self._runs[:count]


def _cut(
    run: bytes, start_offset: int, end_offset: int, bytes_max: int, *, is_first: bool
) -> bytes:
    """The batches of a run that hold `start_offset` and what follows, as far as they may go."""
    begin = end = -1
    for position, header in headers(run):
        if header.next_offset <= start_offset:
            continue
        if begin < 0:
            begin = end = position
        stop = position + header.size_bytes
        is_needed = is_first and end == begin
        if header.next_offset > end_offset or (stop - begin > bytes_max and not is_needed):
            break
        end = stop
    return run[begin:end] if begin >= 0 else b""
