"""The expressions of `--where`: what they say, and what they may never do."""

from typing import Any

import pytest

from quorumlab.inspection.selection import WhereError, parse_where

RECORD: dict[str, Any] = {
    "offset": 7,
    "type": "PARTITION_CHANGE_RECORD",
    "topic": "orders",
    "leader": -1,
    "isr": [1, 3],
    "rack": None,
}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("leader == -1", True),
        ("2 not in isr and 1 in isr", True),
        ("5 < offset <= 7", True),
        ("offset > 7.5 or offset < -7.5", False),
        ("topic in ['orders', 'other']", True),
        ("isr == [1, 3]", True),
        ("rack == None", True),
        ("topic > 5", False),
        ("'r' in leader", False),
        ("leaderEpoch == 0", False),
        ("leaderEpoch != 0", False),
        ("not leaderEpoch == 0", True),
    ],
)
def test_an_expression_holds_of_a_record_or_not(text: str, holds: bool) -> None:
    assert parse_where(text)(RECORD) is holds


@pytest.mark.parametrize(
    "text",
    [
        *("offset.__class__", "isr[0]", "topic.upper()", "__import__('os')", "().__class__"),
        *("9 ** 9 ** 9", "'a' * 1000000000", "offset + 1", "1 << 99", "-isr"),
        *("lambda: 1", "[x for x in isr]", "(offset := 1)", "{1}", "{1: 2}", "*isr", "f'{topic}'"),
        *("1j == offset", "b'a' == topic", "...", "1 if offset else 2", "offset is 1", "", "a =="),
        *("not " * 150 + "offset", "not " * 5_000 + "offset", "not " * 200_000 + "offset"),
        *("(" * 500 + "offset" + ")" * 500, "[" * 150 + "]" * 150, "9" * 5_000, "offset\0"),
    ],
)
def test_nothing_else_is_taken(text: str) -> None:
    with pytest.raises(WhereError):
        parse_where(text)


def test_long_expressions_are_no_deep_ones() -> None:
    text = " or ".join(f"offset == {number}" for number in range(5_000))
    assert parse_where(text)({"offset": 4_999})
    assert not parse_where("offset < " * 5_000 + "9")({"offset": 1})


def test_a_field_that_no_record_has_is_refused_with_what_may_be_meant() -> None:
    with pytest.raises(WhereError, match="no record has a field 'leadr'; did you mean leader"):
        parse_where("offset > 3 and leadr == 3")


def test_bytes_that_nobody_knows_can_be_asked_for() -> None:
    assert parse_where("key > 30 and value != ''")({"key": 31, "value": "00"})
