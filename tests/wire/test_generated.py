"""The generated codecs: what they look like, and what they say of values that do not fit."""

from typing import Any
from uuid import UUID

import pytest

from wire.apis import encode_request, encode_response
from wire.generated import codec_source
from wire.message import replace
from wire.messages.fetching import FetchPartition, FetchRequest, FetchTopic
from wire.messages.groups import FindCoordinatorResponse, FoundCoordinator
from wire.metadata_records import ConfigRecord, PartitionRecord, encode_record
from wire.writing import CannotExpress

PARTITION = FetchPartition(partition=0, fetch_offset=1)
NUMBERS = PartitionRecord(
    partition_id=0,
    topic_id=UUID(int=9),
    replicas=(1,),
    isr=(1,),
    leader=1,
    leader_epoch=0,
    partition_epoch=0,
)


def fetch(**changes: Any) -> FetchRequest:
    partition = replace(PARTITION, **changes)
    topic = FetchTopic(topic_id=UUID(int=7), partitions=(PARTITION, partition))
    return FetchRequest(max_wait_ms=1, topics=(topic,))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"partition": 2**31}, r"topics\[0\].partitions\[1\].partition is 2147483648, .* int32"),
        ({"fetch_offset": -(2**63) - 1}, r"partitions\[1\].fetch_offset is -9223372036854775809"),
        ({"fetch_offset": None}, r"partitions\[1\].fetch_offset is None, not of type int64"),
        ({"last_fetched_epoch": "x"}, r"partitions\[1\].last_fetched_epoch is 'x'"),
        ({"replica_directory_id": 5}, r"partitions\[1\].replica_directory_id is 5, .* uuid"),
        ({"high_watermark": 2**63}, r"partitions\[1\].high_watermark is 9223372036854775808"),
    ],
)
def test_a_value_that_does_not_fit_is_named(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(CannotExpress, match=why):
        encode_request(fetch(**changes), 18, 1)


@pytest.mark.parametrize("version", [0, 3, 4])
def test_a_string_that_no_version_has_room_for_is_refused_in_all(version: int) -> None:
    """A character of two bytes: the limit is one of bytes."""
    for host, fits in (("é" * 16_383, True), ("é" * 16_384, False)):
        answer = FindCoordinatorResponse(
            coordinators=(FoundCoordinator(key="k", host=host, port=1),)
        )
        if fits:
            assert host.encode() in b"".join(encode_response(answer, 10, version, 1))
        else:
            with pytest.raises(CannotExpress, match="host has 32768 bytes, above 32767"):
                encode_response(answer, 10, version, 1)


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (replace(NUMBERS, leader=2**31), "leader is 2147483648"),
        (replace(NUMBERS, isr=(1, -(2**31) - 1)), r"isr\[1\] is -2147483649"),
        (replace(NUMBERS, eligible_leader_replicas=(2**40,)), r"eligible_leader_replicas\[0\]"),
        (ConfigRecord(resource_type=2, resource_name="t", name="n", value="v" * 40_000), "value"),
        (ConfigRecord(resource_type=200, resource_name="t", name="n", value="v"), "resource_type"),
    ],
)
def test_a_record_with_a_value_that_does_not_fit_is_refused(record: Any, why: str) -> None:
    with pytest.raises(CannotExpress, match=why):
        encode_record(record)


def test_the_source_of_a_codec_unpacks_neighbours_together() -> None:
    source = codec_source("fetch", 17, "request")
    numbers = "max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch"
    assert f"{numbers}, count = unpack_iiibiiB(buffer, position)" in source
    compile(source, "fetch", "exec")
