"""The differential test itself: what it generates, and what it would notice. No node is started."""

import struct
from random import Random
from typing import Any
from uuid import UUID

import pytest

from tests.differential.comparing import Difference, Twins, differences
from tests.differential.drawing import Both, Draw, Known, resolved
from tests.differential.exchanging import GENERATORS, OF_THE_CONNECTION, kinds
from tests.differential.known import Row, rows
from tests.differential.plain import decode_response, encode_request, has_flexible_header
from wire.api_table import APIS
from wire.apis import decode_request, encode_response
from wire.messages.fetching import FetchResponse

ONE, OTHER = UUID(int=11), UUID(int=12)


def generated(name: str, version: int, seed: int) -> dict[str, Any]:
    return GENERATORS[name](Draw(Random(seed), Known(cluster_id="c"), version=version))


def found(ours: Any, kafka: Any) -> list[Difference]:
    return differences(ours, kafka, Twins())


def test_every_api_that_is_served_is_asked() -> None:
    assert {name for name, _ in kinds()} == set(GENERATORS)
    assert set(GENERATORS) == {api.name for api in APIS} - {*OF_THE_CONNECTION}


@pytest.mark.parametrize(
    "api", [api for api in APIS if api.name in GENERATORS], ids=lambda api: api.name
)
def test_requests_follow_from_the_seed_and_can_be_read(api: Any) -> None:
    version = api.versions.newest
    for seed in range(2):
        body = resolved(generated(api.name, version, seed), "ours")
        content = encode_request(api.name, version, body)
        again = resolved(generated(api.name, version, seed), "ours")
        assert content == encode_request(api.name, version, again)
        head = struct.pack(">hhih", api.key, version, 7, -1)
        flexible = b"\0" if has_flexible_header(api.name, version) else b""
        assert decode_request(head + flexible + content).api_key == api.key


def test_clients_ask_for_one_transaction() -> None:
    body = resolved(generated("add_partitions_to_txn", 3, 1), "ours")
    content = encode_request("add_partitions_to_txn", 3, body)
    head = struct.pack(">hhihb", 24, 3, 7, -1, 0)
    (asked,) = decode_request(head + content).body.transactions
    assert asked.transactional_id == body["v3_and_below_transactional_id"]


def test_answers_are_read_as_they_were_written() -> None:
    frame = b"".join(encode_response(FetchResponse(session_id=5), 1, 12, 7))
    assert decode_response(1, 12, frame)["session_id"] == 5


@pytest.mark.parametrize(
    ("ours", "kafka", "fields"),
    [
        ({"error_code": 0}, {"error_code": 3}, ["error_code"]),
        ({"a": None}, {"a": []}, ["a"]),
        ({"throttle_time_ms": 1}, {"throttle_time_ms": 2}, []),
        ({"t": [{"name": "a"}, {"name": "b"}]}, {"t": [{"name": "b"}, {"name": "a"}]}, []),
        ({"t": [{"name": "a"}]}, {"t": [{"name": "a"}, {"name": "a"}]}, ["t[]"]),
        ({"replica_nodes": [1, 2]}, {"replica_nodes": [2, 1]}, ["replica_nodes"]),
        ({"isr_nodes": [1, 2]}, {"isr_nodes": [2, 1]}, []),
        ({"text": f"{ONE}"}, {"text": f"{OTHER}"}, []),
        ({"records": b""}, {"records": b"\0" * 70}, ["records.batches[]"]),
    ],
)
def test_differences_are_found(ours: Any, kafka: Any, fields: list[str]) -> None:
    assert [difference.field for difference in found(ours, kafka)] == fields


def test_an_id_stands_for_one_other_all_the_time() -> None:
    same = {"topic_id": ONE}, {"topic_id": OTHER}
    twins = Twins()
    assert differences(*same, twins) == differences(*same, twins) == []
    assert differences({"topic_id": ONE}, {"topic_id": UUID(int=13)}, twins) != []
    assert differences({"topic_id": UUID(int=14)}, {"topic_id": OTHER}, twins) != []


def test_producers_are_aligned_by_who_stands_for_whom() -> None:
    twins = Twins()
    assert twins.are("producer", 1, 2)
    assert twins.are("producer", 2, 1)
    ours = {"p": [{"producer_id": 1, "epoch": 5}, {"producer_id": 2, "epoch": 6}]}
    kafka = {"p": [{"producer_id": 1, "epoch": 6}, {"producer_id": 2, "epoch": 5}]}
    assert differences(ours, kafka, twins) == []
    kafka["p"][0]["epoch"] = 7
    assert [each.field for each in differences(ours, kafka, twins)] == ["p[].epoch"]


def test_each_side_hears_its_own_name_of_a_thing() -> None:
    body = {"topics": [{"topic_id": Both(ONE, OTHER)}]}
    assert resolved(body, "ours") == {"topics": [{"topic_id": ONE}]}
    assert resolved(body, "kafka") == {"topics": [{"topic_id": OTHER}]}


def test_a_row_explains_what_it_says_and_nothing_else() -> None:
    row = Row(api=("Fetch",), field=("*.code",), ours=("1", "2"), why="x")
    told = Difference(field="a[].code", at="", ours="2", kafka="3")
    assert row.explains("Fetch", "", told)
    assert not row.explains("Produce", "", told)
    assert not row.explains("Fetch", "", Difference(field="a[].name", at="", ours="2", kafka="3"))
    assert not row.explains("Fetch", "", Difference(field="a[].code", at="", ours="3", kafka="3"))


def test_every_row_has_a_reason() -> None:
    assert all(row.why.endswith(".") for row in rows())
