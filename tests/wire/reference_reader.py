"""A slow reader of layouts, for tests: plain dicts of what the bytes say, or `Refused`.

It shares no code with `wire`, but for the layouts. Rules that Kafka has and kio has not are stated
here a second time: limits, unknown tags, and that an array's length fits the bytes that are left.
"""

import struct
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

from wire.errors import ErrorCode
from wire.layout import FIXED_FORMATS, EntityLayout, FieldLayout

__all__ = ["ReferenceReader", "Refused", "differences", "plain_of_kio", "random_bytes"]

STRING_BYTES_MAX = 32767
ELEMENTS_MAX = 1_000_000


class Refused(Exception):
    """The bytes are no such message."""


class ReferenceReader:
    """`position` is behind what was read; `strange`: some of it is what only kio refuses."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0
        self.strange = False

    def entity(self, layout: EntityLayout) -> dict[str, Any]:
        values = {field.name: self._field(field, layout.flexible) for field in layout.fields}
        if layout.flexible:
            self._tagged(layout, values)
        return values

    def _take(self, size: int) -> bytes:
        if size > len(self._data) - self.position:
            raise Refused(f"{size} bytes at {self.position} of {len(self._data)}")
        self.position += size
        return self._data[self.position - size : self.position]

    def _uvarint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                if value < 2**64:
                    return value
                break
        raise Refused("a varint of more than 64 bits")

    def _length(self, flexible: bool, code: str) -> int:
        if flexible:
            return self._uvarint() - 1
        (length,) = struct.unpack(">" + code, self._take(struct.calcsize(">" + code)))
        assert isinstance(length, int)
        return length

    def _tagged(self, layout: EntityLayout, values: dict[str, Any]) -> None:
        known = {field.tag: field for field in layout.tagged}
        for _ in range(self._uvarint()):
            tag, size = self._uvarint(), self._uvarint()
            end = self.position + size
            if end > len(self._data):
                raise Refused("a tag is longer than what is left")
            if tag in known:
                self.strange |= known[tag].name in values
                values[known[tag].name] = self._field(known[tag], flexible=True)
                self.strange |= values[known[tag].name] is None
                if self.position != end:
                    raise Refused("a tagged field has another size")
            else:
                self.strange = True
            self.position = end

    def _field(self, field: FieldLayout, flexible: bool) -> Any:
        if not field.is_array:
            if field.entity is not None and field.nullable and field.tag is None:
                (marker,) = struct.unpack("b", self._take(1))
                self.strange |= marker not in (-1, 1)
                return None if marker < 0 else self._one(field, flexible)
            return self._one(field, flexible)
        count = self._length(flexible, "i")
        if count == -1 and field.nullable:
            return None
        if not 0 <= count <= min(ELEMENTS_MAX, len(self._data) - self.position):
            raise Refused(f"{count} elements")
        return tuple(self._one(field, flexible) for _ in range(count))

    def _one(self, field: FieldLayout, flexible: bool) -> Any:
        if field.entity is not None:
            return self.entity(field.entity)
        if field.kind == "uuid":
            return UUID(bytes=self._take(16))
        if field.kind in FIXED_FORMATS:
            return self._number(field.kind)
        length = self._length(flexible, "h" if field.kind == "string" else "i")
        if length == -1 and field.nullable and not field.is_array:
            return None
        if length < 0 or (field.kind == "string" and length > STRING_BYTES_MAX):
            raise Refused(f"{length} bytes")
        content = self._take(length)
        try:
            return content.decode() if field.kind == "string" else content
        except UnicodeDecodeError as error:
            raise Refused("no UTF-8") from error

    def _number(self, kind: str) -> Any:
        code = ">" + FIXED_FORMATS[kind]
        content = self._take(struct.calcsize(code))
        (value,) = struct.unpack(code, content)
        self.strange |= kind == "bool" and content not in (b"\0", b"\1")
        if kind != "error_code":
            return value
        self.strange |= value not in set(ErrorCode)
        return ErrorCode(value) if value in set(ErrorCode) else ErrorCode.UNKNOWN_SERVER_ERROR


def differences(value: Any, plain: Any, path: str = "") -> Iterator[str]:
    """Where a message, canonical or plain, says something else than the bytes do: by field."""
    if isinstance(plain, dict):
        for name, said in plain.items():
            if isinstance(value, dict):
                yield from differences(value[name], said, f"{path}.{name}")
            elif hasattr(value, name):
                yield from differences(getattr(value, name), said, f"{path}.{name}")
    elif isinstance(plain, tuple) and isinstance(value, tuple):
        if len(plain) != len(value):
            yield f"{path} has {len(value)} elements, not {len(plain)}"
        for index, (ours, said) in enumerate(zip(value, plain, strict=False)):
            yield from differences(ours, said, f"{path}[{index}]")
    elif type(value) is not type(plain) or repr(value) != repr(plain):  # nan is nan
        yield f"{path} is {value!r}, not {plain!r}"


def plain_of_kio(value: Any, layout: EntityLayout) -> dict[str, Any]:
    """What kio has read, in the terms of this module."""
    assert is_dataclass(value)
    by_name = {field.name.removesuffix("_ms"): field for field in layout.fields + layout.tagged}
    found = {}
    for member in fields(value):
        field = by_name.get(member.name) or by_name[member.name.removesuffix("_ms")]
        found[field.name] = _plain(getattr(value, member.name), field)
    return found


def _plain(value: Any, field: FieldLayout) -> Any:
    if field.is_array:
        return None if value is None else tuple(_plain_one(each, field) for each in value)
    return _plain_one(value, field)


def _plain_one(value: Any, field: FieldLayout) -> Any:
    if value is None:
        if field.kind == "uuid":
            return UUID(int=0)
        return -1 if field.kind.startswith("datetime") else None
    if field.entity is not None:
        return plain_of_kio(value, field.entity)
    match value:
        case timedelta():
            return value // timedelta(milliseconds=1)
        case datetime():
            return round(value.timestamp() * 1000)
        case UUID():
            return UUID(bytes=value.bytes)
    if field.kind == "error_code":
        return ErrorCode(int(value))
    kind = {"string": str, "bytes": bytes, "records": bytes, "bool": bool, "float64": float}
    return kind.get(field.kind, int)(value)


def random_bytes(random: Random, layout: EntityLayout) -> bytes:
    """A message of this layout."""
    out = b"".join(_random_field(random, field, layout.flexible) for field in layout.fields)
    if not layout.flexible:
        return out
    given = [field for field in layout.tagged if random.random() < 0.6]
    unknown = random.choice([b"", b"", b"", b"\x63\x03abc", b"\xe8\x07\x00"])  # tags 99, 1000
    out += bytes([len(given) + bool(unknown)])
    for field in given:
        content = _random_field(random, field, flexible=True)
        out += bytes([field.tag or 0]) + _uvarint(len(content)) + content
    return out + unknown


def _uvarint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + _uvarint(value >> 7)


def _random_field(random: Random, field: FieldLayout, flexible: bool) -> bytes:
    if field.is_array:
        if field.nullable and random.random() < 0.2:
            return b"\0" if flexible else b"\xff" * 4
        count = random.choice([0, 1, 1, 2, 3])
        length = _uvarint(count + 1) if flexible else struct.pack(">i", count)
        return length + b"".join(_random_one(random, field, flexible) for _ in range(count))
    if field.entity is not None and field.nullable and field.tag is None:
        if random.random() < 0.3:
            return b"\xff"
        return b"\1" + _random_one(random, field, flexible)
    return _random_one(random, field, flexible)


def _random_one(random: Random, field: FieldLayout, flexible: bool) -> bytes:
    if field.entity is not None:
        return random_bytes(random, field.entity)
    if field.kind == "error_code":
        return struct.pack(">h", random.choice(list(ErrorCode)))
    if field.kind == "uuid":
        return random.choice([bytes(16), random.randbytes(16)])
    if field.kind in FIXED_FORMATS:
        size = struct.calcsize(">" + FIXED_FORMATS[field.kind])
        if field.kind == "bool":
            return random.choice([b"\0", b"\1"])
        return random.choice([bytes(size), random.randbytes(size), bytes(size - 1) + b"\5"])
    if field.nullable and not field.is_array and random.random() < 0.2:
        return b"\0" if flexible else b"\xff" * (2 if field.kind == "string" else 4)
    content = random.choice(["", "t", "topic-é", "a longer name " * 3]).encode()
    if flexible:
        return _uvarint(len(content) + 1) + content
    return struct.pack(">h" if field.kind == "string" else ">i", len(content)) + content
