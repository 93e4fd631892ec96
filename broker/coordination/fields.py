"""Keys and values of the coordinators' topics are written and read field by field.

The first versions of a value are plain, with lengths in two or four bytes; later ones are flexible
(KIP-482).
"""

from struct import Struct

from wire.varint import Malformed, read_uvarint

__all__ = ["Fields", "sized_bytes", "sized_string"]

_INT8 = Struct(">b")
_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT64 = Struct(">q")


def sized_string(value: str | None) -> bytes:
    if value is None:
        return _INT16.pack(-1)
    text = value.encode()
    return _INT16.pack(len(text)) + text


def sized_bytes(value: bytes) -> bytes:
    return _INT32.pack(len(value)) + value


class Fields:
    """A key or value is read field by field."""

    __slots__ = ("_buffer", "_flexible", "_position")

    def __init__(self, buffer: bytes) -> None:
        self._buffer = buffer
        self._position = 0
        self._flexible = False

    def version(self, *, newest: int, flexible_since: int) -> int:
        """Reads the version of a value, which decides how the rest is read."""
        version = self.int16()
        if not 0 <= version <= newest:
            raise Malformed(f"a value of version {version}")
        self._flexible = version >= flexible_since
        return version

    def int8(self) -> int:
        return self._number(_INT8)

    def int16(self) -> int:
        return self._number(_INT16)

    def int32(self) -> int:
        return self._number(_INT32)

    def int64(self) -> int:
        return self._number(_INT64)

    def string(self) -> str:
        return self.nullable_string() or ""

    def nullable_string(self) -> str | None:
        content = self._sized(_INT16)
        return None if content is None else content.decode()

    def sized(self) -> bytes:
        return self._sized(_INT32) or b""

    def count(self) -> int:
        """Reads the number of elements of an array."""
        count = self._length(_INT32)
        if count > len(self._buffer) - self._position:  # an element has at least one byte
            raise Malformed(f"{count} elements in {len(self._buffer)} bytes")
        return count

    def tags(self) -> dict[int, bytes]:
        """The tagged fields that end a flexible struct."""
        found: dict[int, bytes] = {}
        if not self._flexible:
            return found
        for _ in range(self._uvarint()):
            tag = self._uvarint()
            found[tag] = self._take(self._uvarint())
        return found

    def _number(self, layout: Struct) -> int:
        (value,) = layout.unpack_from(self._buffer, self._position)
        self._position += layout.size
        assert isinstance(value, int), value
        return value

    def _uvarint(self) -> int:
        value, self._position = read_uvarint(self._buffer, self._position)
        return value

    def _length(self, plain: Struct) -> int:
        return self._uvarint() - 1 if self._flexible else self._number(plain)

    def _sized(self, plain: Struct) -> bytes | None:
        length = self._length(plain)
        return None if length < 0 else self._take(length)

    def _take(self, length: int) -> bytes:
        end = self._position + length
        if end > len(self._buffer):
            raise Malformed(f"{length} bytes at {self._position}, of {len(self._buffer)}")
        content = self._buffer[self._position : end]
        self._position = end
        return content
