"""Bytes to canonical messages: a reader is compiled once for a layout and a canonical class.

Fields are matched by name. A field that the layout has and the class lacks is read and dropped; one
that the class has and the layout lacks takes its default. What Kafka accepts is accepted: unknown
tagged fields are skipped (KIP-482), unknown error codes become UNKNOWN_SERVER_ERROR. Nothing is
allocated on the word of a length that the bytes left could not hold.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import lru_cache
from itertools import groupby
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
_Store = Callable[[Any, Any], None]  # gives a field of a message, or of a dict, its value
_Step = Callable[[bytes, int, Any], int]

_ERROR_CODES = {code.value: code for code in ErrorCode}
_ELEMENTS_MAX = 1_000_000  # of an array: more would stop an event loop for seconds
_STRING_BYTES_MAX = 0x7FFF  # in all versions: what came in one must go into any other
_INT8 = Struct(">b")
_INT16 = Struct(">h")
_INT32 = Struct(">i")


def read_message(reader: Reader, buffer: bytes, position: int) -> Any:
    """Read one message. Raises Malformed if it is not whole.

    Bytes behind it are ignored, as Kafka does: librdkafka's Metadata 13 has three of them.
    """
    try:
        message, end = reader(buffer, position)
    except (struct_error, IndexError) as error:
        raise Malformed(f"the message ends early, after {len(buffer)} bytes") from error
    except UnicodeDecodeError as error:
        raise Malformed(f"a string is not UTF-8: {error.reason}") from error
    if end > len(buffer):
        raise Malformed(f"the message ends early, after {len(buffer)} bytes")
    return message


def entity_reader(layout: EntityLayout, canonical: Any, rules: Rules) -> Reader:
    """A reader of `canonical`, or of a dict to be dropped."""
    adjust = rules.adjust(layout.name)
    if adjust is not None or canonical is dict:
        return _dict_reader(layout, canonical, rules)
    known = {field.name: field for field in fields(canonical)}
    slots: dict[str, _Store] = {name: getattr(canonical, name).__set__ for name in known}

    def store_of(field: FieldLayout) -> _Store:
        return slots.get(field.name, _drop)

    steps, tagged = _compile(layout, known, rules, store_of)
    read_fields = {field.name for field in layout.fields}
    defaults = tuple(
        (slots[name], _default_of(field))
        for name, field in known.items()
        if name not in read_fields
    )
    flexible = layout.flexible
    new = canonical.__new__

    def read(buffer: bytes, position: int) -> tuple[Any, int]:
        # A frozen class assigns to its slots in its __init__ too; here without the arguments.
        message = new(canonical)
        for store, default in defaults:
            store(message, default)
        for step in steps:
            position = step(buffer, position, message)
        if flexible:
            position = _read_tagged_fields(buffer, position, tagged, message)
        return message, position

    return read


def _dict_reader(layout: EntityLayout, canonical: Any, rules: Rules) -> Reader:
    """A reader that goes through a dict, for the few entities that are adjusted or dropped."""
    known = {} if canonical is dict else {field.name: field for field in fields(canonical)}
    adjust = rules.adjust(layout.name)
    steps, tagged = _compile(layout, known, rules, _item_store)
    lacking = {field.name for field in layout.fields + layout.tagged} - known.keys()

    def read(buffer: bytes, position: int) -> tuple[Any, int]:
        values: dict[str, Any] = {}
        for step in steps:
            position = step(buffer, position, values)
        if layout.flexible:
            position = _read_tagged_fields(buffer, position, tagged, values)
        if adjust is not None:
            adjust(values)
        for name in lacking:
            values.pop(name, None)
        return canonical(**values), position

    return read


def _default_of(field: Any) -> Any:
    assert field.default is not MISSING, f"{field.name} is not in every version: it needs a default"
    return field.default


def _drop(target: Any, value: Any) -> None:
    """For a field that the canonical class lacks."""


def _item_store(field: FieldLayout) -> _Store:
    name = field.name

    def store(target: Any, value: Any) -> None:
        target[name] = value

    return store


def _compile(
    layout: EntityLayout,
    known: Mapping[str, Any],
    rules: Rules,
    store_of: Callable[[FieldLayout], _Store],
) -> tuple[tuple[_Step, ...], dict[int, tuple[_Store, Reader]]]:
    """The steps of an entity, and its tagged fields by their tags."""

    def reader_of(field: FieldLayout) -> Reader:
        element = rules.element(layout.name, field.name) or dict
        if field.name in known:
            element = element_type(known[field.name].type)
        return _field_reader(field, layout.flexible, element, rules)

    tagged = {field.tag or 0: (store_of(field), reader_of(field)) for field in layout.tagged}
    return _steps(layout, reader_of, store_of), tagged


def _steps(
    layout: EntityLayout,
    reader_of: Callable[[FieldLayout], Reader],
    store_of: Callable[[FieldLayout], _Store],
) -> tuple[_Step, ...]:
    """Neighbours of fixed size are unpacked together; every other field is a step of its own."""
    steps: list[_Step] = []
    for is_run, group in groupby(layout.fields, lambda field: field.fixed_format is not None):
        run = list(group)
        if is_run:
            steps.append(_run_step(run, store_of))
        else:
            steps += [_field_step(store_of(field), reader_of(field)) for field in run]
    return tuple(steps)


def _run_step(run: list[FieldLayout], store_of: Callable[[FieldLayout], _Store]) -> _Step:
    layout = Struct(">" + "".join(field.fixed_format or "" for field in run))
    unpack_from, size = layout.unpack_from, layout.size
    stores = tuple(
        _error_store(store_of(field)) if field.kind == "error_code" else store_of(field)
        for field in run
    )

    def step(buffer: bytes, position: int, target: Any) -> int:
        for store, value in zip(stores, unpack_from(buffer, position), strict=True):
            store(target, value)
        return position + size

    return step


def _error_store(store: _Store) -> _Store:
    def store_error(target: Any, code: int) -> None:
        store(target, _ERROR_CODES.get(code, ErrorCode.UNKNOWN_SERVER_ERROR))

    return store_error


def _field_step(store: _Store, reader: Reader) -> _Step:
    def step(buffer: bytes, position: int, target: Any) -> int:
        value, position = reader(buffer, position)
        store(target, value)
        return position

    return step


def _read_tagged_fields(
    buffer: bytes, position: int, tagged: dict[int, tuple[_Store, Reader]], target: Any
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
            store, reader = tagged[tag]
            value, read_to = reader(buffer, position)
            store(target, value)
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
        if is_text and length > _STRING_BYTES_MAX:
            raise Malformed(f"{field.name} has {length} bytes, above {_STRING_BYTES_MAX}")
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
        if length > _ELEMENTS_MAX:
            raise Malformed(f"{field.name} has {length} elements, above {_ELEMENTS_MAX}")
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
