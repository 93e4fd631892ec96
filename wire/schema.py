"""The layout of a message on the wire, as kio's generated dataclasses describe it.

Kio is our source for names, order, types, versions and tags of every field. Its codecs are not
used: the native reader reserves memory for an array before it looks at the bytes that are left, so
that a frame of 14 bytes aborts the process; it also refuses tagged fields that it does not know,
error codes newer than itself, and times after the year 9999. `wire.reading` and `wire.writing`
compile these layouts to and from canonical messages instead, and tests hold them to kio's bytes.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import timedelta
from functools import cache
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from wire.api_table import camel_case
from wire.primitives import ZERO_UUID

__all__ = [
    "FIXED_FORMATS",
    "EntityLayout",
    "FieldLayout",
    "element_type",
    "layout_of",
    "load_layout",
]

# struct formats of the types that have one size; the others are read field by field
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
_ZERO_OF = {"string": "", "bytes": b"", "records": b"", "bool": False, "uuid": ZERO_UUID}


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
    def fixed_format(self) -> str | None:
        """The struct format, if a value always takes the same number of bytes."""
        if self.is_array or self.tag is not None:
            return None
        return FIXED_FORMATS.get(self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityLayout:
    """A message or a struct within one. Tagged fields come last, in the order of their tags."""

    name: str
    flexible: bool
    fields: tuple[FieldLayout, ...]
    tagged: tuple[FieldLayout, ...]


def load_layout(api: str, version: int, kind: str) -> EntityLayout:
    """The layout of an API's "request" or "response". Imports that version's module, no other.

    Raises ModuleNotFoundError if kio has no such version.
    """
    with _without_hypothesis():
        module = import_module(f"kio.schema.{api}.v{version}.{kind}")
    return layout_of(getattr(module, camel_case(api) + kind.title()))


@contextmanager
def _without_hypothesis() -> Iterator[None]:
    """Kio's types load hypothesis where it is installed: 0.2 s of every process that starts."""
    if "kio.static.primitive" in sys.modules or "hypothesis" in sys.modules:
        yield
        return
    sys.modules["hypothesis"] = None  # type: ignore[assignment]  # as if it were not installed
    try:
        yield
    finally:
        del sys.modules["hypothesis"]


@cache
def layout_of(entity: type) -> EntityLayout:
    """The layout that one of kio's dataclasses describes."""
    assert is_dataclass(entity), entity
    all_fields = [_field_layout(field) for field in fields(entity)]
    return EntityLayout(
        name=entity.__name__,
        flexible=entity.__flexible__,  # type: ignore[attr-defined]  # kio sets it on each entity
        fields=tuple(field for field in all_fields if field.tag is None),
        tagged=tuple(
            sorted(
                (field for field in all_fields if field.tag is not None),
                key=lambda field: field.tag or 0,
            )
        ),
    )


def _field_layout(field: Any) -> FieldLayout:
    kind = field.metadata.get("kafka_type", "entity")
    is_array = _array_type(field.type) is not None
    is_time = kind.startswith(("timedelta", "datetime"))
    element = element_type(field.type)
    return FieldLayout(
        name=f"{field.name}_ms" if is_time else field.name,
        kind=kind,
        entity=layout_of(element) if kind == "entity" else None,
        is_array=is_array,
        nullable=NoneType in _alternatives(field.type),
        tag=field.metadata.get("tag"),
        default=_array_default(field.default) if is_array else _default(kind, field.default),
    )


def _array_default(default: Any) -> Any:
    return () if default is MISSING else default


def _default(kind: str, default: Any) -> Any:
    """Kio's default in canonical form; where there is none, Kafka's: zero or empty."""
    if default is MISSING or (kind == "uuid" and default is None):
        return _ZERO_OF.get(kind, 0)
    if isinstance(default, timedelta):
        return round(default.total_seconds() * 1000)
    return default


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) is UnionType else (annotation,)


def _array_type(annotation: Any) -> Any | None:
    arrays = [option for option in _alternatives(annotation) if get_origin(option) is tuple]
    return arrays[0] if arrays else None


def element_type(annotation: Any) -> Any:
    """`X` of `X`, `X | None`, `tuple[X, ...]` and `tuple[X, ...] | None`."""
    array = _array_type(annotation)
    inner = annotation if array is None else get_args(array)[0]
    return next(option for option in _alternatives(inner) if option is not NoneType)
