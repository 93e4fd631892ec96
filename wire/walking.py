"""Where each value of a struct lies in its bytes, down to lengths and tags. For people who look."""

import struct
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from wire.layout import FIXED_FORMATS, EntityLayout, FieldLayout
from wire.varint import Malformed, read_uvarint

__all__ = ["walk"]

_Step = tuple[int, int, str, Any]  # start, end (exclusive), name, value


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
