"""Bytes to canonical messages: a reader is compiled once for a layout and a canonical class.

Fields are matched by name. A field that the layout has and the class lacks is read and dropped; one
that the class has and the layout lacks takes its default. What Kafka accepts is accepted: unknown
tagged fields are skipped (KIP-482), unknown error codes become UNKNOWN_SERVER_ERROR. Nothing is
allocated on the word of a length that the bytes left could not hold.
"""

from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from struct import Struct
from struct import error as struct_error
from typing import Any
from uuid import UUID

from wire.differences import Rules
from wire.errors import ErrorCode
from wire.schema import FIXED_FORMATS, EntityLayout, FieldLayout, element_type
from wire.varint import Malformed, read_uvarint

__all__ = ["Reader", "entity_reader", "read_message"]

# Reads one value at a position; returns it and the position after it.
Reader = Callable[[bytes, int], tuple[Any, int]]
_Step = Callable[[bytes, int, dict[str, Any]], int]

_ERROR_CODES = {code.value: code for code in ErrorCode}
_INT8 = Struct(">b")
_INT16 = Struct(">h")
_INT32 = Struct(">i")


def read_message(reader: Reader, buffer: bytes, position: int) -> Any:
    """Read one message that ends where the buffer ends. Raises Malformed on anything else."""
    try:
        message, end = reader(buffer, position)
    except (struct_error, IndexError) as error:
        raise Malformed(f"the message ends early, after {len(buffer)} bytes") from error
    except UnicodeDecodeError as error:
        raise Malformed(f"a string is not UTF-8: {error.reason}") from error
    if end != len(buffer):
        raise Malformed(f"{len(buffer) - end} bytes after the end of the message")
    return message


def entity_reader(layout: EntityLayout, canonical: Any, rules: Rules) -> Reader:
    """A reader of `canonical`, or of a dict to be dropped."""
    annotations = _annotations(canonical)
    adjust = rules.adjust(layout.name)

    def reader_of(field: FieldLayout) -> Reader:
        element = element_type(annotations[field.name]) if field.name in annotations else dict
        return _field_reader(field, layout.flexible, element, rules)

    steps = _steps(layout, reader_of)
    tagged = {field.tag: (field.name, reader_of(field)) for field in layout.tagged}
    dropped = tuple(_names_of(layout) - annotations.keys())

    def read(buffer: bytes, position: int) -> tuple[Any, int]:
        values: dict[str, Any] = {}
        for step in steps:
            position = step(buffer, position, values)
        if layout.flexible:
            position = _read_tagged_fields(buffer, position, tagged, values)
        if adjust is not None:
            adjust(values)
        for name in dropped:
            values.pop(name, None)
        return canonical(**values), position

    return read


def _annotations(canonical: Any) -> dict[str, Any]:
    if canonical is dict:  # a struct that the canonical form lacks: read, to be dropped
        return {}
    return {field.name: field.type for field in fields(canonical)}


def _names_of(layout: EntityLayout) -> set[str]:
    return {field.name for field in layout.fields + layout.tagged}


def _steps(layout: EntityLayout, reader_of: Callable[[FieldLayout], Reader]) -> tuple[_Step, ...]:
    """Neighbours of fixed size are unpacked together; every other field is a step of its own."""
    steps: list[_Step] = []
    run: list[FieldLayout] = []
    for field in layout.fields:
        if field.fixed_format is not None:
            run.append(field)
            continue
        if run:
            steps.append(_run_step(run))
            run = []
        steps.append(_field_step(field.name, reader_of(field)))
    if run:
        steps.append(_run_step(run))
    return tuple(steps)


def _run_step(run: list[FieldLayout]) -> _Step:
    layout = Struct(">" + "".join(field.fixed_format or "" for field in run))
    unpack_from, size = layout.unpack_from, layout.size
    names = tuple(field.name for field in run)
    error_codes = tuple(field.name for field in run if field.kind == "error_code")

    def step(buffer: bytes, position: int, values: dict[str, Any]) -> int:
        values.update(zip(names, unpack_from(buffer, position), strict=True))
        for name in error_codes:
            values[name] = _ERROR_CODES.get(values[name], ErrorCode.UNKNOWN_SERVER_ERROR)
        return position + size

    return step


def _field_step(name: str, reader: Reader) -> _Step:
    def step(buffer: bytes, position: int, values: dict[str, Any]) -> int:
        values[name], position = reader(buffer, position)
        return position

    return step


def _read_tagged_fields(
    buffer: bytes, position: int, tagged: dict[int | None, tuple[str, Reader]], values: Any
) -> int:
    if not buffer[position]:  # none, nearly always
        return position + 1
    count, position = read_uvarint(buffer, position)
    for _ in range(count):
        tag, position = read_uvarint(buffer, position)
        size, position = read_uvarint(buffer, position)
        end = position + size
        if end > len(buffer):
            raise Malformed(f"tagged field {tag} of {size} bytes, {len(buffer) - position} left")
        if tag in tagged:
            name, reader = tagged[tag]
            values[name], read_to = reader(buffer, position)
            if read_to != end:
                raise Malformed(f"tagged field {tag} has {size} bytes, not {read_to - position}")
        position = end
    return position


# --- one field -----------------------------------------------------------------------------


def _field_reader(field: FieldLayout, flexible: bool, element: Any, rules: Rules) -> Reader:
    one = _element_reader(field, flexible, element, rules)
    if field.is_array:
        return _array_reader(field, flexible, one)
    if field.kind == "entity" and field.nullable and field.tag is None:
        return _nullable_entity_reader(one)
    return one


def _element_reader(field: FieldLayout, flexible: bool, element: Any, rules: Rules) -> Reader:
    if field.kind == "entity":
        assert field.entity is not None, field
        return entity_reader(field.entity, element, rules)
    if field.kind == "uuid":
        return _read_uuid
    if field.kind == "error_code":
        return _read_error_code
    if field.kind in ("string", "bytes", "records"):
        return _sized_reader(field, flexible)
    return _fixed_reader(field)


def _fixed_reader(field: FieldLayout) -> Reader:
    layout = Struct(">" + FIXED_FORMATS[field.kind])

    def read(buffer: bytes, position: int) -> tuple[Any, int]:
        return layout.unpack_from(buffer, position)[0], position + layout.size

    return read


def _read_uuid(buffer: bytes, position: int) -> tuple[UUID, int]:
    end = position + 16
    if end > len(buffer):
        raise Malformed("a uuid ends early")
    return _uuid(buffer[position:end]), end


@lru_cache(maxsize=4096)  # the ids of topics and directories come again in every fetch
def _uuid(content: bytes) -> UUID:
    return UUID(bytes=content)


def _read_error_code(buffer: bytes, position: int) -> tuple[ErrorCode, int]:
    (code,) = _INT16.unpack_from(buffer, position)
    return _ERROR_CODES.get(code, ErrorCode.UNKNOWN_SERVER_ERROR), position + 2


def _length_reader(legacy: Struct, flexible: bool) -> Callable[[bytes, int], tuple[int, int]]:
    """Lengths count from one if flexible and are plain if not: -1 is null in both."""

    def read_compact(buffer: bytes, position: int) -> tuple[int, int]:
        byte = buffer[position]
        if byte < 0x80:  # as read_uvarint does, without the call
            return byte - 1, position + 1
        length, position = read_uvarint(buffer, position)
        return length - 1, position

    def read_legacy(buffer: bytes, position: int) -> tuple[int, int]:
        return legacy.unpack_from(buffer, position)[0], position + legacy.size

    return read_compact if flexible else read_legacy


def _sized_reader(field: FieldLayout, flexible: bool) -> Reader:
    is_text = field.kind == "string"
    nullable = field.nullable and not field.is_array
    read_length = _length_reader(_INT16 if is_text else _INT32, flexible)

    def read(buffer: bytes, position: int) -> tuple[Any, int]:
        length, position = read_length(buffer, position)
        if length < 0:
            if length == -1 and nullable:
                return None, position
            raise Malformed(f"{field.name} has the length {length}")
        end = position + length
        if end > len(buffer):
            raise Malformed(f"{field.name} has {length} bytes, {len(buffer) - position} are left")
        value = buffer[position:end]
        return value.decode() if is_text else value, end

    return read


def _array_reader(field: FieldLayout, flexible: bool, one: Reader) -> Reader:
    read_length = _length_reader(_INT32, flexible)

    def read(buffer: bytes, position: int) -> tuple[Any, int]:
        length, position = read_length(buffer, position)
        if length < 0:
            if length == -1 and field.nullable:
                return None, position
            raise Malformed(f"{field.name} has {length} elements")
        if length > len(buffer) - position:  # each takes a byte at least
            raise Malformed(
                f"{field.name} has {length} elements, {len(buffer) - position} bytes are left"
            )
        elements = []
        for _ in range(length):
            element, position = one(buffer, position)
            elements.append(element)
        return tuple(elements), position

    return read


def _nullable_entity_reader(one: Reader) -> Reader:
    """A struct that may be null follows a byte: 1 if it is there, -1 if not (KIP-893)."""

    def read(buffer: bytes, position: int) -> tuple[Any, int]:
        (marker,) = _INT8.unpack_from(buffer, position)
        if marker < 0:
            return None, position + 1
        return one(buffer, position + 1)

    return read
