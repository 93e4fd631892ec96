"""Records of one shape as the rows of a NumPy table.

Two records have the same *shape* if their bytes differ in the values of columns only: all lengths,
counts and tags are equal. A run of them in a batch is then a table of fixed row width, written
and read with one array operation a column.

A record in a batch is varint length, attributes (0), timestamp delta (0 here), varint offset
delta, key length (-1), varint value length, value, header count (0). Its offset delta takes one
to four bytes, and each width has a template of its own.

What the columns mean is decided by the caller: see `wire.partition_block`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wire.varint import varint

__all__ = [
    "DELTAS_MAX",
    "Column",
    "Columns",
    "RowTemplate",
    "Rows",
    "Shape",
    "matching_rows",
    "row_template",
    "widths",
    "write_rows",
]

Bytes = NDArray[np.uint8]
Rows = NDArray[Any]  # structured: the columns of a template by name
Columns = Mapping[str, NDArray[Any]]

# Zig-zag doubles an offset delta, so seven bits a byte hold these, exclusive, in 1 to 4 bytes.
_DELTA_ENDS = (1 << 6, 1 << 13, 1 << 20, 1 << 27)
DELTAS_MAX = _DELTA_ENDS[-1]  # no batch has room for as many records
_DELTA = "offset_delta"
# Rows. A comparison costs 50 µs and 13 ns a row; a run that goes on is compared in larger pieces.
_COMPARED_AT_FIRST = 1 << 12
_COMPARED_AT_MOST = 1 << 18


@dataclass(frozen=True, slots=True)
class Column:
    """A field whose value differs from row to row."""

    name: str
    format: str  # as numpy has it, big-endian
    count: int | None = None  # so many values side by side; None: one, without an axis


Shape = tuple[bytes | Column, ...]  # the value of a record: constant bytes and columns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowTemplate:
    dtype: np.dtype[np.void]  # the columns and the bytes of the offset delta, by name
    constant: Bytes  # a row with zeros where the columns are
    columns: tuple[str, ...]  # without the offset delta
    lanes: np.dtype[np.void]  # the constant bytes of a row, in words of up to 8 bytes
    delta_width: int

    @property
    def size(self) -> int:
        return self.dtype.itemsize


def widths(first: int, end: int) -> list[tuple[int, int, int]]:
    """The deltas from `first` to `end` (exclusive) by width: (width, first, end)."""
    assert 0 <= first <= end <= DELTAS_MAX, (first, end)
    found = []
    start = 0
    for width, stop in enumerate(_DELTA_ENDS, 1):
        low, high = max(first, start), min(end, stop)
        if low < high:
            found.append((width, low, high))
        start = stop
    return found


@lru_cache(maxsize=4096)
def row_template(shape: Shape, width: int) -> RowTemplate:
    """The row of a record with a value of `shape` and an offset delta of `width` bytes."""
    value_bytes = sum(_size(piece) for piece in shape)
    head: Shape = (b"\0\0", Column(_DELTA, "u1", width), b"\x01" + varint(value_bytes))
    pieces = (*head, *shape, b"\0")
    pieces = (varint(sum(_size(piece) for piece in pieces)), *pieces)
    constant = bytearray()
    columns: list[tuple[str, Any, int]] = []
    lanes: list[tuple[str, Any, int]] = []
    for piece in pieces:
        position = len(constant)
        if isinstance(piece, bytes):
            lanes += _lanes(position, position + len(piece))
            constant += piece
        else:
            layout = piece.format if piece.count is None else (piece.format, (piece.count,))
            columns.append((piece.name, layout, position))
            constant += bytes(_size(piece))
    return RowTemplate(
        dtype=_table(columns, len(constant)),
        constant=np.frombuffer(bytes(constant), np.uint8),
        columns=tuple(name for name, _, _ in columns if name != _DELTA),
        lanes=_table(lanes, len(constant)),
        delta_width=width,
    )


def _lanes(start: int, end: int) -> Iterator[tuple[str, str, int]]:
    """Fields that cover the bytes: comparing words is three times as fast as comparing bytes."""
    for size in (8, 4, 2, 1):
        while end - start >= size:
            yield f"lane{start}", f"u{size}", start
            start += size


def _table(fields: list[tuple[str, Any, int]], row_size: int) -> np.dtype[np.void]:
    names, formats, offsets = zip(*fields, strict=True)
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": row_size})


def _size(piece: bytes | Column) -> int:
    if isinstance(piece, bytes):
        return len(piece)
    return np.dtype(piece.format).itemsize * (1 if piece.count is None else piece.count)


def write_rows(out: Bytes, template: RowTemplate, *, first_delta: int, columns: Columns) -> None:
    """Fill `out` with rows, as many as fit; their offset deltas count up from `first_delta`.

    `columns` may have more than the shape does, and more places side by side.
    """
    count, rest = divmod(len(out), template.size)
    assert rest == 0, (len(out), template.size)
    out.reshape(count, template.size)[:] = template.constant
    rows = out.view(template.dtype)
    for index, byte in enumerate(_encoded_deltas(first_delta, count, template.delta_width)):
        rows[_DELTA][:, index] = byte
    for name in template.columns:
        out_column, column = rows[name], columns[name]
        out_column[...] = column if column.ndim == 1 else column[:, : out_column.shape[1]]


def _encoded_deltas(first: int, count: int, width: int) -> Iterator[Bytes]:
    """The bytes of the offset deltas from `first` on: their first bytes, their second ones ..."""
    zigzag = np.arange(first << 1, (first + count) << 1, 2, dtype=np.int32)
    for index in range(width):
        byte = (zigzag >> 7 * index).astype(np.uint8)
        yield byte & np.uint8(127) if index == width - 1 else byte | np.uint8(128)


def matching_rows(data: Bytes, template: RowTemplate, *, first_delta: int, rows_max: int) -> int:
    """Counts the rows of `template`, with deltas from `first_delta` on, that `data` begins with."""
    rows_max = min(rows_max, len(data) // template.size)
    matched = 0
    step = _COMPARED_AT_FIRST
    while matched < rows_max:
        count = min(step, rows_max - matched)
        rows = data[matched * template.size : (matched + count) * template.size]
        same = _same(rows, template, first_delta + matched)
        if not same.all():
            return matched + int(np.argmin(same))
        matched += count
        step = min(step * 4, _COMPARED_AT_MOST)
    return matched


def _same(rows: Bytes, template: RowTemplate, first_delta: int) -> NDArray[np.bool_]:
    words, expected = rows.view(template.lanes), template.constant.view(template.lanes)[0]
    same = np.ones(len(words), np.bool_)
    for lane in template.lanes.names or ():
        same &= words[lane] == expected[lane]
    deltas = rows.view(template.dtype)[_DELTA]
    for index, byte in enumerate(_encoded_deltas(first_delta, len(words), template.delta_width)):
        same &= deltas[:, index] == byte
    return same
