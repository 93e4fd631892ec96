"""The meaning of each byte of a record batch: ranges with the name and the value of a field.

People use it to compare bytes. The ranges cover the batch without gaps, in order; where bytes
cannot be told, the last range says why.

Source: KIP-98 for the batch, KIP-482 for flexible structs.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from wire.batch import HEADER_BYTES, read_header
from wire.control_records import control_type
from wire.layout import FIXED_FORMATS, EntityLayout, FieldLayout
from wire.metadata_records import read_frame
from wire.record_schema import record_layout
from wire.varint import Malformed, read_uvarint, read_varint

__all__ = ["Range", "explain_batch", "hex_lines"]

_HEADER = (
    ("base offset", ">q"),
    ("batch length", ">i"),
    ("partition leader epoch", ">i"),
    ("magic", ">b"),
    ("crc", ">I"),
    ("attributes", ">h"),
    ("last offset delta", ">i"),
    ("base timestamp", ">q"),
    ("max timestamp", ">q"),
    ("producer id", ">q"),
    ("producer epoch", ">h"),
    ("base sequence", ">i"),
    ("record count", ">i"),
)
_IN_A_LINE = 8


@dataclass(frozen=True, slots=True)
class Range:
    """Bytes from `start` to `end` (exclusive), counted from the start of the batch."""

    start: int
    end: int
    name: str
    value: Any


def explain_batch(batch: bytes) -> Iterator[Range]:
    """Raises CorruptBatch if it has no header."""
    header = read_header(batch)
    position = 0
    for name, code in _HEADER:
        (value,) = struct.unpack_from(code, batch, position)
        yield Range(position, position + struct.calcsize(code), name, value)
        position += struct.calcsize(code)
    assert position == HEADER_BYTES, position
    reader = _Records(batch, position, is_control=header.is_control)
    try:
        if header.compression:
            yield Range(position, len(batch), "records", f"compressed, {header.compression.name}")
            return
        for number in range(header.record_count):
            yield from reader.record(number)
    except Malformed as error:
        yield Range(reader.position, len(batch), "unknown", str(error))
    else:
        if reader.position < len(batch):
            yield Range(reader.position, len(batch), "unknown", "bytes behind the last record")


class _Records:
    """Walks through the records; `position` is behind what has been told."""

    def __init__(self, batch: bytes, position: int, *, is_control: bool) -> None:
        self._batch = batch
        self._is_control = is_control
        self.position = position

    def record(self, number: int) -> Iterator[Range]:
        name = f"record {number}"
        yield self._varint(f"{name} length")
        yield self._bytes(f"{name} attributes", 1)
        yield self._varint(f"{name} timestamp delta")
        yield self._varint(f"{name} offset delta")
        _, key_at = read_varint(self._batch, self.position)
        yield from self._sized(f"{name} key")
        value = self._varint(f"{name} value length")
        yield value
        if value.value > 0:
            yield from self._value(self._batch[key_at : value.start], value.value)
        count = self._varint(f"{name} header count")
        yield count
        for header in range(count.value):
            yield from self._sized(f"{name} header {header} key")
            yield from self._sized(f"{name} header {header} value")

    def _sized(self, name: str) -> Iterator[Range]:
        """A length, and so many bytes; -1 is null."""
        length = self._varint(f"{name} length")
        yield length
        if length.value > 0:
            yield self._bytes(name, length.value)

    def _value(self, key: bytes, length: int) -> Iterator[Range]:
        end = self.position + length
        value = self._batch[:end]  # nothing may be read from behind it
        record_type: type
        if self._is_control:
            found = control_type(key, value[self.position :])
            if found is None:
                yield self._bytes("unknown control record", length)
                return
            record_type, version = found
        else:
            record_type, version, _ = read_frame(value, self.position)
            for name in ("frame version", "record key", "record version"):
                number, stop = read_uvarint(self._batch, self.position)
                yield self._took(stop, name, number)
        layout = record_layout(record_type, version)
        for start, stop, name, told in walk(layout, value, self.position):
            self.position = stop
            yield Range(start, stop, f"{record_type.__name__}.{name}", told)
        if self.position != end:
            raise Malformed(f"the value ends at {end}, its fields at {self.position}")

    def _varint(self, name: str) -> Range:
        value, end = read_varint(self._batch, self.position)
        return self._took(end, name, value)

    def _bytes(self, name: str, length: int) -> Range:
        end = self.position + length
        if end > len(self._batch):
            raise Malformed(f"{length} bytes of which {len(self._batch) - self.position} are there")
        return self._took(end, name, self._batch[self.position : end].hex())

    def _took(self, end: int, name: str, value: Any) -> Range:
        found = Range(self.position, end, name, value)
        self.position = end
        return found


def hex_lines(batch: bytes, position: int) -> Iterator[str]:
    """`0000006a  00 00 00 00 00 00 00 01  base offset = 1`; counted from `position`."""
    for found in explain_batch(batch):
        for start in range(found.start, max(found.end, found.start + 1), _IN_A_LINE):
            piece = batch[start : min(start + _IN_A_LINE, found.end)]
            told = f"  {found.name} = {found.value}" if start == found.start else ""
            yield f"{position + start:08x}  {piece.hex(' '):<23}{told}".rstrip()


_Step = tuple[int, int, str, Any]  # start, end (exclusive), name, value


# --- the fields of a struct ------------------------------------------------------------------


def walk(layout: EntityLayout, buffer: bytes, position: int) -> Iterator[_Step]:
    """The values of a flexible struct. Raises Malformed where bytes do not fit."""
    for field in layout.fields:
        for step in _walk_field(field, buffer, position):
            position = step[1]
            yield step
    by_tag = {field.tag: field for field in layout.tagged}
    count, end = read_uvarint(buffer, position)
    yield position, end, "tagged fields", count
    for _ in range(count):
        start, (tag, position) = end, read_uvarint(buffer, end)
        size, position = read_uvarint(buffer, position)
        end = position + size
        tagged = by_tag.get(tag)
        yield start, position, f"tag {tag}", f"{size} bytes"
        if tagged is None:
            yield position, end, f"unknown tag {tag}", buffer[position:end].hex()
        else:
            yield from _walk_field(tagged, buffer, position)


def _walk_field(field: FieldLayout, buffer: bytes, position: int) -> Iterator[_Step]:
    if not field.is_array:
        yield from _walk_element(field, field.name, buffer, position)
        return
    count, end = read_uvarint(buffer, position)
    yield position, end, f"{field.name} count", count - 1 if count else "null"
    for index in range(count - 1):
        for step in _walk_element(field, f"{field.name}[{index}]", buffer, end):
            end = step[1]
            yield step


def _walk_element(field: FieldLayout, name: str, buffer: bytes, position: int) -> Iterator[_Step]:
    if field.entity is not None:
        for start, end, inner, value in walk(field.entity, buffer, position):
            yield start, end, f"{name}.{inner}", value
        return
    try:
        value, end = _primitive(field, buffer, position)
    except (struct.error, ValueError) as error:
        raise Malformed(f"{name}: {error}") from error
    yield position, end, name, value


def _primitive(field: FieldLayout, buffer: bytes, position: int) -> tuple[Any, int]:
    if field.kind in FIXED_FORMATS:
        layout = struct.Struct(">" + FIXED_FORMATS[field.kind])
        return layout.unpack_from(buffer, position)[0], position + layout.size
    if field.kind == "uuid":
        return UUID(bytes=buffer[position : position + 16]), position + 16
    length, position = read_uvarint(buffer, position)
    if length == 0:
        return None, position
    end = position + length - 1
    if end > len(buffer):
        raise Malformed(f"{length - 1} bytes at {position}, of {len(buffer)}")
    content = buffer[position:end]
    return content.decode() if field.kind == "string" else content, end
