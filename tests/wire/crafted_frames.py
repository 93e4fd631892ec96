"""Frames that take as much memory for each of their bytes as one can think of, for tests.

A value in Python has a size that does not shrink with the bytes that it came in: an array has eight
bytes for each element, a struct has a slot for each field, a short string has fifty bytes or more.
So a frame is costly if one of its arrays is filled with elements that are as short as can be. There
are four ways to fill it, and which costs most depends on the element. `FACTORS` has what they cost
at most: "Memory for a frame" in docs/decisions.md says why it is not less.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from struct import pack

from wire.layout import EntityLayout, FieldLayout, element_size_min

__all__ = ["FILLINGS", "MESSAGE_BYTES", "Filling", "crafted_frames", "factor_allowed"]

# Bytes of memory for a byte of a frame beyond `MESSAGE_BYTES`, by what the elements are.
FACTORS = {"string": 32.0, "entity": 32.0, "int32": 10.0, "int64": 6.0, "int8": 8.0, "uuid": 18.5}
# Elements that are read as one thing and kept as another are there twice for a moment.
CONVERTED = {
    "topic_names": 52.0,
    "topics.partitions.new_isr": 20.5,
    "topics.partitions.preferred_successors": 20.5,
}
MESSAGE_BYTES = 2048  # of what is around the array: a message's struct, for one

_TEXT = "Ā"  # a string of one character is kept by Python, if that is in Latin-1
_NUMBER = 0x41  # in each byte, so that no integer is one of those that Python keeps
_ID = b"in place of ids."


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    has_text: bool  # are strings short, or empty?
    is_nested: bool  # has an array within an element one element, or none?


FILLINGS = [
    Filling(has_text=has_text, is_nested=is_nested)
    for has_text, is_nested in product([False, True], repeat=2)
]


def factor_allowed(path: str, field: FieldLayout) -> float:
    """How many times its bytes a frame may take that is full of the array at this path."""
    return CONVERTED.get(path, FACTORS[field.kind])


def crafted_frames(
    layout: EntityLayout, size: int, fillings: Sequence[Filling]
) -> Iterator[tuple[str, FieldLayout, bytes]]:
    """For each array in the message, at any depth: its path, its field, and a frame full of it."""
    for path in _arrays(layout, ()):
        name = ".".join(field.name for field in path)
        for filling in fillings:
            yield name, path[-1], _with_ids(_Maker(filling, path, size).entity(layout))


def _with_ids(frame: bytes) -> bytes:
    """Each id another one: a reader keeps those that it has read."""
    pieces = frame.split(_ID)
    ids = (number.to_bytes(16) for number in range(1 << 64, (1 << 64) + len(pieces)))
    return b"".join(piece + id_ for piece, id_ in zip(pieces, ids, strict=True))[:-16]


def _arrays(
    layout: EntityLayout, outer: tuple[FieldLayout, ...]
) -> Iterator[tuple[FieldLayout, ...]]:
    for field in layout.fields + layout.tagged:
        path = (*outer, field)
        if field.is_array:
            yield path
        if field.entity is not None:
            yield from _arrays(field.entity, path)


class _Maker:
    """Everything beside the path is as short as can be."""

    def __init__(self, filling: Filling, path: tuple[FieldLayout, ...], size: int) -> None:
        self._filling = filling
        self._path = path
        self._size = size

    def entity(self, layout: EntityLayout, depth: int | None = 0) -> bytes:
        """A struct; the path goes on in it at `depth`, or not at all if that is None."""
        on_path = None if depth is None else self._path[depth]
        out = b"".join(
            self._field(field, layout.flexible, depth if field is on_path else None)
            for field in layout.fields
        )
        if not layout.flexible:
            return out
        if on_path is None or on_path.tag is None:
            return out + b"\0"
        content = self._field(on_path, flexible=True, depth=depth)
        return out + b"\1" + _uvarint(on_path.tag) + _uvarint(len(content)) + content

    def _field(self, field: FieldLayout, flexible: bool, depth: int | None) -> bytes:
        if not field.is_array:
            if field.has_marker and depth is None:
                return b"\xff"
            marker = b"\1" if field.has_marker else b""
            return marker + self._one(field, flexible, None if depth is None else depth + 1)
        count, inner = int(self._filling.is_nested), None
        if depth is not None and depth + 1 < len(self._path):
            count, inner = 1, depth + 1
        one = self._one(field, flexible, inner)
        if depth is not None and inner is None:
            count = self._size // len(one)
        return (_uvarint(count + 1) if flexible else pack(">i", count)) + one * count

    def _one(self, field: FieldLayout, flexible: bool, depth: int | None) -> bytes:
        if field.entity is not None:
            return self.entity(field.entity, depth)
        if not field.is_sized:
            number = bytes([_NUMBER]) * element_size_min(field)
            return {"bool": b"\1", "uuid": _ID}.get(field.kind, number)
        content = (_TEXT if self._filling.has_text else "").encode()
        if flexible:
            return _uvarint(len(content) + 1) + content
        return pack(">h" if field.kind == "string" else ">i", len(content)) + content


def _uvarint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + _uvarint(value >> 7)
