"""Frames of a real Kafka: read, and written again to the same bytes.

See tests/golden/README.md for how they were captured.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from wire.api_table import APIS, api_by_key
from wire.apis import decode_request, decode_response, encode_request, encode_response
from wire.errors import ErrorCode

GOLDEN = Path(__file__).parent.parent / "golden"


def exchanges() -> list[Any]:
    found = []
    for path in sorted((GOLDEN / "wire").glob("*.json")):
        for index, exchange in enumerate(json.loads(path.read_text())["exchanges"]):
            api = api_by_key(exchange["api_key"])
            if api is not None and exchange["api_version"] in api.versions:
                name = f"{path.stem}-{index}-v{exchange['api_version']}"
                found.append(pytest.param(exchange, id=name))
    return found


@pytest.mark.parametrize("exchange", exchanges())
def test_request_of_a_client_is_written_again_to_the_same_bytes(exchange: Any) -> None:
    frame = bytes.fromhex(exchange["request"])
    request = decode_request(frame)
    again = encode_request(
        request.body, request.api_version, request.correlation_id, request.client_id
    )
    assert b"".join(again) == frame


@pytest.mark.parametrize("exchange", exchanges())
def test_response_of_kafka_is_written_again_to_the_same_bytes(exchange: Any) -> None:
    key, version = exchange["api_key"], exchange["api_version"]
    frame = bytes.fromhex(exchange["response"])
    correlation_id, body = decode_response(frame, key, version)
    assert b"".join(encode_response(body, key, version, correlation_id)) == frame


def test_frames_of_most_node_apis_are_there() -> None:
    names = {api_by_key(row.values[0]["api_key"]).name for row in exchanges()}  # type: ignore[union-attr]
    assert names >= {"vote", "fetch", "begin_quorum_epoch", "broker_registration", "metadata"}


@pytest.mark.parametrize("listener", ["broker", "controller"])
def test_versions_served_are_within_those_of_kafka(listener: str) -> None:
    captured = json.loads((GOLDEN / f"api_versions_{listener}.json").read_text())["api_versions"]
    for api in APIS:
        served = getattr(api, listener)
        if served is not None:
            oldest, newest = captured[str(api.key)]
            assert oldest <= served.oldest <= served.newest <= newest, api.name


def test_error_codes_cover_what_kafka_answered() -> None:
    text = (GOLDEN / "admin_errors.json").read_text()
    codes = {int(code) for code in find_error_codes(json.loads(text))}
    assert codes <= {code.value for code in ErrorCode}


def find_error_codes(value: Any) -> set[int]:
    match value:
        case dict():
            own = {value["error_code"]} if isinstance(value.get("error_code"), int) else set()
            return own.union(*(find_error_codes(one) for one in value.values()))
        case list():
            return set().union(*(find_error_codes(one) for one in value))
        case _:
            return set()
