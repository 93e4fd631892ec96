"""The record batches of a file, and what is damaged between them.

Reads forwards in pieces, so that a file of any size takes the same memory. Zeros behind the last
batch are preallocated; half a batch at the end is what a running node is just writing, or what a
crash left. After any other damage it goes on with the next batch whose checksum holds.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from os import SEEK_END
from pathlib import Path
from typing import BinaryIO

from wire.batch import HEADER_BYTES, BatchHeader, CorruptBatch, is_intact, read_header

__all__ = ["Batch", "Complaints", "Damage", "batches_in", "last_batch", "read_batches"]

_PIECE_BYTES = 4 << 20
_SEARCH_BYTES_MAX = 64 << 20  # how far before the end the last batch is looked for
_MAGIC_AT = 16
# From the magic to the producer: 0 where no number is that large, or all ones for -1.
_LIKELY = re.compile(
    rb"\x02.{4}\x00.\x00.{3}(?:\x00{2}|\xff{2}).{6}(?:\x00{2}|\xff{2}).{6}(?:\x00|\xff{14})",
    re.DOTALL,
)
_TOLD_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One batch, whose checksum holds."""

    path: Path
    position: int  # of its first byte in the file
    header: BatchHeader
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Bytes that are no batch. `offset` is the one that should have come next, -1 if not known."""

    path: Path
    position: int
    offset: int
    problem: str
    rule: str = "L-CRC"  # which one of `quorumlab.inspection.verifying` is broken
    is_tail: bool = False  # nothing follows: a torn write, which recovery cuts off

    def __str__(self) -> str:
        place = f"{self.path} at byte {self.position}"
        if self.offset >= 0:
            place += f", where offset {self.offset} should follow"
        return f"{place}: {self.problem}"


class _Window:
    """A part of a file, which moves with what is asked for."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._start = 0  # in the file, of the first byte of the buffer
        self._buffer = b""

    def at(self, position: int, length: int) -> bytes:
        """Returns up to `length` bytes from `position` on; fewer at the end."""
        begin = position - self._start
        if begin < 0 or begin + length > len(self._buffer):
            self._file.seek(position)
            self._buffer = self._file.read(max(length, _PIECE_BYTES))
            self._start, begin = position, 0
        return self._buffer[begin : begin + length]

    def forget(self) -> None:
        """Makes the next call read from the file again."""
        self._buffer = b""


def read_batches(path: Path, position: int = 0) -> Iterator[Batch | Damage]:
    """Yields in the order of the file, from the batch at `position` on. Raises OSError."""
    with path.open("rb") as file:
        yield from _batches_from(_Window(file), path, position)


def last_batch(path: Path) -> Batch | None:
    """Finds it without reading what is before; None if there is none near the end."""
    with path.open("rb") as file:
        start = end = _end_of_data(file)
        while start > 0 and end - start < _SEARCH_BYTES_MAX:
            start = max(0, start - _PIECE_BYTES)
            window = _Window(file)
            first = 0 if start == 0 else _next_intact(window, path, start)
            last = None if first is None else _last_before(end, window, path, first)
            if last is not None:
                return last
    return None


def _end_of_data(file: BinaryIO) -> int:
    """Finds where preallocated zeros begin, or a little before, by halving whole pieces."""
    pieces = range(0, file.seek(0, SEEK_END), _PIECE_BYTES)

    def is_blank(start: int) -> bool:
        file.seek(start)
        piece = file.read(_PIECE_BYTES)
        return piece.count(0) == len(piece)

    blank = bisect_left(pieces, True, key=is_blank)
    if blank == 0:
        return 0
    file.seek(pieces[blank - 1])
    return pieces[blank - 1] + len(file.read(_PIECE_BYTES).rstrip(b"\0"))


def _last_before(end: int, window: _Window, path: Path, position: int) -> Batch | None:
    last = None
    for found in _batches_from(window, path, position):
        if isinstance(found, Batch):
            last = found
            if found.position + found.header.size_bytes >= end:
                break  # zeros follow
    return last


def batches_in(file: BinaryIO, path: Path) -> Iterator[Batch | Damage]:
    """`path` is what the file is called."""
    return _batches_from(_Window(file), path, 0)


def _batches_from(window: _Window, path: Path, position: int) -> Iterator[Batch | Damage]:
    next_offset = -1
    while window.at(position, 1):
        found = _batch_at(window, path, position)
        if isinstance(found, str):
            window.forget()  # a running node may have written it while we looked
            found = _batch_at(window, path, position)
        if found is None:
            return
        if isinstance(found, Batch):
            yield found
            position += found.header.size_bytes
            next_offset = found.header.next_offset
            continue
        following = _next_intact(window, path, position + 1)
        yield Damage(
            path=path,
            position=position,
            offset=next_offset,
            problem=f"{found}; {_what_follows(window, position, following)}",
            is_tail=following is None,
        )
        if following is None:
            return
        position = following


def _batch_at(window: _Window, path: Path, position: int) -> Batch | str | None:
    """The batch there, or what is wrong with it; None if only zeros follow."""
    head = window.at(position, HEADER_BYTES)
    if not any(head) and _is_blank(window, position):
        return None
    if len(head) < HEADER_BYTES:
        return f"{len(head)} bytes are no batch: the smallest has {HEADER_BYTES}"
    try:
        header = read_header(head)
    except CorruptBatch as error:
        return str(error)
    content = window.at(position, header.size_bytes)
    if len(content) < header.size_bytes:
        return f"a batch of {header.size_bytes} bytes, of which {len(content)} are there"
    if not is_intact(content, 0, header):
        return f"the checksum of the batch of offset {header.base_offset} is wrong"
    return Batch(path=path, position=position, header=header, content=content)


def _is_blank(window: _Window, position: int) -> bool:
    while piece := window.at(position, _PIECE_BYTES):
        if piece.count(0) != len(piece):
            return False
        position += len(piece)
    return True


def _next_intact(window: _Window, path: Path, position: int) -> int | None:
    """Finds where the next intact batch begins. Few other bytes look like one."""
    while len(piece := window.at(position, _PIECE_BYTES)) >= HEADER_BYTES:
        likely = _LIKELY.search(piece, _MAGIC_AT)
        while likely is not None:
            start = position + likely.start() - _MAGIC_AT
            if isinstance(_batch_at(window, path, start), Batch):
                return start
            likely = _LIKELY.search(piece, likely.start() + 1)
        position += len(piece) - HEADER_BYTES + 1
    return None


def _what_follows(window: _Window, position: int, following: int | None) -> str:
    if following is None:
        return "no intact batch follows"
    header = read_header(window.at(following, HEADER_BYTES))
    return f"{following - position} bytes skipped, up to offset {header.base_offset}"


@dataclass(slots=True)
class Complaints:
    """The first of many complaints, and how many there were."""

    told: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, problem: object) -> None:
        self.count += 1
        if len(self.told) < _TOLD_MAX:
            self.told.append(str(problem))

    def __bool__(self) -> bool:
        return self.count > 0

    def __iter__(self) -> Iterator[str]:
        """Yields the complaints that are told, and how many more there are."""
        yield from self.told
        if self.count > len(self.told):
            yield f"and {self.count - len(self.told)} more"
