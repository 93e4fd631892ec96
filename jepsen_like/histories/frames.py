"""The frames of a history's file: see `jepsen_like.histories.history`.

Pure: bytes in, bytes out.
"""

from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any, BinaryIO
from zlib import crc32

import msgpack
import msgspec

__all__ = ["MARKED", "Frames", "framed"]

MARKED = 0xCF  # the byte with which a mark begins
_BLOCK_BYTES = 1 << 20
_FRAMES_AT_ONCE = 1 << 14
_MARK = Struct(">BII")  # MARKED, the sum, the length
_MARK_BYTES = _MARK.size


def framed(content: bytes) -> bytes:
    return _MARK.pack(MARKED, crc32(content), len(content)) + content


class Frames:
    """The contents of whole frames, with a block or a frame at once in memory.

    Damage raises `damaged`, with the byte where the frame begins.
    """

    def __init__(self, source: BinaryIO, damaged: Callable[[str], Exception]) -> None:
        self._read: Callable[[int], bytes] = source.read
        self._damaged = damaged
        self._buffer = b""
        self._at = 0  # in the buffer
        self._begin = 0  # of the buffer, in the file
        self.is_cut = False  # known at the end

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not self._has(1):
            raise StopIteration
        if not self._has(_MARK_BYTES):
            return self._torn_or_damaged(self._buffer[self._at] == MARKED)
        begin = self._at + _MARK_BYTES
        mark, crc, length = _MARK.unpack_from(self._buffer, self._at)
        if mark != MARKED:
            raise self._damage()
        if begin + length > len(self._buffer):
            if _is_value(self._buffer[begin:]):
                raise self._damage()
            if not self._has(_MARK_BYTES + length):
                return self._torn_or_damaged(not _is_value(self._buffer[self._at + _MARK_BYTES :]))
            begin = self._at + _MARK_BYTES
        content = self._buffer[begin : begin + length]
        if crc32(content) != crc:
            raise self._damage()
        self._at = begin + length
        try:
            return msgspec.msgpack.decode(content)
        except (ValueError, TypeError, RecursionError, msgspec.MsgspecError) as error:
            where = self._begin + self._at - length
            raise self._damaged(f"byte {where}: not msgpack: {error}") from error

    def block(self) -> tuple[int, bytes]:
        """How many whole frames are in the buffer, and these as they were written, at once.

        None at all: `next` reads on, or tells what is wrong.
        """
        buffer, at, count = memoryview(self._buffer), self._at, 0
        while count < _FRAMES_AT_ONCE and at + _MARK_BYTES <= len(buffer):
            mark, crc, length = _MARK.unpack_from(buffer, at)
            begin = at + _MARK_BYTES
            end = begin + length
            if mark != MARKED or end > len(buffer) or crc32(buffer[begin:end]) != crc:
                break
            at = end
            count += 1
        block = self._buffer[self._at : at]
        self._at = at
        return count, block

    def _has(self, count: int) -> bool:
        """Whether there are so many bytes from here on; they are in the buffer then."""
        while len(self._buffer) - self._at < count:
            more = self._read(max(_BLOCK_BYTES, count))
            if not more:
                return False
            self._begin += self._at
            self._buffer = self._buffer[self._at :] + more
            self._at = 0
        return True

    def _torn_or_damaged(self, is_torn: bool) -> Any:
        if not is_torn:
            raise self._damage()
        self.is_cut = True
        raise StopIteration

    def _damage(self) -> Exception:
        where = self._begin + self._at
        return self._damaged(f"byte {where}: damaged: what stands there is not what was written")


def _is_value(content: bytes) -> bool:
    """Whether it begins with a whole msgpack value."""
    unpacker = msgpack.Unpacker(max_buffer_size=max(1, len(content)), strict_map_key=False)
    unpacker.feed(content)
    try:
        unpacker.skip()
    except msgpack.OutOfData:
        return False
    except (ValueError, RecursionError, msgpack.UnpackException):
        return True  # more than torn
    return True
