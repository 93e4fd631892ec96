"""Which value of a message does not fit: the slow way, for the error that a writer raises."""

from collections.abc import Iterator
from struct import error as struct_error
from struct import pack
from typing import Any
from uuid import UUID

from wire.layout import FIXED_FORMATS, STRING_BYTES_MAX, EntityLayout, FieldLayout
from wire.rules import Rules

__all__ = ["misfit"]


def misfit(message: Any, layout: EntityLayout, rules: Rules) -> str:
    """For example "topics[0].partition is 2147483648, not an int32"."""
    found = next(_in_entity(message, layout, rules, ""), "a value is of another type")
    return f"{layout.name} version {layout.version}: {found}"


def _in_entity(value: Any, layout: EntityLayout, rules: Rules, path: str) -> Iterator[str]:
    for field in layout.fields + layout.tagged:
        source = rules.source(layout.name, field.name)
        if source is None and not hasattr(value, field.name):
            continue
        one = source(value) if source is not None else getattr(value, field.name)
        if one is not None or field.kind in FIXED_FORMATS:
            yield from _in_field(one, field, rules, f"{path}{field.name}")


def _in_field(value: Any, field: FieldLayout, rules: Rules, path: str) -> Iterator[str]:
    if not field.is_array:
        yield from _in_element(value, field, rules, path)
        return
    if not isinstance(value, tuple | list):
        yield f"{path} is {value!r}, not an array"
        return
    for index, element in enumerate(value):
        yield from _in_element(element, field, rules, f"{path}[{index}]")


def _in_element(value: Any, field: FieldLayout, rules: Rules, path: str) -> Iterator[str]:
    if field.entity is not None:
        yield from _in_entity(value, field.entity, rules, f"{path}.")
    elif field.kind == "string" and isinstance(value, str):
        size = len(value.encode(errors="replace"))
        if size > STRING_BYTES_MAX:
            yield f"{path} has {size} bytes, above {STRING_BYTES_MAX}"
    elif not _fits(value, field.kind):
        yield f"{path} is {value!r}, not of type {field.kind}"


def _fits(value: Any, kind: str) -> bool:
    if kind in FIXED_FORMATS:
        try:
            pack(">" + FIXED_FORMATS[kind], value)
        except struct_error:
            return False
        return True
    return isinstance(value, {"uuid": UUID, "string": str}.get(kind, bytes))
