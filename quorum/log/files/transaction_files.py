"""A segment tells of transactions in two files, which exist if there is anything to tell.

    <base offset>.txnindex   the aborted transactions whose markers are in the segment
    <base offset>.open       the producers with a transaction that is open where the segment begins

An entry of the index has 34 bytes: int16 version 0, int64 producer's id, first offset, last offset
(of the marker), last stable offset. Entries are in the order of their markers. The index is no
hint: consumers take every transaction that it does not name for committed. So it is written with
the markers, and recovery writes it anew for the batches that it reads.

A transaction may have begun in any earlier segment. `.open` says so to a recovery that begins with
this one, and to an index that is written anew. Kafka keeps all producers at each segment's start,
in a `.snapshot`, and ours is of that form; it has another name, since a Kafka that is given our
files must not take it for all producers.

Source: Kafka's TransactionIndex and AbortedTxn; UnifiedLog.collectAbortedTransactions.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from struct import Struct

from quorum.core.producers import AbortedTransaction, ProducerEntry
from quorum.core.storage import StorageError
from quorum.log.files.disk import Disk
from quorum.log.files.producer_snapshot import format_producers, parse_producers
from wire.varint import Malformed

__all__ = ["TransactionFiles", "aborted_in"]

_INDEX, _OPEN = ".txnindex", ".open"
_ENTRY = Struct(">hqqqq")
_VERSION = 0
_ENTRIES_READ = 256  # at once


class TransactionFiles:
    """Belongs to its segment. `path_of` says what a file is called, given its suffix."""

    __slots__ = ("_changed", "_disk", "_path_of", "_present", "_size_bytes")

    def __init__(self, disk: Disk, path_of: Callable[[str], str]) -> None:
        self._disk = disk
        self._path_of = path_of
        self._present: tuple[str, ...] = ()  # the suffixes of the files that are there
        self._changed: tuple[str, ...] = ()  # since they were last synced
        self._size_bytes = 0  # of the index

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the files that exist."""
        return tuple(map(self._path_of, self._present))

    def find(self, names: AbstractSet[str]) -> None:
        """Take the files of an earlier run into account, if they are among these of a directory."""
        paths = {suffix: self._path_of(suffix) for suffix in (_INDEX, _OPEN)}
        self._present = tuple(s for s, path in paths.items() if path.rpartition("/")[2] in names)
        if _INDEX in self._present:
            self._size_bytes = self._disk.size(paths[_INDEX])

    def take_unsynced(self) -> tuple[str, ...]:
        """The paths of what has changed since the last call."""
        changed, self._changed = self._changed, ()
        return tuple(self._path_of(suffix) for suffix in changed if suffix in self._present)

    def write_again(self) -> None:
        """Write the files once more as they are: a process may have died before it synced them."""
        for suffix in self._present:
            path = self._path_of(suffix)
            self._disk.put(path, self._disk.read_whole(path) or b"")
            self._note_change(suffix)

    # --- aborted transactions ---------------------------------------------------------------

    def append(self, aborted: Iterable[AbortedTransaction]) -> None:
        content = _packed(aborted)
        if content:
            path = self._path_of(_INDEX)
            if not self._size_bytes:
                self._disk.create(path)
                self._note(_INDEX, is_there=True)
            self._note_change(_INDEX)
            self._disk.write(path, content, position=self._size_bytes)
            self._size_bytes += len(content)

    def truncate(self, end_offset: int) -> None:
        """Forget the transactions whose markers go."""
        size_bytes = self._first_ended_since(end_offset) * _ENTRY.size
        if size_bytes < self._size_bytes:
            self._disk.truncate(self._path_of(_INDEX), size_bytes)
            self._size_bytes = size_bytes
            self._note_change(_INDEX)

    def replace(self, aborted: Iterable[AbortedTransaction]) -> bool:
        """Let the index name just these. Returns whether that changes it."""
        return self._put(_INDEX, _packed(aborted))

    def overlapping(
        self, start_offset: int, end_offset: int
    ) -> tuple[list[AbortedTransaction], bool]:
        """The transactions with records between two offsets, whose markers are in this segment.

        Also returns whether no later segment has markers of others: every transaction that began
        below the last stable offset of an entry had ended by then.
        """
        found: list[AbortedTransaction] = []
        for each in self._entries(self._first_ended_since(start_offset)):
            if each.first_offset < end_offset:
                found.append(each)
            if each.last_stable_offset >= end_offset:
                return found, True
        return found, False

    # --- transactions that are open at the start --------------------------------------------

    def open_at_start(self) -> dict[int, ProducerEntry] | None:
        """The producers by id. None if the file is damaged."""
        if _OPEN not in self._present:
            return {}
        content = self._disk.read_whole(self._path_of(_OPEN))
        return {} if content is None else parse_producers(content)

    def put_open(self, producers: Mapping[int, ProducerEntry]) -> bool:
        """Let the file name just these. Returns whether that changes it."""
        return self._put(_OPEN, format_producers(producers.values()) if producers else b"")

    # --- soundness --------------------------------------------------------------------------

    def are_sound(self, base_offset: int, end_offset: int) -> bool:
        """Could these be the files of a segment between these offsets?"""
        if self._size_bytes % _ENTRY.size or self.open_at_start() is None:
            return False
        last_offset = base_offset - 1
        try:
            for each in self._entries(0):
                if not (last_offset < each.last_offset < end_offset):
                    return False
                is_ordered = 0 <= each.first_offset < each.last_offset
                if not is_ordered or each.last_stable_offset > each.last_offset + 1:
                    return False
                last_offset = each.last_offset
        except StorageError:
            return False
        return True

    # --- files ------------------------------------------------------------------------------

    def _note(self, suffix: str, *, is_there: bool) -> None:
        others = [each for each in self._present if each != suffix]
        self._present = (*others, suffix) if is_there else tuple(others)

    def _note_change(self, suffix: str) -> None:
        if suffix not in self._changed:
            self._changed = (*self._changed, suffix)

    def _put(self, suffix: str, content: bytes) -> bool:
        path = self._path_of(suffix)
        is_there = suffix in self._present
        before = (self._disk.read_whole(path) or b"") if is_there else b""
        if suffix == _INDEX:
            self._size_bytes = len(content)
        if before == content:
            return False
        if content:
            self._disk.put(path, content)
        else:
            self._disk.remove(path)
        self._note(suffix, is_there=bool(content))
        self._note_change(suffix)
        return True

    def _first_ended_since(self, offset: int) -> int:
        """The number of the first entry whose marker is at or behind `offset`."""
        count = self._size_bytes // _ENTRY.size
        return bisect_left(
            range(count), offset, key=lambda at: next(self._entries(at, 1)).last_offset
        )

    def _entries(self, first: int, at_once: int = _ENTRIES_READ) -> Iterator[AbortedTransaction]:
        path, position = self._path_of(_INDEX), first * _ENTRY.size
        while position < self._size_bytes:
            length = min(at_once * _ENTRY.size, self._size_bytes - position)
            content = self._disk.read(path, position=position, length=length)
            if len(content) < length:
                raise StorageError(f"{path} ends at byte {position + len(content)}")
            position += length
            try:
                yield from aborted_in(content)
            except Malformed as error:
                raise StorageError(f"{path}: {error}") from error


def aborted_in(content: bytes) -> Iterator[AbortedTransaction]:
    """The entries of an index. Raises `Malformed` where one cannot be read."""
    torn = len(content) % _ENTRY.size
    for version, *entry in _ENTRY.iter_unpack(content[: len(content) - torn]):
        if version != _VERSION:
            raise Malformed(f"an entry of version {version}")
        yield AbortedTransaction(*entry)
    if torn:
        raise Malformed(f"it ends within an entry, of which {torn} bytes are there")


def _packed(aborted: Iterable[AbortedTransaction]) -> bytes:
    return b"".join(_ENTRY.pack(_VERSION, *each) for each in aborted)
