"""Records, declared once as annotated messages: the layout of each version follows from them.

A field's annotation is its row in Kafka's schema: the type, the version that brought it (`Since`),
and its number if it is a tagged field (`Tag`). Order of declaration is order on the wire, `| None`
is nullable, `tuple[X, ...]` an array, a message a nested struct:

    log_dirs: Annotated[tuple[Uuid, ...], Since(3), Tag(0)] = ()

The default is what a reader takes where the field is absent, and what a tagged field is not
written for. A version that lacks a field refuses to write anything but its default.

Source: KIP-482 (flexible versions, tagged fields).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, TypeVar
from uuid import UUID

from wire.layout import EntityLayout, FieldLayout
from wire.message import REQUIRED, Message, element_type, fields_of, is_array, is_nullable, replace
from wire.reader_source import compiled_reader
from wire.reading import UnknownTag
from wire.rules import NOTHING_IS_LOST, NOTHING_IS_SKIPPED
from wire.varint import Malformed
from wire.writer_source import compiled_writer
from wire.writing import Sink

__all__ = [
    "Bool",
    "Bytes",
    "Float64",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Since",
    "String",
    "Tag",
    "UInt16",
    "UnknownRecord",
    "Uuid",
    "carries",
    "decode_struct",
    "encode_struct",
    "record_layout",
    "reduced",
    "shown_fields",
    "struct_decoder",
    "struct_encoder",
]


class UnknownRecord(Malformed):
    """A record key or version that this release does not know.

    The log says something that cannot be skipped: whoever applies it must know that he lacks it.
    """

    kind: type | None = None  # what record it is, if no more than the version is unknown


_Struct = TypeVar("_Struct", bound=Message)


@dataclass(frozen=True, slots=True)
class Since:
    """The first version that has the field."""

    version: int


@dataclass(frozen=True, slots=True)
class Tag:
    number: int


@dataclass(frozen=True, slots=True)
class Kind:
    """A primitive type, by its name in `wire.layout`."""

    name: str


Bool = Annotated[bool, Kind("bool")]
Int8 = Annotated[int, Kind("int8")]
Int16 = Annotated[int, Kind("int16")]
UInt16 = Annotated[int, Kind("uint16")]
Int32 = Annotated[int, Kind("int32")]
Int64 = Annotated[int, Kind("int64")]
Float64 = Annotated[float, Kind("float64")]
Uuid = Annotated[UUID, Kind("uuid")]
String = Annotated[str, Kind("string")]
Bytes = Annotated[bytes, Kind("bytes")]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    name: str
    hint: Any
    since: int
    tag: int | None
    default: Any  # REQUIRED if the field is on the wire in every version


@cache
def _declared(struct_type: type) -> tuple[_Field, ...]:
    found = []
    for field in fields_of(struct_type).values():
        marks = getattr(field.type, "__metadata__", ())
        since = next((mark.version for mark in marks if isinstance(mark, Since)), 0)
        tag = next((mark.number for mark in marks if isinstance(mark, Tag)), None)
        assert field.default is not REQUIRED or (since == 0 and tag is None), (struct_type, field)
        found.append(
            _Field(name=field.name, hint=field.type, since=since, tag=tag, default=field.default)
        )
    return tuple(found)


def carries(version: int, value: Message) -> bool:
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


def reduced(version: int, value: _Struct) -> _Struct:
    """`value` without what `version` has no field for. Looks at no nested struct."""
    declared = _declared(value.__class__)
    lost = {field.name: field.default for field in declared if field.since > version}
    return replace(value, **lost) if lost else value


@cache
def record_layout(struct_type: type, version: int) -> EntityLayout:
    """The layout of one version of a record, or of a struct in one."""
    known = [field for field in _declared(struct_type) if field.since <= version]
    tagged = sorted((field.tag, field) for field in known if field.tag is not None)
    return EntityLayout(
        name=struct_type.__name__,
        version=version,
        flexible=True,
        fields=tuple(_field_layout(field, version) for field in known if field.tag is None),
        tagged=tuple(_field_layout(field, version) for _, field in tagged),
    )


def _field_layout(field: _Field, version: int) -> FieldLayout:
    element = element_type(field.hint)
    marks = getattr(element, "__metadata__", ())
    kind = next((mark.name for mark in marks if isinstance(mark, Kind)), "entity")
    return FieldLayout(
        name=field.name,
        kind=kind,
        entity=record_layout(element, version) if kind == "entity" else None,
        is_array=is_array(field.hint),
        nullable=is_nullable(field.hint),
        tag=field.tag,
        default=field.default,
    )


def encode_struct(value: Message, version: int) -> bytes:
    """Raises CannotExpress if `version` lacks a field that `value`, or a struct in it, uses."""
    return struct_encoder(value.__class__, version)(value)


@cache
def struct_encoder(
    struct_type: type[Message], version: int, head: bytes = b""
) -> Callable[[Any], bytes]:
    """A function that writes `head`, and a struct of this type and version behind it.

    It raises CannotExpress if `version` lacks a field that the struct, or one in it, uses.
    """
    write = compiled_writer(record_layout(struct_type, version), struct_type, NOTHING_IS_LOST)

    def encode(value: Any) -> bytes:
        out = Sink(head)
        write(out, value)
        return bytes(out)

    return encode


def decode_struct(
    struct_type: type[_Struct], version: int, buffer: bytes, position: int = 0
) -> _Struct:
    """The struct that fills `buffer` from `position` to its end. Raises Malformed."""
    value = struct_decoder(struct_type, version)(buffer, position)
    assert isinstance(value, struct_type), type(value)
    return value


@cache
def struct_decoder(
    struct_type: type[Message], version: int, *, skips_unknown_tags: bool = True
) -> Callable[[bytes, int], Any]:
    """`decode_struct` of one type and version, for those who read many.

    One that does not skip them raises UnknownTag for tagged fields that it does not know.
    """
    rules = NOTHING_IS_LOST if skips_unknown_tags else NOTHING_IS_SKIPPED
    read = compiled_reader(record_layout(struct_type, version), struct_type, rules)

    def decode(buffer: bytes, position: int) -> Any:
        try:
            value, end = read(buffer, position)
        except UnknownTag:
            raise
        except Malformed as error:
            raise Malformed(f"{struct_type.__name__} version {version}: {error}") from error
        if end != len(buffer):
            raise Malformed(f"{len(buffer) - end} bytes behind a {struct_type.__name__}")
        return value

    return decode
