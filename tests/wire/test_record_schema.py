"""The codec of flexible structs, on small structs of its own."""

from typing import Annotated

import pytest

from wire.message import Message
from wire.record_schema import (
    Bytes,
    Int8,
    Int32,
    Since,
    String,
    Tag,
    Uuid,
    carries,
    decode_struct,
    encode_struct,
)
from wire.varint import Malformed


class Inner(Message):
    number: Int8
    note: Annotated[String | None, Since(1), Tag(3)] = None


class Outer(Message):
    name: String
    blob: Bytes = b""
    inner: Inner
    many: tuple[Inner, ...] = ()
    numbers: tuple[Int32, ...] | None = None
    late: Annotated[Int32, Since(1)] = 7
    ids: Annotated[tuple[Uuid, ...], Since(2), Tag(1)] = ()
    first: Annotated[Int8, Tag(0)] = -1


SMALL = Outer(name="n", inner=Inner(number=5))


def test_layout_is_declaration_order_then_tags() -> None:
    value = Outer(
        name="ab",
        blob=b"\x09",
        inner=Inner(number=-1),
        many=(Inner(number=2),),
        numbers=(),
        first=4,
    )
    expected = "036162 0209 ff00 02 0200 01 01 00 01 04".replace(" ", "")
    assert encode_struct(value, 0).hex() == expected
    assert decode_struct(Outer, 0, bytes.fromhex(expected)) == value


def test_field_of_a_later_version_is_absent_and_reads_as_its_default() -> None:
    old, new = encode_struct(SMALL, 0), encode_struct(SMALL, 1)
    assert len(new) == len(old) + 4
    assert decode_struct(Outer, 0, old).late == 7
    assert decode_struct(Outer, 1, new) == SMALL


def test_tagged_field_equal_to_its_default_is_not_written() -> None:
    assert encode_struct(SMALL, 2).endswith(b"\0")
    noted = Outer(name="n", inner=Inner(number=5), first=-1, ids=())
    assert encode_struct(noted, 2) == encode_struct(SMALL, 2)


def test_version_refuses_to_lose_a_field() -> None:
    late = Outer(name="n", inner=Inner(number=5), late=8)
    assert not carries(0, late)
    assert carries(1, late)
    with pytest.raises(ValueError, match="Outer version 0 has no late"):
        encode_struct(late, 0)


def test_version_refuses_to_lose_a_field_of_a_nested_struct() -> None:
    noted = Outer(name="n", inner=Inner(number=5), many=(Inner(number=1, note="x"),))
    with pytest.raises(ValueError, match="Inner version 0 has no note"):
        encode_struct(noted, 0)
    assert decode_struct(Outer, 1, encode_struct(noted, 1)) == noted


def test_unknown_tagged_fields_are_skipped_in_any_place() -> None:
    body = encode_struct(SMALL, 0)[:-1]
    tags = bytes.fromhex("030001 0905 02 ffff8101 00")  # tags 0, 5 and 129
    assert decode_struct(Outer, 0, body + tags) == Outer(name="n", inner=Inner(number=5), first=9)
    nested = bytes.fromhex("026e 01 05 01 09 00 01 00 00".replace(" ", ""))
    assert decode_struct(Outer, 0, nested) == SMALL


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ("00 01 0500 01 00 00", "null"),  # name
        ("026e 00 0500 01 00 00", "null"),  # blob
        ("026e 01 0500 00 00 00", "null"),  # many
        ("02ff 01 0500 01 00 00", "utf-8"),
        ("7f6e 01 0500 01 00 00", "126 bytes"),
        ("026e 01 0500 7f 00 00", "126 elements"),
        ("026e 01 0500 01 00 01 00 02 0909", "first ends at"),
        ("026e 01 0500 01 00 01 00 00", "buffer|bytes"),
        ("026e 01 0500 01 00 01 04 09 ff", "tag 4 has 9 bytes"),
        ("026e 01 0500 01 00 00 ff", "1 bytes behind a Outer"),
    ],
)
def test_what_does_not_fit_is_malformed(damage: str, why: str) -> None:
    with pytest.raises(Malformed, match=why):
        decode_struct(Outer, 0, bytes.fromhex(damage))


def test_truncation_at_every_byte_is_malformed() -> None:
    whole = encode_struct(
        Outer(name="name", blob=b"blob", inner=Inner(number=5, note="x"), numbers=(1, 2), first=3),
        2,
    )
    for end in range(len(whole)):
        with pytest.raises(Malformed):
            decode_struct(Outer, 2, whole[:end])
