"""Answers that name brokers name proxies instead; all else goes through as it came."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from jepsen_like.faults.participants import CLIENTS
from jepsen_like.real.address_rewriting import redirected
from jepsen_like.real.free_ports import free_ports
from jepsen_like.real.kafka_client import Client
from jepsen_like.real.layout import Link
from jepsen_like.real.proxy import ProxyMesh
from wire.api_table import API_VERSIONS_KEY
from wire.apis import decode_request, decode_response, encode_response
from wire.framing import with_length
from wire.messages.endpoints import NodeEndpoint
from wire.messages.features import ApiVersion, ApiVersionsResponse
from wire.messages.fetching import FetchResponse
from wire.messages.groups import FindCoordinatorResponse, FoundCoordinator
from wire.messages.metadata import (
    DescribeClusterBroker,
    DescribeClusterResponse,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
)
from wire.messages.producing import ProduceResponse

PROXIES = {1: ("proxy", 7001), 2: ("proxy", 7002)}
METADATA = 3
BROKERS = tuple(
    MetadataResponseBroker(node_id=node_id, host="far.away", port=9092) for node_id in (1, 2, 3)
)


def through(body: Any, api_key: int, version: int) -> Any:
    answer = b"".join(encode_response(body, api_key, version, 55))
    correlation_id, seen = decode_response(
        redirected(answer, api_key, version, PROXIES), api_key, version
    )
    assert correlation_id == 55
    return seen


@pytest.mark.parametrize("version", [1, 9, 12])
def test_metadata_names_proxies(version: int) -> None:
    seen = through(MetadataResponse(brokers=BROKERS, controller_id=2), METADATA, version)
    assert [(each.node_id, each.host, each.port) for each in seen.brokers] == [
        (1, "proxy", 7001),
        (2, "proxy", 7002),
        (3, "far.away", 9092),  # has none
    ]
    assert seen.controller_id == 2


def test_whoever_leads_or_coordinates_is_behind_a_proxy_too() -> None:
    end = (NodeEndpoint(node_id=2, host="far.away", port=9092),)
    for body, key, version in (
        (ProduceResponse(node_endpoints=end), 0, 10),
        (FetchResponse(node_endpoints=end), 1, 16),
    ):
        [seen] = through(body, key, version).node_endpoints
        assert (seen.host, seen.port) == PROXIES[2]
    found = FindCoordinatorResponse(
        coordinators=(FoundCoordinator(key="g", node_id=1, host="far.away", port=9092),)
    )
    [coordinator] = through(found, 10, 4).coordinators
    assert (coordinator.host, coordinator.port) == PROXIES[1]
    cluster = DescribeClusterResponse(
        brokers=(DescribeClusterBroker(broker_id=1, host="far.away", port=9092),)
    )
    [broker] = through(cluster, 60, 0).brokers
    assert (broker.host, broker.port) == PROXIES[1]


@pytest.mark.parametrize("answer", [b"\0\0\0\x37", b"\0\0\0\x37 no metadata at all"])
def test_an_answer_that_cannot_be_read_goes_on_as_it_came(answer: bytes) -> None:
    assert redirected(answer, METADATA, 9, PROXIES) == answer
    assert redirected(answer, METADATA, 99, PROXIES) == answer


# --- over sockets ----------------------------------------------------------------------------


@pytest.fixture
def broker() -> Iterator[tuple[str, int]]:
    """Says where it listens, and nothing else."""
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=asyncio.run, args=(serve(listener),))
    thread.start()
    yield listener.getsockname()
    thread.join(30.0)
    assert not thread.is_alive()


async def serve(listener: socket.socket) -> None:
    """One connection, until it ends."""
    over = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                length = int.from_bytes(await reader.readexactly(4))
                request = decode_request(await reader.readexactly(length))
                writer.writelines(with_length(answered(request)))
        except (asyncio.IncompleteReadError, ConnectionError):  # closed, or reset
            over.set()
        finally:  # also of another connection, if the test is over first
            writer.close()

    server = await asyncio.start_server(answer, sock=listener)
    await asyncio.wait_for(over.wait(), 30.0)
    server.close()


def answered(request: Any) -> list[bytes]:
    body: Any = MetadataResponse(brokers=BROKERS)
    if request.api_key == API_VERSIONS_KEY:
        served = (ApiVersion(api_key=METADATA, min_version=0, max_version=12),)
        body = ApiVersionsResponse(api_keys=served)
    return encode_response(body, request.api_key, request.api_version, request.correlation_id)


def test_a_client_is_led_to_the_proxies(broker: tuple[str, int]) -> None:
    ports = free_ports()
    links = [Link(source=CLIENTS, target=each, port=next(ports), target_port=1) for each in (1, 2)]
    mesh = ProxyMesh(links, elsewhere={1: broker, 2: ("far.away", 9092)})
    own = [("127.0.0.1", link.port) for link in links]
    with mesh, Client(own[:1]) as client:
        for _ in range(2):
            answer = client.ask(MetadataRequest(topics=()), MetadataResponse)
            told = [(each.host, each.port) for each in answer.brokers]
            assert told == [*own, ("far.away", 9092)]
