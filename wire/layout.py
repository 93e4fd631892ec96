"""What the bytes of a message or a record are: its fields, in their order, with their types.

One notion for both. `wire.schema` makes layouts of Kafka's requests and responses, and
`wire.record_schema` of the records of the metadata log; `wire.reader_source` and
`wire.writer_source` make codecs from them.

Source: KIP-482 (flexible versions, tagged fields).
"""

from dataclasses import dataclass
from struct import calcsize
from typing import Any

__all__ = [
    "ELEMENTS_MAX",
    "FIXED_FORMATS",
    "STRING_BYTES_MAX",
    "EntityLayout",
    "FieldLayout",
    "element_size_min",
]

# struct formats of the types that have one size; uuids have one too, the others a length
FIXED_FORMATS = {
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "float64": "d",
    "bool": "?",
    "error_code": "h",
    "timedelta_i32": "i",
    "timedelta_i64": "q",
    "datetime_i64": "q",
}
ELEMENTS_MAX = 1_000_000  # of an array: more would stop an event loop for seconds
STRING_BYTES_MAX = 0x7FFF  # in all versions: what came in one must go into any other


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldLayout:
    """One field. `name` is the canonical one: kio's, and `_ms` behind it if it is a time."""

    name: str
    kind: str  # a Kafka type, or "entity"
    entity: "EntityLayout | None"  # of the field, or of the elements of an array
    is_array: bool
    nullable: bool
    tag: int | None
    default: Any  # in canonical form; of a field that the canonical message lacks, what is sent

    @property
    def is_sized(self) -> bool:
        """Is a value, or an element, a length and so many bytes?"""
        return self.kind in ("string", "bytes", "records")

    @property
    def has_null(self) -> bool:
        """Is there a way to say that the value is null?"""
        return self.nullable and (self.is_array or self.is_sized or self.has_marker)

    @property
    def has_marker(self) -> bool:
        """Does a byte before the struct say whether it is there (KIP-893)?"""
        return self.entity is not None and self.nullable and not self.is_array and self.tag is None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityLayout:
    """A message or a struct within one. Tagged fields come last, in the order of their tags."""

    name: str
    version: int
    flexible: bool
    fields: tuple[FieldLayout, ...]
    tagged: tuple[FieldLayout, ...]

    @property
    def size_min(self) -> int:
        """How many bytes a value takes at least."""
        return sum(map(_size_min, self.fields)) + self.flexible


def _size_min(field: FieldLayout) -> int:
    if field.is_array or field.is_sized or field.has_marker:
        return 1
    return element_size_min(field)


def element_size_min(field: FieldLayout) -> int:
    """How many bytes an element of the field takes at least, or the field if it is no array."""
    if field.entity is not None:
        return field.entity.size_min
    if field.kind == "uuid":
        return 16
    return 1 if field.is_sized else calcsize(">" + FIXED_FORMATS[field.kind])
