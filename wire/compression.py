"""The codecs of record batches: gzip, snappy, lz4 and zstd, as Kafka frames them.

Says what the bytes behind a batch's header mean once they are opened, and how to close them again.
Which batches are opened is not decided here. Readers accept foreign bytes: they raise `Malformed`,
and open no more than `PLAIN_BYTES_MAX`, however little the bytes were before.

- gzip: one member (RFC 1952).
- snappy: the stream of snappy-java: a header, then blocks of 32 KiB behind their lengths. Other
  clients write one raw block instead, and both are read.
- lz4: one frame of independent blocks: Kafka's Java reader refuses linked ones.
- zstd: frames (KIP-110).

Source: Kafka's CompressionType, Lz4BlockOutputStream, KIP-390 (levels).
"""

import struct
import zlib
from collections.abc import Callable, Iterator
from enum import IntEnum
from functools import cache
from typing import Any

import numpy as np

from wire.varint import Buffer, Malformed

__all__ = ["Compression", "compress", "decompress"]

PLAIN_BYTES_MAX = 100 << 20  # as much as an uncompressed batch can have at most
_GZIP = 31  # zlib's name for its largest window within gzip's frame
_XERIAL = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)  # magic, version, lowest compatible version
_XERIAL_BLOCK_BYTES = 32 << 10
_BLOCK_LENGTH = struct.Struct(">i")
_LZ4_LEVEL_DEFAULT = 9  # Kafka compresses fast at its default level, and hard at all others
_LZ4_FAST = 0


class Compression(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


@cache
def _cramjam() -> Any:
    """Loads it at its first use: that takes some 20 ms, and most processes never compress."""
    import cramjam

    return cramjam


def compress(plain: Buffer, codec: Compression, level: int) -> Buffer:
    """`level` is the codec's own, as in the configs of a topic; some codecs have none."""
    match codec:
        case Compression.NONE:
            return plain
        case Compression.GZIP:
            packer = zlib.compressobj(level, zlib.DEFLATED, _GZIP)
            return packer.compress(plain) + packer.flush()
        case Compression.SNAPPY:
            return b"".join(_snappy_blocks(plain))
        case Compression.LZ4:
            frame = _cramjam().lz4.Compressor(
                level=_LZ4_FAST if level == _LZ4_LEVEL_DEFAULT else level,
                content_checksum=False,
                block_linked=False,
            )
            frame.compress(bytes(plain))
            return bytes(frame.finish())
        case Compression.ZSTD:
            return bytes(_cramjam().zstd.compress(plain, level=level))


def _snappy_blocks(plain: Buffer) -> Iterator[bytes]:
    yield _XERIAL
    for start in range(0, len(plain), _XERIAL_BLOCK_BYTES):
        block = bytes(_cramjam().snappy.compress_raw(plain[start : start + _XERIAL_BLOCK_BYTES]))
        yield _BLOCK_LENGTH.pack(len(block))
        yield block


def decompress(packed: Buffer, codec: Compression) -> Buffer:
    """Raises Malformed for what is not of that codec, or too much."""
    match codec:
        case Compression.NONE:
            return packed
        case Compression.GZIP:
            return _gunzip(packed)
        case Compression.SNAPPY:
            return _checked("snappy", _unsnap, packed)
        case Compression.LZ4:
            return _checked("lz4", lambda frame: _into(_cramjam().lz4, frame), packed)
        case Compression.ZSTD:
            return _checked("zstd", lambda frame: _into(_cramjam().zstd, frame), packed)


def _gunzip(packed: Buffer) -> bytes:
    inflater = zlib.decompressobj(wbits=_GZIP)
    try:
        plain = inflater.decompress(packed, PLAIN_BYTES_MAX)
    except zlib.error as error:
        raise Malformed(f"gzip: {error}") from error
    if not inflater.eof:
        raise Malformed(f"gzip: cut short, or more than {PLAIN_BYTES_MAX} bytes")
    if inflater.unused_data:
        raise Malformed(f"gzip: {len(inflater.unused_data)} bytes behind the end")
    return plain


def _checked(name: str, open_: Callable[[Buffer], bytes], packed: Buffer) -> bytes:
    try:
        return open_(packed)
    except _cramjam().DecompressionError as error:
        reason = str(error).removeprefix(f"{name}: ")
        raise Malformed(f"{name}: {reason}") from error


def _into(codec: Any, frame: Buffer) -> bytes:
    """NumPy's empty memory costs nothing before it is written, and bounds what is."""
    plain = np.empty(PLAIN_BYTES_MAX, np.uint8)
    size = codec.decompress_into(frame, plain)
    return plain[:size].tobytes()


def _unsnap(packed: Buffer) -> bytes:
    if bytes(packed[:8]) != _XERIAL[:8]:
        return _snappy_block(packed, PLAIN_BYTES_MAX)
    blocks = []
    left = PLAIN_BYTES_MAX
    position = len(_XERIAL)
    while position < len(packed):
        if len(packed) - position < _BLOCK_LENGTH.size:
            raise Malformed("snappy: cut short")
        (length,) = _BLOCK_LENGTH.unpack_from(packed, position)
        position += _BLOCK_LENGTH.size
        if not 0 <= length <= len(packed) - position:
            raise Malformed(f"snappy: a block of {length} bytes in {len(packed) - position}")
        blocks.append(_snappy_block(packed[position : position + length], left))
        left -= len(blocks[-1])
        position += length
    return b"".join(blocks)


def _snappy_block(block: Buffer, bytes_max: int) -> bytes:
    size = _cramjam().snappy.decompress_raw_len(block)
    if size > bytes_max:
        raise Malformed(f"snappy: more than {PLAIN_BYTES_MAX} bytes")
    return bytes(_cramjam().snappy.decompress_raw(block))
