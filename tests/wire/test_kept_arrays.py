"""Arrays whose bytes are kept: the bytes are those that are written without keeping any."""

from collections.abc import Callable
from random import Random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import dear
from tests.wire.test_canonical import messages
from wire.api_table import api_of
from wire.apis import decode_response, encode_response
from wire.kept_arrays import KeptArray
from wire.message import replace
from wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from wire.writing import CannotExpress, Sink

METADATA = api_of(MetadataRequest)
VERSIONS = tuple(METADATA.versions)


def kept(response: MetadataResponse) -> MetadataResponse:
    """The same with topics that are kept: the first alone, the others in one array."""
    parts = (KeptArray(response.topics[:1]), KeptArray(response.topics[1:]))
    return replace(response, topics=KeptArray.joined(parts))


def answer(response: MetadataResponse, version: int) -> bytes | str:
    """The frame, or why there is none."""
    try:
        return b"".join(encode_response(response, METADATA.key, version, 7))
    except CannotExpress as error:
        return str(error)


def response_of(topics: int, partitions: int) -> MetadataResponse:
    described = tuple(
        MetadataResponsePartition(partition_index=each, leader_id=1, replica_nodes=(1, 2))
        for each in range(partitions)
    )
    return MetadataResponse(
        topics=tuple(
            MetadataResponseTopic(
                name=f"t{each}", topic_id=UUID(int=each + 1), partitions=described
            )
            for each in range(topics)
        )
    )


@dear(2)
@given(
    drawn=st.sampled_from(VERSIONS).flatmap(lambda each: messages("metadata", each, "response")),
    order=st.lists(st.sampled_from(VERSIONS), min_size=1, max_size=12),
)
def test_bytes_are_those_of_an_array_that_is_not_kept(
    drawn: MetadataResponse, order: list[int]
) -> None:
    """The order of versions does not matter, nor how often each comes."""
    response = kept(drawn)
    for version in order:
        assert answer(response, version) == answer(drawn, version)
        changed = replace(response, controller_id=5)
        assert answer(changed, version) == answer(replace(drawn, controller_id=5), version)


@pytest.mark.parametrize("version", VERSIONS)
def test_large_arrays_come_whole_and_in_their_place(version: int) -> None:
    plain = response_of(topics=20, partitions=300)
    response = kept(plain)
    for _ in range(2):
        assert answer(response, version) == answer(plain, version)
    frame = answer(response, version)
    assert isinstance(frame, bytes)
    assert decode_response(frame, METADATA.key, version)[1].topics[19].name == "t19"


def test_large_array_is_not_copied_into_each_answer() -> None:
    response = kept(response_of(topics=20, partitions=300))
    answers = [encode_response(response, METADATA.key, 13, each) for each in range(2)]
    (shared,) = {id(part) for part in answers[0]} & {id(part) for part in answers[1]}
    assert shared == id(max(answers[0], key=len))


def test_array_is_written_once_in_a_version_while_versions_are_few() -> None:
    array, written = KeptArray("ab"), []

    def writer(number: int) -> Callable[[Sink, Any], None]:
        def write(out: Sink, elements: tuple[str, ...]) -> None:
            written.append(number)
            out += f"{number}{''.join(elements)}".encode()

        return write

    writers = [writer(number) for number in range(5)]
    for write in writers[:4] * 2:
        array.written(write)
    assert written == [0, 1, 2, 3]
    assert [array.written(write) for write in writers] == [b"0ab", b"1ab", b"2ab", b"3ab", b"4ab"]
    assert written == [0, 1, 2, 3, 4]
    array.written(writers[1])
    assert written == [0, 1, 2, 3, 4]
    array.written(writers[0])
    assert written == [0, 1, 2, 3, 4, 0], "the first had to make room for the fifth"


def test_joined_array_writes_only_what_is_new_of_its_parts() -> None:
    written: list[str] = []

    def write(out: Sink, elements: tuple[str, ...]) -> None:
        written.extend(elements)
        out += "".join(elements).encode()

    first, second = KeptArray("ab"), KeptArray("c")
    assert KeptArray.joined((first, second)).written(write) == b"abc"
    array = KeptArray.joined((second, KeptArray("d"), first))
    assert [array.written(write) for _ in range(2)] == [b"cdab"] * 2
    assert written == ["a", "b", "c", "d"]


def test_part_of_an_answer_that_does_not_fit_is_named_each_time() -> None:
    plain = response_of(topics=2, partitions=2)
    bad = (*plain.topics[1].partitions, MetadataResponsePartition(partition_index=2**31))
    response = kept(replace(plain, topics=(replace(plain.topics[0], partitions=bad),)))
    for _ in range(2):
        with pytest.raises(CannotExpress, match=r"topics\[0\].partitions\[2\].partition_index is"):
            encode_response(response, METADATA.key, 13, 1)


def test_kept_array_is_a_tuple_to_everybody_else() -> None:
    elements = tuple(Random(1).sample(range(100), 10))
    array = KeptArray(elements)
    assert array == elements
    assert hash(array) == hash(elements)
    assert repr(array) == repr(elements)
    assert KeptArray() == KeptArray.joined(()) == ()
    assert KeptArray.joined((KeptArray("ab"), KeptArray(), KeptArray("c"))) == ("a", "b", "c")
