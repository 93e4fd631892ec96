"""Rows of one shape: written and recognised against the codec of single records."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.batch import encode_value
from wire.record_rows import (
    Column,
    RowTemplate,
    matching_rows,
    row_template,
    widths,
    write_rows,
)
from wire.varint import varint

SHAPE = (b"\x01\x02", Column("number", ">i4"), b"const", Column("pair", ">i2", 2), b"\x00")


def rows_of(template: RowTemplate, first_delta: int, count: int) -> np.ndarray:
    out = np.empty(count * template.size, np.uint8)
    columns = {
        "number": np.arange(count),
        "pair": np.arange(2 * count).reshape(count, 2),
        "not in the shape": np.zeros(0),
    }
    write_rows(out, template, first_delta=first_delta, columns=columns)
    return out


@pytest.mark.parametrize("first_delta", [0, 63 - 4, 64, 8191 - 4, 8192, 2**20, 2**27 - 5])
def test_rows_are_the_records_that_the_batch_codec_writes(first_delta: int) -> None:
    width = len(varint(first_delta))
    expected = b"".join(
        encode_value(
            b"\x01\x02%bconst%b%b\x00"
            % (
                row.to_bytes(4, "big"),
                (2 * row).to_bytes(2, "big"),
                (2 * row + 1).to_bytes(2, "big"),
            ),
            first_delta + row,
        )
        for row in range(5)
    )
    assert rows_of(row_template(SHAPE, width), first_delta, 5).tobytes() == expected


@given(st.integers(0, 2**27), st.integers(0, 2**27))
def test_widths_cover_the_deltas_once_and_in_order(one: int, other: int) -> None:
    first, end = sorted((one, other))
    at = first
    for width, low, high in widths(first, end):
        assert low == at < high
        assert len(varint(low)) == len(varint(high - 1)) == width
        at = high
    assert at == end


@pytest.mark.parametrize("count", [1, 1024, 1025, 6000])
def test_whole_run_matches_and_no_more_than_asked_for(count: int) -> None:
    template = row_template(SHAPE, 4)
    data = rows_of(template, 2**20, count)
    assert matching_rows(data, template, first_delta=2**20, rows_max=10**6) == count
    assert matching_rows(data[:-1], template, first_delta=2**20, rows_max=10**6) == count - 1
    assert matching_rows(data, template, first_delta=2**20, rows_max=1) == 1
    assert matching_rows(data, template, first_delta=2**20 + 1, rows_max=10**6) == 0


@given(st.integers(0, 39), st.data())
def test_run_ends_at_a_changed_constant_but_not_at_a_changed_value(
    row: int, data: st.DataObject
) -> None:
    template = row_template(SHAPE, 1)
    rows = rows_of(template, 0, 40)
    offset = data.draw(st.integers(0, template.size - 1))
    rows[row * template.size + offset] ^= data.draw(st.integers(1, 255))
    columns = {
        position
        for name in template.columns
        for kind, start in [template.dtype.fields[name][:2]]  # type: ignore[index]  # it has fields
        for position in range(start, start + kind.itemsize)
    }
    expected = 40 if offset in columns else row
    assert matching_rows(rows, template, first_delta=0, rows_max=40) == expected
