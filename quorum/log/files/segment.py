"""One segment of a log: a file of whole batches, its two sparse indexes, and of transactions.

    <base offset, 20 digits>.log         batches, one after the other
    <base offset, 20 digits>.index       see `quorum.log.files.indexes`
    <base offset, 20 digits>.timeindex
    <base offset, 20 digits>.txnindex    see `quorum.log.files.transaction_files`
    <base offset, 20 digits>.open

A segment does not know whether it is the active one; `quorum.log.files.segments` does. It never
syncs. While one takes the place of others, further suffixes say how far that is (`swapping`).

Source: Kafka's LogSegment.
"""

from collections.abc import Iterator, Sequence
from operator import mod

from quorum.core.log_settings import LogSettings
from quorum.core.producers import AbortedTransaction
from quorum.core.storage import StorageError
from quorum.log.files.disk import Disk
from quorum.log.files.indexes import ENTRY_BYTES, Indexes
from quorum.log.files.timestamp_search import FoundTimestamp, first_record_since
from quorum.log.files.transaction_files import TransactionFiles
from wire.batch import (
    HEADER_BYTES,
    BatchHeader,
    CorruptBatch,
    headers,
    read_header,
)
from wire.primitives import INT32_MAX

__all__ = ["Segment", "batches_in", "segment_path"]

_CHUNK_BYTES = 1 << 20
_SEARCH_BYTES = 16 << 10  # a search begins at most an index interval before its goal
_APPENDED_KEPT = 64  # a high watermark is rarely further behind the end than that many appends
_READERS_KEPT = 16
_INDEXES = (".index", ".timeindex")


def segment_path(directory: str, base_offset: int, suffix: str = ".log") -> str:
    return f"{directory}/{base_offset:020d}{suffix}"


def batches_in(
    disk: Disk, path: str, *, position: int, end: int, chunk_bytes: int = _CHUNK_BYTES
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Position, header and bytes of every whole batch of a file between two positions.

    Ends without complaint where `wire.batch.headers` does: at a torn batch and at zeros. Raises
    `CorruptBatch` at bytes that cannot be a header.
    """
    length = chunk_bytes
    while position < end:
        chunk = disk.read(path, position=position, length=min(length, end - position))
        consumed = 0
        for at, header in headers(chunk):
            consumed = at + header.size_bytes
            yield position + at, header, memoryview(chunk)[at:consumed]
        if consumed:
            position += consumed
            length = chunk_bytes
            continue
        if len(chunk) < HEADER_BYTES or not any(chunk[:HEADER_BYTES]):
            return
        length = read_header(chunk).size_bytes
        if length <= len(chunk) or length > end - position:
            return


class Segment:
    __slots__ = (
        "_allocated_bytes",
        "_appended",
        "_cached",
        "_directory",
        "_disk",
        "_first_timestamp_ms",
        "_indexes",
        "_readers",
        "_settings",
        "_suffix",
        "_youngest_ms",
        "base_offset",
        "distrusts_index_files",
        "end_offset",
        "path",
        "size_bytes",
        "transactions",
    )

    def __init__(
        self,
        disk: Disk,
        directory: str,
        settings: LogSettings,
        *,
        base_offset: int,
        suffix: str = "",
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._settings = settings
        self._suffix = suffix
        self._allocated_bytes = 0  # length of the file: batches, then zeros
        self._first_timestamp_ms: int | None = None  # the largest of the first batch
        self._indexes: Indexes | None = None  # None: in the files, read when needed
        self._cached: Indexes | None = None  # what was read of them; see `drop_cache`
        self._appended: dict[int, int] = {}  # offset of a batch: its position
        self._readers: dict[int, int] = {}  # the same, of places where reads ended
        self._youngest_ms: int | None = None  # of a finished segment, once it was asked for
        self.base_offset = base_offset
        self.distrusts_index_files = False  # a process may have died before it synced them
        self.end_offset = base_offset
        self.path = segment_path(directory, base_offset, f".log{suffix}")
        self.size_bytes = 0
        self.transactions = TransactionFiles(disk, self._path_of)

    def _path_of(self, suffix: str) -> str:
        return segment_path(self._directory, self.base_offset, suffix + self._suffix)

    @property
    def _index_paths(self) -> tuple[str, ...]:
        return tuple(map(self._path_of, _INDEXES))

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path, *self._index_paths, *self.transactions.paths)

    def rename(self, suffix: str) -> None:
        """Give its files another further suffix, not durably: that of the batches last."""
        before, self._suffix = self.paths, suffix
        self.path = self._path_of(".log")
        for path, to in zip(reversed(before), reversed(self.paths), strict=True):
            self._disk.move(path, to)

    def unsynced_paths(self) -> tuple[str, ...]:
        """What must be synced after a write: the indexes, too, once they are in their files."""
        indexes = self._index_paths if self._indexes is None else ()
        return (self.path, *indexes, *self.transactions.take_unsynced())

    # --- making -----------------------------------------------------------------------------

    def create(self) -> None:
        self._disk.create(self.path)
        self._indexes = self._empty_indexes()

    def adopt(self, *, size_bytes: int, end_offset: int) -> None:
        """Trust a file of an earlier run, with its indexes."""
        self.size_bytes = self._allocated_bytes = size_bytes
        self.end_offset = end_offset

    def resume(self, *, size_bytes: int, end_offset: int) -> bool:
        """Trust it as `adopt` does, and let it grow again. False if its files cannot be trusted."""
        self.adopt(size_bytes=size_bytes, end_offset=end_offset)
        indexes = self._read_indexes()
        if indexes is None or not indexes.is_sound(end_offset=end_offset, size_bytes=size_bytes):
            return False
        if not self.has_sound_transactions():
            return False
        if size_bytes:
            start = self._disk.read(self.path, position=0, length=HEADER_BYTES)
            try:
                self._first_timestamp_ms = read_header(start).max_timestamp_ms
            except CorruptBatch:
                return False
        self._indexes = indexes
        return True

    def begin_scan(self, file_bytes: int) -> None:
        """Distrust: `observe` is told every whole batch that the file holds."""
        self._indexes = self._empty_indexes()
        self._first_timestamp_ms = None
        self._allocated_bytes = file_bytes
        self.size_bytes = 0
        self.end_offset = self.base_offset

    def observe(self, position: int, header: BatchHeader) -> None:
        assert self._indexes is not None, self.path
        assert position == self.size_bytes, (position, self.size_bytes)
        if self._first_timestamp_ms is None:
            self._first_timestamp_ms = header.max_timestamp_ms
        self._indexes.add(position, header)
        self.size_bytes = position + header.size_bytes
        self.end_offset = header.next_offset

    def end_scan(self) -> None:
        """Cut off what lies behind the last batch observed."""
        self._disk.truncate(self.path, self.size_bytes)
        self._allocated_bytes = self.size_bytes

    def configure(self, settings: LogSettings) -> None:
        self._settings = settings
        if self._indexes is not None:
            self._indexes.interval_bytes = settings.index_interval_bytes

    def has_sound_indexes(self) -> bool:
        found = self._read_indexes()
        if found is None or not self.has_sound_transactions():
            return False
        return found.is_sound(end_offset=self.end_offset, size_bytes=self.size_bytes)

    def has_index_files(self) -> bool:
        """Looks at their sizes alone, but for what no reader would find out."""
        try:
            sizes = map(self._disk.size, self._index_paths)
            are_whole = not any(map(mod, sizes, ENTRY_BYTES))
        except StorageError:
            return False
        return are_whole and self.has_sound_transactions()

    def has_sound_transactions(self) -> bool:
        return self.transactions.are_sound(self.base_offset, self.end_offset)

    def _empty_indexes(self) -> Indexes:
        return Indexes(self.base_offset, interval_bytes=self._settings.index_interval_bytes)

    # --- writing ----------------------------------------------------------------------------

    def has_room(self, first: BatchHeader, last: BatchHeader, size_bytes: int) -> bool:
        """May so many bytes, whose batches are `first` to `last`, be appended to this segment?

        The active segment is full when it or its index would become too large, or when it would
        span too long a time. An empty one takes anything that its index can name.
        """
        last_offset = last.base_offset + last.last_offset_delta
        if self.size_bytes == 0 or last_offset - self.base_offset > INT32_MAX:
            return last_offset - self.base_offset <= INT32_MAX  # an index entry has 4 bytes
        settings, indexes = self._settings, self._indexes or self._indexes_now()
        began_ms = self._first_timestamp_ms
        return (
            self.size_bytes + size_bytes <= settings.segment_bytes
            and (began_ms is None or first.max_timestamp_ms - began_ms <= settings.segment_ms)
            and max(len(indexes.offsets), len(indexes.times)) < settings.index_bytes_max
        )

    def append(
        self,
        records: bytes,
        found: Sequence[tuple[int, BatchHeader]],
        aborted: Sequence[AbortedTransaction] = (),
    ) -> None:
        """`found` holds position and header of every batch in `records`; `aborted` what markers
        among them have ended."""
        start = self.size_bytes
        if self._settings.preallocate_bytes and start + len(records) > self._allocated_bytes:
            self._preallocate(start + len(records))
        self._disk.write(self.path, records, position=start)
        for position, header in found:
            self.observe(start + position, header)
        if aborted:
            self.transactions.append(aborted)
        _remember(self._appended, found[0][1].base_offset, start, _APPENDED_KEPT)

    def cut(self, end_offset: int) -> None:
        """Remove every batch that reaches `end_offset` or lies behind it."""
        indexes = self._indexes_now()
        self._cached = None  # it becomes the segment's own, and grows
        indexes.truncate(end_offset)
        entry = indexes.entry_before(end_offset)
        position, self.end_offset = 0 if entry is None else entry[1], self.base_offset
        for at, header, _ in self._batches_from(position):
            if header.last_offset >= end_offset:
                break
            indexes.add(at, header)
            position, self.end_offset = at + header.size_bytes, header.next_offset
        self._disk.truncate(self.path, position)
        self.transactions.truncate(end_offset)
        self.size_bytes = self._allocated_bytes = position
        self._indexes = indexes
        self._youngest_ms = None
        self._forget_places()
        if position == 0:
            self._first_timestamp_ms = None

    def finish(self) -> bool:
        """No append follows: trim the file, and write the indexes. False if all is as it should be.

        So it is where nothing was appended since an earlier process has finished the segment.
        """
        has_changed = self._allocated_bytes > self.size_bytes
        if has_changed:
            self._disk.truncate(self.path, self.size_bytes)
            self._allocated_bytes = self.size_bytes
        self._forget_places()
        indexes, self._indexes = self._indexes, None
        if indexes is None:
            return has_changed
        indexes.finish()
        contents = bytes(indexes.offsets), bytes(indexes.times)
        for path, content in zip(self._index_paths, contents, strict=True):
            if self.distrusts_index_files or self._disk.read_whole(path) != content:
                has_changed = True
                self._disk.create(path)
                self._disk.write(path, content, position=0)
                self._disk.forget(path)
        self.distrusts_index_files = False
        return has_changed

    def remove(self) -> None:
        for path in self.paths:
            self._disk.remove(path)

    def _preallocate(self, needed: int) -> None:
        settings, start = self._settings, self.size_bytes
        # Not beyond what the segment may grow to, but for a batch that is larger by itself.
        size = max(needed, min(needed + settings.preallocate_bytes, settings.segment_bytes))
        if self._disk.preallocate(self.path, position=start, length=size - start):
            self._allocated_bytes = size
        else:
            self._allocated_bytes = max(needed, settings.segment_bytes)  # do not ask again

    # --- reading ----------------------------------------------------------------------------

    def position_of(self, offset: int) -> int:
        """Where the batch begins that holds `offset`, or the first after it; the end if none."""
        if offset <= self.base_offset:
            return 0
        known = self._known_position(offset)
        if known is not None:
            return known
        start = self._indexed_position(offset)
        for position, header, _ in self._batches_from(start, chunk_bytes=_SEARCH_BYTES):
            if header.last_offset >= offset:
                return position
        return self.size_bytes

    def read(self, position: int, *, end_offset: int, bytes_max: int) -> bytes:
        """Whole batches from `position`, all below `end_offset`; one, even if it is too large."""
        stop = self.size_bytes if end_offset >= self.end_offset else None
        if stop is None:
            stop = self._known_position(end_offset)
        if stop is not None and stop - position <= bytes_max:
            _remember(self._readers, min(end_offset, self.end_offset), stop, _READERS_KEPT)
            return self._disk.read(self.path, position=position, length=max(stop - position, 0))
        length = min(self.size_bytes - position, max(bytes_max, HEADER_BYTES))
        chunk = self._disk.read(self.path, position=position, length=length)
        try:
            if len(chunk) >= HEADER_BYTES:
                size = read_header(chunk).size_bytes
                if size > len(chunk):
                    chunk = self._disk.read(self.path, position=position, length=size)
            size, next_offset = self._whole_below(chunk, position, end_offset)
        except CorruptBatch as error:
            raise self._corrupt(error) from error
        if size:
            _remember(self._readers, next_offset, position + size, _READERS_KEPT)
        return chunk[:size]

    def _whole_below(self, chunk: bytes, position: int, end_offset: int) -> tuple[int, int]:
        """Size of the whole batches of `chunk` below `end_offset`, and the offset after them.

        The index says where to begin to count: a chunk may hold thousands of batches.
        """
        size, next_offset = 0, -1
        entry = self._indexes_now().entry_before(end_offset, position_max=position + len(chunk))
        if entry is not None and entry[1] > position:
            indexed = self._batch_at(entry)
            if indexed is not None:
                size, next_offset = entry[1] - position, indexed.base_offset
        start = size
        for at, header in headers(memoryview(chunk)[start:]):
            if header.last_offset >= end_offset:
                break
            size, next_offset = start + at + header.size_bytes, header.next_offset
        return size, next_offset

    def drop_cache(self) -> None:
        """Forget the indexes of a segment that is not active, until they are needed again."""
        self._cached = None

    def max_timestamp_ms(self) -> int:
        return self._indexes_now().max_timestamp_ms

    def youngest_ms(self) -> int:
        """The largest timestamp in it; where the records have none, that of the file."""
        if self._indexes is not None:
            found = self.max_timestamp_ms()
        elif self._youngest_ms is None:
            found = self._youngest_ms = self.max_timestamp_ms()
            self.drop_cache()
        else:
            found = self._youngest_ms
        return found if found >= 0 else self._disk.modified_ms(self.path)

    def first_ms(self) -> int:
        """The largest timestamp in its first batch; -1 if there is none."""
        if self._first_timestamp_ms is None and self.size_bytes:
            start = self._disk.read(self.path, position=0, length=HEADER_BYTES)
            try:
                self._first_timestamp_ms = read_header(start).max_timestamp_ms
            except CorruptBatch as error:
                raise self._corrupt(error) from error
        return -1 if self._first_timestamp_ms is None else self._first_timestamp_ms

    def index_bytes(self) -> int:
        """The size of the larger one of its index files."""
        return max(map(self._disk.size, self._index_paths))

    def last_batches(self) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        """Position, header and bytes of those from the last on that the index names.

        Raises `StorageError` at bytes that are no batch.
        """
        entry = self._indexes_now().entry_before(self.end_offset)
        return self._batches_from(0 if entry is None else entry[1])

    def find_timestamp(
        self, timestamp_ms: int, *, start_offset: int, end_offset: int
    ) -> FoundTimestamp | None:
        """The first record of whole batches between two offsets that is at least as young."""
        first = max(start_offset, self._indexes_now().offset_before_timestamp(timestamp_ms))
        for _, header, batch in self._batches_from(self.position_of(first)):
            if header.last_offset >= end_offset:
                break
            if header.max_timestamp_ms >= timestamp_ms:
                found = first_record_since(header, batch, timestamp_ms, start_offset)
                if found is not None:
                    return found
        return None

    def _batches_from(
        self, position: int, *, chunk_bytes: int = _CHUNK_BYTES
    ) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        try:
            yield from batches_in(
                self._disk,
                self.path,
                position=position,
                end=self.size_bytes,
                chunk_bytes=chunk_bytes,
            )
        except CorruptBatch as error:
            raise self._corrupt(error) from error

    def _indexed_position(self, offset: int) -> int:
        entry = self._indexes_now().entry_before(offset)
        return entry[1] if entry is not None and self._batch_at(entry) is not None else 0

    def _batch_at(self, entry: tuple[int, int]) -> BatchHeader | None:
        """None if the entry is wrong, which costs time, never records."""
        last_offset, position = entry
        start = self._disk.read(self.path, position=position, length=HEADER_BYTES)
        try:
            header = read_header(start)
        except CorruptBatch:
            return None
        return header if header.last_offset == last_offset else None

    def _known_position(self, offset: int) -> int | None:
        known = self._appended.get(offset)
        return self._readers.get(offset) if known is None else known

    def _forget_places(self) -> None:
        self._appended.clear()
        self._readers.clear()

    def _indexes_now(self) -> Indexes:
        if self._indexes is not None:
            return self._indexes
        if self._cached is None:
            self._cached = self._read_indexes() or self._empty_indexes()
        return self._cached

    def _read_indexes(self) -> Indexes | None:
        offsets, times = map(self._disk.read_whole, self._index_paths)
        if offsets is None or times is None:
            return None
        return Indexes(
            self.base_offset,
            interval_bytes=self._settings.index_interval_bytes,
            offsets=offsets,
            times=times,
        )

    def _corrupt(self, error: CorruptBatch) -> StorageError:
        return StorageError(
            f"{self.path} is corrupt: {error}; stop the node, remove {self._directory},"
            " and let it be replicated again from another node"
        )


def _remember(places: dict[int, int], offset: int, position: int, kept: int) -> None:
    """A reader that goes on from here, or up to here, need not search."""
    if len(places) >= kept:
        del places[next(iter(places))]
    places[offset] = position
