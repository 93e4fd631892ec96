"""Long arrays of small structs: what fills a large answer about partitions.

A struct that is a run of numbers followed by arrays of numbers, such as a partition in Metadata
with its replicas and ISR, is written with two look-ups and one pack. The arrays repeat from
partition to partition, so that their bytes are kept: 10,000 partitions take a fifth of the time of
the general writer, which must not stop an event loop for as long as an election waits.

Which structs these are follows from the layout, for every version; all others return None here.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from struct import Struct
from typing import Any

from wire.schema import FIXED_FORMATS, EntityLayout, FieldLayout
from wire.varint import uvarint

__all__ = ["RowsWriter", "rows_writer"]

_TAILS_KEPT = 1 << 14  # combinations of replicas, ISR and so on, for each place that has them
_INT32 = Struct(">i")

# Appends the elements of an array, not its length.
RowsWriter = Callable[[bytearray, Sequence[Any]], None]
_Tail = Callable[[Any], bytes]


def rows_writer(layout: EntityLayout, is_plain: Callable[[FieldLayout], bool]) -> RowsWriter | None:
    """A writer for arrays of this struct, if it has that shape and only plain attributes."""
    if layout.tagged or not all(is_plain(field) for field in layout.fields):
        return None
    groups = [(is_fixed, list(group)) for is_fixed, group in groupby(layout.fields, _is_fixed)]
    match groups:
        case [(True, numbers)] if len(numbers) > 1:
            return _number_rows(numbers, layout.flexible)
        case [(True, numbers), (False, arrays)] if len(numbers) > 1 and len(arrays) > 1:
            if all(_is_array_of_numbers(field) for field in arrays):
                return _number_and_array_rows(numbers, arrays, layout.flexible)
    return None


def _is_fixed(field: FieldLayout) -> bool:
    return field.fixed_format is not None


def _is_array_of_numbers(field: FieldLayout) -> bool:
    return field.is_array and field.kind in FIXED_FORMATS


def _number_rows(numbers: list[FieldLayout], flexible: bool) -> RowsWriter:
    values_of = attrgetter(*(field.name for field in numbers))
    pack = Struct(_format_of(numbers) + ("x" if flexible else "")).pack  # x: no tagged fields

    def write(out: bytearray, elements: Sequence[Any]) -> None:
        for element in elements:
            out += pack(*values_of(element))

    return write


def _number_and_array_rows(
    numbers: list[FieldLayout], arrays: list[FieldLayout], flexible: bool
) -> RowsWriter:
    values_of = attrgetter(*(field.name for field in numbers))
    arrays_of = attrgetter(*(field.name for field in arrays))
    pack = Struct(_format_of(numbers)).pack
    tail_of = _tail_writer(arrays, flexible)

    def write(out: bytearray, elements: Sequence[Any]) -> None:
        for element in elements:
            out += pack(*values_of(element))
            out += tail_of(arrays_of(element))

    return write


def _format_of(numbers: list[FieldLayout]) -> str:
    return ">" + "".join(field.fixed_format or "" for field in numbers)


def _tail_writer(arrays: list[FieldLayout], flexible: bool) -> _Tail:
    end = b"\0" if flexible else b""

    @lru_cache(maxsize=_TAILS_KEPT)
    def tail(values: tuple[tuple[int, ...] | None, ...]) -> bytes:
        written = (
            _array_bytes(field, flexible, elements)
            for field, elements in zip(arrays, values, strict=True)
        )
        return b"".join((*written, end))

    return tail


def _array_bytes(field: FieldLayout, flexible: bool, elements: tuple[int, ...] | None) -> bytes:
    if elements is None and field.nullable:
        return b"\0" if flexible else b"\xff\xff\xff\xff"
    elements = elements or ()
    length = uvarint(len(elements) + 1) if flexible else _INT32.pack(len(elements))
    return length + Struct(f">{len(elements)}{FIXED_FORMATS[field.kind]}").pack(*elements)
