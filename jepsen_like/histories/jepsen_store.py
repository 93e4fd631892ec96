"""Histories in the binary store of Jepsen, `test.jepsen`, a part of them at once.

All numbers are big-endian. A file begins with

    magic       6 bytes   "JEPSEN"
    version     int32     0 or 1
    index       int64     at which byte the newest index lies

and goes on with blocks:

    length      int64     of the block, with these 28 bytes
    checksum    uint32    CRC-32 of the content, then of these 28 bytes with a checksum of zero
    type        int16
                14 bytes  zero
    content

    1 index     int32: the number of the block of the test; then, of each block, int32: its
                number, and int64: at which byte it lies
    2 value     one value in Fressian
    3 map       int32: the number of the block with the rest of it, or 0; a map in Fressian
    4 stream    values in Fressian, to the end
    5 vector    int64: how many values; then of each part int64: the number of its first value, and
                int32: the block that has them: a value (a list), a stream, or a vector

The test is a map in which "history" refers to a block. Version 0 has all operations in one value;
version 1 adds a stream for each 16,384, so that a run that breaks off has its first parts.

Hence a block is in memory as bytes, and its operations one portion after the other. Nothing is
believed: no more is read, all in all, than the file has. Source: jepsen.store.format.
"""

import struct
from collections.abc import Iterator
from itertools import islice
from typing import Any, BinaryIO, NamedTuple
from zlib import crc32

from jepsen_like.histories.fressian import Fressian, Tags
from jepsen_like.histories.fressian_tags import TAGS, as_set
from jepsen_like.histories.history import Lines, MalformedHistory
from jepsen_like.histories.mappings import lines_of

__all__ = ["read_jepsen"]

_PORTION = 4096  # operations
_FROM_END = 2
_MAGIC = b"JEPSEN"
_FILE = struct.Struct(">6siq")
_BLOCK = struct.Struct(">qIh14x")
_PLACE = struct.Struct(">iq")
_PART = struct.Struct(">qi")
_NUMBER, _COUNT = struct.Struct(">i"), struct.Struct(">q")
_INDEX, _VALUE, _MAP, _STREAM, _VECTOR = range(1, 6)
_VERSIONS = (0, 1)
_END = 0  # no block has this number
_NIL = b"\xf7"


class _Block(NamedTuple):
    name: str
    kind: int
    content: bytes
    begins: int  # the content, in the file

    def values(self, skipped: int = 0) -> Fressian:
        content, begins = self.content[skipped:], self.begins + skipped
        return Fressian(content, _TAGS, self.name, begins)

    def error(self, what: str) -> MalformedHistory:
        return MalformedHistory(f"{self.name}, of type {self.kind}: {what}")


def read_jepsen(source: BinaryIO) -> tuple[None, Iterator[Lines]]:
    """Raises `MalformedHistory`, also while the lines are read: it names the block and the byte."""
    file = _File(source)
    return None, _lines(file, _history_in(file))


class _File:
    """Its blocks, by their numbers."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._size = source.seek(0, _FROM_END)
        self._left = self._size
        source.seek(0)
        begin = source.read(_FILE.size)
        if not begin.startswith(_MAGIC) or len(begin) < _FILE.size:
            raise MalformedHistory(f"not a file of Jepsen's store: it begins with {begin[:6]!r}")
        _, version, index = _FILE.unpack(begin)
        if version not in _VERSIONS:
            raise MalformedHistory(f"byte 6: version {version} of Jepsen's store is not known")
        if index == 0:
            raise MalformedHistory("byte 10: it has no index: the run ended before it began")
        self._places = {}
        block = self._at(index, "the index")
        if block.kind != _INDEX or len(block.content) % _PLACE.size != _NUMBER.size:
            raise block.error("not an index")
        self.root = _NUMBER.unpack_from(block.content)[0]
        self._places = dict(_PLACE.iter_unpack(block.content[_NUMBER.size :]))

    def block(self, number: int) -> _Block:
        place = self._places.get(number)
        if place is None:
            raise MalformedHistory(f"block {number} is not in the index")
        return self._at(place, f"block {number}")

    def _at(self, place: int, name: str) -> _Block:
        name = f"{name}, at byte {place}"
        if not _FILE.size <= place <= self._size - _BLOCK.size:
            raise MalformedHistory(f"{name}: the file has {self._size} bytes")
        self._source.seek(place)
        length, checksum, kind = _BLOCK.unpack(self._source.read(_BLOCK.size))
        if not _BLOCK.size <= length <= self._size - place:
            raise MalformedHistory(f"{name}: {length} bytes long, in a file of {self._size}")
        self._left -= length
        if self._left < 0:
            raise MalformedHistory(f"{name}: it was read before, or lies within another")
        content = self._source.read(length - _BLOCK.size)
        if crc32(_BLOCK.pack(length, 0, kind), crc32(content)) != checksum:
            raise MalformedHistory(f"{name}: damaged: its checksum is not {checksum:#010x}")
        return _Block(name, kind, content, place + _BLOCK.size)


def _history_in(file: _File) -> int:
    """The number of its block, by the map of the test."""
    number = file.root
    while number:
        block = file.block(number)
        if block.kind == _VALUE:
            number, test = 0, block.values().value()
        elif block.kind == _MAP and len(block.content) >= _NUMBER.size:
            number = _NUMBER.unpack_from(block.content)[0]
            test = block.values(_NUMBER.size).value()
        else:
            raise block.error("not the map of a test")
        match test:
            case {"history": ("block-ref", [int(history)])}:
                return history
    raise MalformedHistory("it has no test with a history")


def _lines(file: _File, history: int) -> Iterator[Lines]:
    """A vector says where each of its parts begins, and where it ends: it is held to that."""
    done = 0
    waiting = [(history, 0)]  # blocks, or 0 for the end of a vector; and the operations before it
    while waiting:
        number, before = waiting.pop()
        if done != before:
            raise MalformedHistory(f"{before} operations are said to come first: {done} came")
        if number == _END:
            continue
        block = file.block(number)
        if block.kind == _VECTOR:
            waiting += _parts(block, done)
            continue
        operations = _operations(block)
        while portion := list(islice(operations, _PORTION)):
            yield lines_of(portion, done)
            done += len(portion)


def _parts(block: _Block, before: int) -> list[tuple[int, int]]:
    """The last first."""
    if len(block.content) % _PART.size != _COUNT.size:
        raise block.error("not a vector of blocks")
    end = before + _COUNT.unpack_from(block.content)[0]
    parts = _PART.iter_unpack(block.content[_COUNT.size :])
    told = [(number, before + first) for first, number in parts]
    return [(_END, end), *reversed(told)]


def _operations(block: _Block) -> Iterator[Any]:
    if block.kind == _STREAM:
        return block.values().values()
    if block.kind != _VALUE:
        raise block.error("not a part of a history")
    if block.content == _NIL:
        raise block.error("the run broke off before a part of its history was kept")
    return block.values().items()


def _as_op(
    index: int, time: int, kind: str, process: Any, f: str, value: Any, more: dict[Any, Any] | None
) -> dict[Any, Any]:
    """An index or a time of -1 is none."""
    op = {**(more or {}), "type": kind, "process": process, "f": f, "value": value}
    if index != -1:
        op["index"] = index
    if time != -1:
        op["time"] = time
    return op


_TAGS: Tags = {
    **TAGS,
    "atom": (1, lambda value: value),
    "byte": (1, int),
    "date-time": (1, str),
    "instant": (1, str),
    "jepsen.history.Op": (7, _as_op),
    "map-entry": (2, lambda key, value: [key, value]),
    "multiset": (1, lambda counts: counts),
    "persistent-hash-set": (1, as_set),
    "persistent-sorted-set": (1, as_set),
    "throwable": (1, lambda told: told),
    "vec": (1, lambda values: values),
}
