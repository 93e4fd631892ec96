"""Headers, and the table of versions that they are held to."""

import subprocess
import sys
from pathlib import Path
from struct import pack

import pytest
from kio.index import load_request_schema

from tests.wire.compatibility_page import renewed
from wire.api_table import APIS, ListenerKind, api_by_key, api_versions_response
from wire.apis import (
    UnsupportedVersion,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from wire.messages.features import ApiVersionsRequest
from wire.messages.fetching import FetchRequest, FetchResponse
from wire.messages.metadata import MetadataRequest
from wire.messages.producing import ProduceRequest
from wire.varint import Malformed

ROOT = Path(__file__).parent.parent.parent
BROKER, CONTROLLER = ListenerKind.BROKER, ListenerKind.CONTROLLER


def joined(buffers: list[bytes]) -> bytes:
    return b"".join(buffers)


@pytest.mark.parametrize("client_id", [None, "", "rdkafka", "ünïcode"])
@pytest.mark.parametrize("version", [4, 11, 12, 18])
def test_request_header_round_trips(version: int, client_id: str | None) -> None:
    request = FetchRequest(max_wait_ms=500, topics=())
    frame = joined(encode_request(request, version, 77, client_id))
    decoded = decode_request(frame)
    assert (decoded.api_key, decoded.api_version, decoded.correlation_id) == (1, version, 77)
    assert decoded.client_id == client_id
    assert decoded.body == request
    assert decoded.frame == frame


@pytest.mark.parametrize("version", [4, 11, 12, 18])
def test_response_header_round_trips(version: int) -> None:
    frame = joined(encode_response(FetchResponse(), 1, version, -5))
    assert decode_response(frame, 1, version) == (-5, FetchResponse())


def test_header_of_an_api_versions_response_never_has_tagged_fields() -> None:
    frame = joined(encode_response(api_versions_response(BROKER), 18, 4, 1))
    assert frame[4:6] == b"\0\0"  # the error code, right behind the correlation id


def test_unknown_tagged_fields_of_a_header_are_skipped() -> None:
    frame = joined(encode_request(MetadataRequest(), 12, 3, "me"))
    header_end = 8 + 2 + len("me")
    assert frame[header_end] == 0
    with_tags = frame[:header_end] + b"\x02\x00\x01x\x65\x02yz" + frame[header_end + 1 :]
    assert decode_request(with_tags).body == MetadataRequest()


def test_every_truncated_request_is_malformed() -> None:
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    frame = joined(encode_request(request, 3, 1, "client"))
    for end in range(len(frame)):
        with pytest.raises(Malformed):
            decode_request(frame[:end])


def test_every_truncated_response_is_malformed() -> None:
    frame = joined(encode_response(FetchResponse(), 1, 16, 1))
    for end in range(len(frame)):
        with pytest.raises(Malformed):
            decode_response(frame[:end], 1, 16)


def test_client_id_that_is_not_text_is_malformed() -> None:
    with pytest.raises(Malformed, match="produce version 9: the client id is not UTF-8"):
        decode_request(pack(">hhih", 0, 9, 1, 2) + b"\xff\xff\0")


@pytest.mark.parametrize(
    ("key", "version", "listener"),
    [
        (0, 2, BROKER),  # advertised all the same
        (0, 14, BROKER),
        (0, 9, CONTROLLER),
        (1, 11, CONTROLLER),
        (52, 1, BROKER),
        (4, 0, None),
        (9999, 0, None),
        (-1, -1, None),
    ],
)
def test_what_is_not_served_is_told_by_its_header(
    key: int, version: int, listener: ListenerKind | None
) -> None:
    with pytest.raises(UnsupportedVersion) as raised:
        decode_request(pack(">hhih", key, version, 42, -1), listener)
    header = raised.value.header
    assert (header.api_key, header.api_version, header.correlation_id) == (key, version, 42)


def test_every_row_has_a_schema_for_each_version() -> None:
    for api in APIS:
        for version in api.versions:
            load_request_schema(api.key, version)


def test_large_records_are_not_copied_into_a_frame() -> None:
    from wire.messages.fetching import FetchedPartition, FetchedTopic

    records = bytes(100_000)
    partition = FetchedPartition(partition_index=0, records=records)
    response = FetchResponse(responses=(FetchedTopic(partitions=(partition,)),))
    buffers = encode_response(response, 1, 17, 1)
    assert any(buffer is records for buffer in buffers)
    assert decode_response(joined(buffers), 1, 17)[1] == response


def test_control_plane_is_what_nodes_ask_of_each_other() -> None:
    names = {api.name for api in APIS if api.control_plane}
    assert names >= {"vote", "broker_heartbeat", "alter_partition"}
    produce = api_by_key(0)
    assert produce is not None
    assert not produce.control_plane


def test_request_without_acks_still_decodes() -> None:
    request = ProduceRequest(acks=0, timeout_ms=1, topic_data=())
    assert decode_request(joined(encode_request(request, 3, 1))).body.acks == 0


def test_modules_of_versions_are_loaded_when_they_are_used() -> None:
    script = (
        "import sys; from wire import http, tcp_client, tcp_server;"
        "from wire.canonical import reader_for;"
        "before = [name for name in sys.modules if name.startswith('kio.')];"
        "reader_for('vote', 2, 'request');"
        "print(before, sorted(n for n in sys.modules if n.startswith('kio.schema.vote.v')))"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, timeout=60)
    loaded = [f"kio.schema.vote.v2{part}" for part in ("", ".request", ".response")]
    assert ran.stdout.decode().strip() == f"[] {loaded}", ran.stderr.decode()


def test_compatibility_page_is_what_the_table_says() -> None:
    page = (ROOT / "docs/compatibility.md").read_text()
    assert renewed(page) == page
