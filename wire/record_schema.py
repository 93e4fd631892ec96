"""Flexible structs, declared once as dataclasses: the codec follows from the annotations.

A field's annotation is its row in Kafka's schema: the type, the version that brought it (`Since`),
and its number if it is a tagged field (`Tag`). Order of declaration is order on the wire, `| None`
is nullable, `tuple[X, ...]` an array, a dataclass a nested struct:

    log_dirs: Annotated[tuple[Uuid, ...], Since(3), Tag(0)] = ()

The default is what a reader takes where the field is absent, and what a tagged field is not
written for. A version that lacks a field refuses to write anything but its default.

Readers are tolerant where KIP-482 wants it: unknown tagged fields are skipped. Anything else that
does not fit raises `Malformed`. Codecs are compiled once per type and version.

Source: KIP-482 (flexible versions, tagged fields).
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from wire.varint import Malformed, read_uvarint, uvarint

__all__ = [
    "Bool",
    "Bytes",
    "Float64",
    "Int16",
    "Int32",
    "Int64",
    "Int8",
    "Since",
    "String",
    "Tag",
    "UInt16",
    "Uuid",
    "UnknownRecord",
    "carries",
    "decode_struct",
    "encode_struct",
    "reduced",
    "shown_fields",
    "walk",
]


class UnknownRecord(Malformed):
    """A record key or version that this release does not know.

    The log says something that cannot be skipped: whoever applies it must stop.
    """


# A reader takes the bytes and a position, and returns the value and the position behind it.
# A writer appends the value to the bytes.
_Reader = Callable[[bytes, int], tuple[Any, int]]
_Writer = Callable[[bytearray, Any], object]
_Codec = tuple[_Reader, _Writer]

_Struct = TypeVar("_Struct")


@dataclass(frozen=True, slots=True)
class Since:
    """The first version that has the field."""

    version: int


@dataclass(frozen=True, slots=True)
class Tag:
    number: int


@dataclass(frozen=True, slots=True)
class _Kind:
    """How values of a primitive type are written; the second codec is for nullable fields."""

    codec: _Codec
    nullable: _Codec | None = None


# --- primitive types ------------------------------------------------------------------------


def _fixed(code: str) -> _Kind:
    layout = struct.Struct(code)
    unpack, pack, size = layout.unpack_from, layout.pack, layout.size

    def read(buffer: bytes, position: int) -> tuple[Any, int]:
        return unpack(buffer, position)[0], position + size

    def write(out: bytearray, value: Any) -> None:
        out += pack(value)

    return _Kind((read, write))


def _uuid() -> _Kind:
    def read(buffer: bytes, position: int) -> tuple[UUID, int]:
        end = position + 16
        if end > len(buffer):
            raise Malformed(f"the bytes end within a uuid, at {position}")
        return UUID(bytes=buffer[position:end]), end

    def write(out: bytearray, value: UUID) -> None:
        out += value.bytes

    return _Kind((read, write))


def _prefixed(decode: Callable[[bytes], Any], encode: Callable[[Any], bytes]) -> _Kind:
    """Bytes behind their length + 1; a length of 0 is null."""

    def read_nullable(buffer: bytes, position: int) -> tuple[Any, int]:
        length, position = read_uvarint(buffer, position)
        if length == 0:
            return None, position
        end = position + length - 1
        if end > len(buffer):
            raise Malformed(f"{length - 1} bytes at {position}, of {len(buffer)}")
        return decode(buffer[position:end]), end

    def write(out: bytearray, value: Any) -> None:
        encoded = encode(value)
        out += uvarint(len(encoded) + 1)
        out += encoded

    return _Kind((_never_null(read_nullable), write), (read_nullable, _or_null(write)))


def _never_null(read_nullable: _Reader) -> _Reader:
    def read(buffer: bytes, position: int) -> tuple[Any, int]:
        value, end = read_nullable(buffer, position)
        if value is None:
            raise Malformed(f"null at {position}, where no null may be")
        return value, end

    return read


def _or_null(write: _Writer) -> _Writer:
    def write_nullable(out: bytearray, value: Any) -> None:
        if value is None:
            out.append(0)
        else:
            write(out, value)

    return write_nullable


def _same(value: bytes) -> bytes:
    return value


Bool = Annotated[bool, _fixed(">?")]
Int8 = Annotated[int, _fixed(">b")]
Int16 = Annotated[int, _fixed(">h")]
UInt16 = Annotated[int, _fixed(">H")]
Int32 = Annotated[int, _fixed(">i")]
Int64 = Annotated[int, _fixed(">q")]
Float64 = Annotated[float, _fixed(">d")]
Uuid = Annotated[UUID, _uuid()]
String = Annotated[str, _prefixed(bytes.decode, str.encode)]
Bytes = Annotated[bytes, _prefixed(_same, _same)]


# --- declarations ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    name: str
    hint: Any
    since: int
    tag: int | None
    default: Any  # MISSING if the field is on the wire in every version


@cache
def _declared(struct_type: type) -> tuple[_Field, ...]:
    hints = get_type_hints(struct_type, include_extras=True)
    found = []
    for field in fields(struct_type):
        marks = getattr(hints[field.name], "__metadata__", ())
        since = next((mark.version for mark in marks if isinstance(mark, Since)), 0)
        tag = next((mark.number for mark in marks if isinstance(mark, Tag)), None)
        assert field.default is not MISSING or (since == 0 and tag is None), (struct_type, field)
        found.append(
            _Field(
                name=field.name,
                hint=hints[field.name],
                since=since,
                tag=tag,
                default=field.default,
            )
        )
    return tuple(found)


def carries(version: int, value: Any) -> bool:
    """Does `version` have a field for everything that `value` says? Looks at no nested struct."""
    return all(
        field.since <= version or getattr(value, field.name) == field.default
        for field in _declared(value.__class__)
    )


@cache
def shown_fields(struct_type: type, version: int) -> tuple[tuple[str, bool, Any], ...]:
    """The fields of a version, in their order on the wire: name, is it tagged, default."""
    return tuple(
        (field.name, field.tag is not None, field.default)
        for field in _declared(struct_type)
        if field.since <= version
    )


def reduced(version: int, value: Any) -> Any:
    """`value` without what `version` has no field for. Looks at no nested struct."""
    declared = _declared(value.__class__)
    lost = {field.name: field.default for field in declared if field.since > version}
    return replace(value, **lost) if lost else value


# --- compiling ------------------------------------------------------------------------------


def _codec(hint: Any, version: int, *, nullable: bool = False) -> _Codec:
    for mark in getattr(hint, "__metadata__", ()):
        if isinstance(mark, _Kind):
            assert not nullable or mark.nullable is not None, hint
            return mark.nullable if nullable and mark.nullable is not None else mark.codec
    plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    origin = get_origin(plain)
    if origin in (Union, UnionType):
        (inner,) = (arm for arm in get_args(plain) if arm is not NoneType)
        return _codec(inner, version, nullable=True)
    if origin is tuple:
        return _array(_codec(get_args(plain)[0], version), nullable=nullable)
    assert not nullable, hint
    return _struct_codec(plain, version)


def _array(item: _Codec, *, nullable: bool) -> _Codec:
    """Items behind their count + 1; a count of 0 is null."""
    read_item, write_item = item

    def read_nullable(buffer: bytes, position: int) -> tuple[tuple[Any, ...] | None, int]:
        count, position = read_uvarint(buffer, position)
        if count == 0:
            return None, position
        if count - 1 > len(buffer) - position:  # an item has at least one byte
            raise Malformed(f"{count - 1} items at {position}, in {len(buffer)} bytes")
        items = []
        for _ in range(count - 1):
            value, position = read_item(buffer, position)
            items.append(value)
        return tuple(items), position

    def write(out: bytearray, value: tuple[Any, ...]) -> None:
        out += uvarint(len(value) + 1)
        for element in value:
            write_item(out, element)

    if nullable:
        return read_nullable, _or_null(write)
    return _never_null(read_nullable), write


@cache
def _struct_codec(struct_type: type, version: int) -> _Codec:
    known = [field for field in _declared(struct_type) if field.since <= version]
    plain = [field for field in known if field.tag is None]
    tagged = sorted((field.tag, field) for field in known if field.tag is not None)
    codecs = {field.name: _codec(field.hint, version) for field in known}
    read = _struct_reader(
        struct_type,
        plain=[(field.name, codecs[field.name][0]) for field in plain],
        tagged={tag: (field.name, codecs[field.name][0]) for tag, field in tagged},
    )
    write = _struct_writer(
        plain=[(field.name, codecs[field.name][1]) for field in plain],
        tagged=[
            (uvarint(tag), field.name, field.default, codecs[field.name][1])
            for tag, field in tagged
        ],
        absent=[
            (field.name, field.default, version)
            for field in _declared(struct_type)
            if field.since > version
        ],
    )
    return read, write


def _struct_reader(
    struct_type: type, *, plain: list[tuple[str, _Reader]], tagged: dict[int, tuple[str, _Reader]]
) -> _Reader:
    def read(buffer: bytes, position: int) -> tuple[Any, int]:
        values: dict[str, Any] = {}
        for name, read_field in plain:
            values[name], position = read_field(buffer, position)
        count, position = read_uvarint(buffer, position)
        for _ in range(count):
            tag, position = read_uvarint(buffer, position)
            size, position = read_uvarint(buffer, position)
            end = position + size
            if end > len(buffer):
                raise Malformed(f"tag {tag} has {size} bytes at {position}, of {len(buffer)}")
            if tag in tagged:
                name, read_field = tagged[tag]
                values[name], position = read_field(buffer, position)
                if position != end:
                    raise Malformed(f"{name} ends at {position}, its tag at {end}")
            position = end
        return struct_type(**values), position

    return read


def _struct_writer(
    *,
    plain: list[tuple[str, _Writer]],
    tagged: list[tuple[bytes, str, Any, _Writer]],
    absent: list[tuple[str, Any, int]],
) -> _Writer:
    def write(out: bytearray, value: Any) -> None:
        for name, default, version in absent:
            if getattr(value, name) != default:
                raise ValueError(f"{type(value).__name__} version {version} has no {name}")
        for name, write_field in plain:
            write_field(out, getattr(value, name))
        section = bytearray()
        count = 0
        for tag, name, default, write_field in tagged:
            field_value = getattr(value, name)
            if field_value != default:
                body = bytearray()
                write_field(body, field_value)
                section += tag + uvarint(len(body)) + body
                count += 1
        out += uvarint(count)
        out += section

    return write


# --- walking --------------------------------------------------------------------------------

_Step = tuple[int, int, str, Any]  # start, end (exclusive), name, value


def walk(struct_type: type, version: int, buffer: bytes, position: int) -> Iterator[_Step]:
    """Where each value lies, down to lengths and tags. Raises Malformed where bytes do not fit."""
    known = [field for field in _declared(struct_type) if field.since <= version]
    for field in known:
        if field.tag is None:
            for step in _walk_value(field.name, field.hint, version, buffer, position):
                position = step[1]
                yield step
    by_tag = {field.tag: field for field in known if field.tag is not None}
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
            yield from _walk_value(tagged.name, tagged.hint, version, buffer, position)


def _walk_value(
    name: str, hint: Any, version: int, buffer: bytes, position: int
) -> Iterator[_Step]:
    part, is_array = _part_of(hint)
    if part is None:
        try:
            value, end = _codec(hint, version)[0](buffer, position)
        except (struct.error, UnicodeDecodeError) as error:
            raise Malformed(f"{name}: {error}") from error
        yield position, end, name, value
    elif is_array:
        count, end = read_uvarint(buffer, position)
        yield position, end, f"{name} count", count - 1 if count else "null"
        for index in range(count - 1):
            for step in _walk_value(f"{name}[{index}]", part, version, buffer, end):
                end = step[1]
                yield step
    else:
        for start, end, inner, value in walk(part, version, buffer, position):
            yield start, end, f"{name}.{inner}", value


def _part_of(hint: Any) -> tuple[Any, bool]:
    """What a value consists of, and is it an array of that? None for a primitive one."""
    marks = getattr(hint, "__metadata__", ())
    if any(isinstance(mark, _Kind) for mark in marks):
        return None, False
    plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    origin = get_origin(plain)
    if origin in (Union, UnionType):
        return _part_of(next(arm for arm in get_args(plain) if arm is not NoneType))
    if origin is tuple:
        return get_args(plain)[0], True
    return plain, False


# --- the entry points -----------------------------------------------------------------------


def encode_struct(value: Any, version: int) -> bytes:
    """Raises ValueError if `version` lacks a field that `value`, or a struct in it, uses."""
    out = bytearray()
    _struct_codec(value.__class__, version)[1](out, value)
    return bytes(out)


def decode_struct(
    struct_type: type[_Struct], version: int, buffer: bytes, position: int = 0
) -> _Struct:
    """The struct that fills `buffer` from `position` to its end."""
    key: Any = struct_type  # mypy takes a type variable for unhashable
    read, _ = _struct_codec(key, version)
    try:
        value, end = read(buffer, position)
    except (struct.error, UnicodeDecodeError, Malformed) as error:
        raise Malformed(f"{struct_type.__name__} version {version}: {error}") from error
    if end != len(buffer):
        raise Malformed(f"{len(buffer) - end} bytes behind a {struct_type.__name__}")
    assert isinstance(value, struct_type), type(value)
    return value
