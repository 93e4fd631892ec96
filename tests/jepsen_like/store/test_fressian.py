"""Values in Fressian that `write_store.clj` does not write, and bytes that are none."""

import random
from contextlib import suppress
from typing import Any

import pytest

from jepsen_like.histories.fressian import Fressian
from jepsen_like.histories.fressian_tags import TAGS
from jepsen_like.histories.history import MalformedHistory


def values(data: bytes) -> list[Any]:
    return list(Fressian(data, TAGS).values())


LONG_TEXT = b"\xe3\x09" + b"some text"


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"\xe2\x02ab\xe3\x01c", "abc"),
        (b"\xe2\x00\xda", ""),
        (b"\xe2\x03\xed\xa0\xbd\xdd\xed\xb8\x80", "\U0001f600"),
        (b"\xd2\x00\xff", b"\x00\xff"),
        (b"\xd8\x02ab\xd9\x01c", b"abc"),
        (b"\xed\x01\xed\xfd\xfd", [1, []]),
        (b"\xee\x01\x02", [1, 2]),
        (b"\xee\x01\xfd", [1]),
        (b"\xb0\x02\x07\x08", [7, 8]),
        (b"\xb1\x01\xfa\x40\x04\x00\x00\x00\x00\x00\x00", [2.5]),
        (b"\xf9\x3f\x00\x00\x00", 0.5),
        (b"\xc3\xd9\x10" + bytes(16), "00000000-0000-0000-0000-000000000000"),
        (b"\xc4\xdc.*", ".*"),
        (b"\xc6\xd1\x80", -128),
        (b"\xc7\xd1\x0f\x01", ("bigdec", [b"\x0f", 1])),
        (b"\xef\xdd???\x02\x01\xe5\x02", ("???", [1, [2]])),
        (b"\xef\x07\x00", (7, [])),
        (b"\xc0\xe6\xe5\x01\x02", {(1,): 2}),
        (b"\xc0\xe6\xc0\xe6\x01\xe5\x02\x03", {frozenset({(1, (2,))}): 3}),
    ],
)
def test_value_is_read(data: bytes, value: Any) -> None:
    assert values(data) == [value]


def test_what_was_written_before_is_said_by_its_number() -> None:
    outer = b"\xcd\xe5\xcd" + LONG_TEXT  # a list with a text, and both are kept
    again = b"\x80\x81\xcc\x01"
    assert values(outer + again) == [["some text"], ["some text"], "some text", "some text"]


def test_tag_is_said_by_its_number() -> None:
    many = b"".join(b"\xef" + bytes([number]) + b"\x01\x00" for number in range(17))
    assert values(many + b"\xa1\x05\xf0\x10\x06")[17:] == [(1, [5]), (16, [6])]


def test_numbers_begin_anew_where_the_writer_says_so() -> None:
    assert values(b"\xcd" + LONG_TEXT + b"\xfe\xcd\x07\x80") == ["some text", 7, 7]
    with pytest.raises(MalformedHistory, match="no value has the number 0"):
        values(b"\xcd" + LONG_TEXT + b"\xfe\x80")


@pytest.mark.parametrize(
    ("data", "byte", "what"),
    [
        (b"\xe5", 1, "1 parts are said, and there are not so many bytes"),
        (b"\xf8\x00", 1, "ends within a value"),
        (b"\xe4\xce", 1, "no value begins with 0xce"),
        (b"\xfd", 0, "no value begins with 0xfd"),
        (b"\xed\x01", 2, "ends within a value"),
        (b"\xec\x7d\xff\xff\xff\xff\xff\xff", 8, "not a length"),
        (b"\xe3\x7f\xff\xff\xff\xff\xff\xff", 8, "not so many bytes"),
        (b"\xd9\x7f\xff\xff\xff\xff\xff\xff", 8, "not so many bytes"),
        (b"\xb0\x7f\xff\xff\xff\xff\xff\xff", 8, "not so many bytes"),
        (b"\xef\xdbx\x7f\xff\xff\xff\xff\xff\xff", 10, "'x' has 562949953421311 parts"),
        (b"\xe3\xf5", 2, "not a length: True"),
        (b"\xdb\xff", 2, "not text"),
        (b"\xdd\xed\xa0\xbd", 4, "not text"),
        (b"\xe2\x01a\x07", 4, "a string has no end"),
        (b"\xd8\x01a\x07", 4, "a string of bytes has no end"),
        (b"\x81", 1, "no value has the number 1"),
        (b"\xcd\xe5\x80", 3, "no value has the number 0"),
        (b"\xcd\xe5\xfe\x07", 3, "numbers begin anew within a value"),
        (b"\xa0", 1, "no tag has the number 0"),
        (b"\xca\x01\x02", 3, "not a name: 1, 2"),
        (b"\xc0\xe5\x01", 3, "not as 'map' is"),
        (b"\xc0\xe8\x01\x02\x01\x03", 6, "not as 'map' is: it has a key twice"),
        (b"\xc0\x01", 2, "not as 'map' is"),
        (b"\xef\xddmap\x02\x01\x02", 6, "'map' has 2 parts"),
        (b"\xc6\xd9\x53\xe9" + b"\x7f" * 1001, 1005, "a number of 1001 bytes"),
        (b"\xc8\x7f\xff\xff\xff\xff\xff\xff", 8, "not as 'inst' is"),
        (b"\xc3\xd1a", 3, "not as 'uuid' is"),
        (b"\xe5" * 500, 121, "nested deeper"),
        (b"\xcd" * 500, 121, "nested deeper"),
        (b"\xfe" * 500, 121, "nested deeper"),
        (b"\xef" * 500, 121, "nested deeper"),
    ],
)
def test_what_is_no_value_is_refused_with_its_byte(data: bytes, byte: int, what: str) -> None:
    with pytest.raises(MalformedHistory, match=rf"^Fressian, byte {byte}: .*{what}"):
        values(data)


def test_few_bytes_that_say_much_are_refused() -> None:
    """Each list has the one before it eight times."""
    lists = b"\xcd\xe4" + b"".join(b"\xcd\xec\x08" + bytes([0x80 + n]) * 8 for n in range(30))
    with pytest.raises(MalformedHistory, match="told in full it is more than 64 times as long"):
        values(lists)


def test_any_bytes_are_values_or_refused() -> None:
    draw = random.Random(12)
    for _ in range(100):
        data = bytes(draw.choice((1, draw.randrange(256))) for _ in range(30))
        with suppress(MalformedHistory):
            values(data)
