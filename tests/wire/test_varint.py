"""Variable-length integers, against their definition and at their limits."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wire.varint import Malformed, read_uvarint, read_varint, uvarint, varint

UINT64 = st.integers(0, 2**64 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (2**64 - 1, "ff" * 9 + "01")],
)
def test_uvarint_is_leb128(value: int, encoded: str) -> None:
    assert uvarint(value).hex() == encoded


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (64, "8001"), (-64, "7f"), (-65, "8101")],
)
def test_varint_is_zigzag_leb128(value: int, encoded: str) -> None:
    assert varint(value).hex() == encoded


@given(UINT64, st.binary(max_size=3))
@example(255, b"")
@example(256, b"")
def test_uvarint_round_trip_ends_behind_the_value(value: int, rest: bytes) -> None:
    encoded = uvarint(value)
    assert read_uvarint(b"\xff" + encoded + rest, 1) == (value, 1 + len(encoded))


@given(INT64, st.binary(max_size=3))
@example(8191, b"")
@example(8192, b"")
def test_varint_round_trip_ends_behind_the_value(value: int, rest: bytes) -> None:
    encoded = varint(value)
    assert read_varint(memoryview(b"\xff" + encoded + rest), 1) == (value, 1 + len(encoded))


@given(UINT64)
def test_truncated_varint_is_malformed(value: int) -> None:
    encoded = uvarint(value)
    for end in range(len(encoded)):
        with pytest.raises(Malformed):
            read_uvarint(encoded[:end], 0)
        with pytest.raises(Malformed):
            read_varint(encoded[:end], 0)


@pytest.mark.parametrize("encoded", [b"\xff" * 9 + b"\x02", b"\x80" * 10 + b"\x00", b"\xff" * 11])
def test_varint_beyond_64_bits_is_malformed(encoded: bytes) -> None:
    with pytest.raises(Malformed, match="64 bits"):
        read_uvarint(encoded, 0)
