"""Messages as plain dicts, to bytes and back: also those that no careful client would send.

Names, types and order of fields are kio's (`wire.schema`); the codec is the tests' own, so that
what `wire` would refuse to write can be written. A field that a request does not give has its
default; one that the version lacks is left out. Error codes stay numbers, unknown ones too.
"""

import struct
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from wire.api_table import api_by_key
from wire.layout import FIXED_FORMATS, EntityLayout, FieldLayout
from wire.schema import load_layout

__all__ = ["Plain", "decode_response", "encode_request", "has_flexible_header", "layout"]

Plain = Mapping[str, Any]


def layout(api: str, version: int, kind: str) -> EntityLayout:
    return load_layout(api, version, kind)


def has_flexible_header(api: str, version: int) -> bool:
    return layout(api, version, "request").flexible


def encode_request(api: str, version: int, body: Plain) -> bytes:
    """The body alone, without a header."""
    out = bytearray()
    _write_entity(out, layout(api, version, "request"), body)
    return bytes(out)


def decode_response(api_key: int, version: int, frame: bytes) -> dict[str, Any]:
    """The body of an answer whose frame begins with the correlation id. Raises ValueError."""
    api = api_by_key(api_key)
    assert api is not None, api_key
    shape = layout(api.name, version, "response")
    reader = _Reader(frame, 4)
    if shape.flexible and api.name != "api_versions":
        reader.tagged({}, shape)
    try:
        body = reader.entity(shape)
    except (struct.error, IndexError) as error:
        raise ValueError(f"{api.title} {version} ends early") from error
    if reader.at != len(frame):
        raise ValueError(f"{api.title} {version}: {len(frame) - reader.at} bytes left over")
    return body


# --- writing ---------------------------------------------------------------------------------


def _uvarint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _write_entity(out: bytearray, shape: EntityLayout, values: Plain) -> None:
    for field in shape.fields:
        _write_field(out, field, values.get(field.name, field.default), shape.flexible)
    if not shape.flexible:
        return
    given = [field for field in shape.tagged if field.name in values]
    out += _uvarint(len(given))
    for field in given:
        content = bytearray()
        _write_field(content, field, values[field.name], flexible=True)
        out += _uvarint(field.tag or 0) + _uvarint(len(content)) + content


def _write_field(out: bytearray, field: FieldLayout, value: Any, flexible: bool) -> None:
    if field.is_array:
        out += _length(value, ">i", flexible)
        for element in value or ():
            _write_one(out, field, element, flexible)
    elif field.kind == "entity" and field.nullable and field.tag is None:
        out += b"\xff" if value is None else b"\x01"
        if value is not None:
            _write_one(out, field, value, flexible)
    else:
        _write_one(out, field, value, flexible)


def _write_one(out: bytearray, field: FieldLayout, value: Any, flexible: bool) -> None:
    if field.entity is not None:
        _write_entity(out, field.entity, value or {})
    elif field.kind == "uuid":
        out += value.bytes
    elif field.kind in ("string", "bytes", "records"):
        content = value.encode() if isinstance(value, str) else value
        out += _length(content, ">h" if field.kind == "string" else ">i", flexible)
        out += content or b""
    else:
        out += struct.pack(">" + FIXED_FORMATS[field.kind], value)


def _length(value: Any, old_format: str, flexible: bool) -> bytes:
    """Null is told by -1, and by 0 where lengths count from one."""
    length = -1 if value is None else len(value)
    return _uvarint(length + 1) if flexible else struct.pack(old_format, length)


# --- reading ---------------------------------------------------------------------------------


class _Reader:
    def __init__(self, data: bytes, at: int) -> None:
        self.data = data
        self.at = at

    def fixed(self, format_: str) -> Any:
        (value,) = struct.unpack_from(">" + format_, self.data, self.at)
        self.at += struct.calcsize(">" + format_)
        return value

    def raw(self, size: int) -> bytes:
        if self.at + size > len(self.data):
            raise IndexError
        self.at += size
        return self.data[self.at - size : self.at]

    def uvarint(self) -> int:
        value = shift = 0
        while True:
            byte = self.raw(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def entity(self, shape: EntityLayout) -> dict[str, Any]:
        values = {field.name: self.field(field, shape.flexible) for field in shape.fields}
        if shape.flexible:
            self.tagged(values, shape)
        return values

    def tagged(self, values: dict[str, Any], shape: EntityLayout) -> None:
        """Fields that are not there have their defaults."""
        known = {field.tag: field for field in shape.tagged}
        for _ in range(self.uvarint()):
            tag, size = self.uvarint(), self.uvarint()
            end = self.at + size
            if tag in known:
                values[known[tag].name] = self.field(known[tag], flexible=True)
            else:
                values[f"tag {tag}"] = self.raw(size)
            self.at = end
        for field in shape.tagged:
            values.setdefault(field.name, field.default)

    def field(self, field: FieldLayout, flexible: bool) -> Any:
        if field.is_array:
            length = self.length("i", flexible)
            return None if length < 0 else [self.one(field, flexible) for _ in range(length)]
        if field.kind == "entity" and field.nullable and field.tag is None:
            return None if self.fixed("b") < 0 else self.one(field, flexible)
        return self.one(field, flexible)

    def one(self, field: FieldLayout, flexible: bool) -> Any:
        if field.entity is not None:
            return self.entity(field.entity)
        if field.kind == "uuid":
            return UUID(bytes=self.raw(16))
        if field.kind in ("string", "bytes", "records"):
            length = self.length("h" if field.kind == "string" else "i", flexible)
            content = None if length < 0 else self.raw(length)
            return content.decode() if content is not None and field.kind == "string" else content
        return self.fixed(FIXED_FORMATS[field.kind])

    def length(self, old_format: str, flexible: bool) -> int:
        return self.uvarint() - 1 if flexible else int(self.fixed(old_format))
