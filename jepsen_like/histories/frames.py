"""Frames of a file that is appended to: each knows whether it is whole, and as it was written.

    mark      nine bytes, one msgpack value (uint64): CRC-32 of the content, then its length
    content   one msgpack value

What is torn at the end was never written as a whole, and is left out. Anything else that is not as
it was written is damage, and raises: a flipped bit of a recorded answer would accuse a system that
was right. A damaged length passes for a torn end, but for the content behind it, which is complete:
no true prefix of a msgpack value is one.
"""

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO
from zlib import crc32

import msgpack

__all__ = ["MARKED", "Frames", "framed"]

MARKED = 0xCF  # the byte with which a mark begins
_BLOCK_BYTES = 1 << 20
_MARK_BYTES = 9
_CRC_BITS = 32


def framed(content: bytes) -> bytes:
    told = crc32(content) << _CRC_BITS | len(content)
    return bytes([MARKED]) + told.to_bytes(_MARK_BYTES - 1) + content


class Frames:
    """What is in whole frames, one after the other, with a block or a frame at once in memory.

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
        told = int.from_bytes(self._buffer[self._at + 1 : begin])
        crc, length = told >> _CRC_BITS, told & ((1 << _CRC_BITS) - 1)
        if self._buffer[self._at] != MARKED:
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
        return msgpack.unpackb(content, strict_map_key=False)

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
