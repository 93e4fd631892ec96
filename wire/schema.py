"""The layout of a message on the wire, as kio's generated dataclasses describe it.

Kio is our source for names, order, types, versions and tags of every field. Its codecs are not
used: the native reader reserves memory for an array before it looks at the bytes that are left, so
that a frame of 14 bytes aborts the process; it also refuses tagged fields that it does not know,
error codes newer than itself, and times after the year 9999. Codecs of canonical messages are
compiled from these layouts instead, and tests hold them to kio's bytes.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from datetime import timedelta
from functools import cache
from importlib import import_module
from typing import Any

from wire.api_table import camel_case
from wire.layout import EntityLayout, FieldLayout
from wire.message import element_type, is_array, is_nullable
from wire.primitives import ZERO_UUID

__all__ = ["load_layout"]

_ZERO_OF = {"string": "", "bytes": b"", "records": b"", "bool": False, "uuid": ZERO_UUID}


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
        version=int(entity.__version__),  # type: ignore[attr-defined]  # kio sets these two
        flexible=entity.__flexible__,  # type: ignore[attr-defined]
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
    is_time = kind.startswith(("timedelta", "datetime"))
    return FieldLayout(
        name=f"{field.name}_ms" if is_time else field.name,
        kind=kind,
        entity=layout_of(element_type(field.type)) if kind == "entity" else None,
        is_array=is_array(field.type),
        nullable=is_nullable(field.type),
        tag=field.metadata.get("tag"),
        default=_default(kind, field.default, is_array=is_array(field.type)),
    )


def _default(kind: str, default: Any, *, is_array: bool) -> Any:
    """Kio's default in canonical form; where there is none, Kafka's: zero or empty."""
    if is_array:
        return () if default is MISSING else default
    if default is MISSING or (kind == "uuid" and default is None):
        return _ZERO_OF.get(kind, 0)
    if isinstance(default, timedelta):
        return round(default.total_seconds() * 1000)
    return default
