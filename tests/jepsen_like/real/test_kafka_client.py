"""What the blocking client says when no answer comes."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from jepsen_like.real.kafka_client import Client, NoAnswer
from jepsen_like.real.layout import ClusterError
from wire.api_table import API_VERSIONS_KEY, ListenerKind, api_versions_response
from wire.apis import encode_response
from wire.framing import with_length
from wire.messages.metadata import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataRequest,
    MetadataResponse,
)
from wire.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse

CLOSED = "the server closed the connection: does it speak TLS or SASL? --command-config"
DELETION = DeleteTopicsRequest(topics=(), timeout_ms=1000)


@contextmanager
def connected(
    kind: ListenerKind = ListenerKind.BROKER, *, timeout_seconds: float | None = None
) -> Iterator[Client]:
    """To a server that tells its versions and answers no more: with a time-out it stays silent."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        hangs_up = timeout_seconds is None
        thread = Thread(target=_serve, args=(listening, kind, hangs_up))
        thread.start()
        with Client([listening.getsockname()], timeout_seconds or 5.0) as client:
            yield client
        thread.join()


def _serve(listening: socket.socket, kind: ListenerKind, hangs_up: bool) -> None:
    connection, _ = listening.accept()
    with connection:
        connection.recv(1000)
        told = encode_response(api_versions_response(kind), API_VERSIONS_KEY, 3, 1)
        connection.sendall(b"".join(with_length(told)))
        connection.recv(1000)
        if not hangs_up:
            connection.recv(1000)  # until the client has had enough


def test_who_asks_for_a_change_is_told_that_it_may_still_happen() -> None:
    with connected(timeout_seconds=0.05) as client, pytest.raises(NoAnswer) as raised:
        client.ask(DELETION, DeleteTopicsResponse)
    assert str(raised.value) == (
        "no answer to a DeleteTopics request for 0 s: is a majority of the controllers up? "
        "What was asked for may still happen"
    )


def test_a_connection_that_breaks_leaves_a_change_as_open() -> None:
    with connected() as client, pytest.raises(NoAnswer) as raised:
        client.ask(DELETION, DeleteTopicsResponse)
    assert str(raised.value) == (
        f"no answer to a DeleteTopics request ({CLOSED}). What was asked for may still happen"
    )


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (MetadataRequest(), MetadataResponse),
        (DescribeClusterRequest(), DescribeClusterResponse),
    ],
)
def test_what_only_asks_does_nothing_later(question: object, answer: type) -> None:
    with connected() as client, pytest.raises(NoAnswer) as raised:
        client.ask(question, answer)
    assert str(raised.value).endswith(f"request ({CLOSED})")


def test_apis_are_called_as_kafka_calls_them() -> None:
    refused = pytest.raises(ClusterError, match="does not serve Metadata requests")
    with connected(ListenerKind.CONTROLLER) as client, refused:
        client.ask(MetadataRequest(), MetadataResponse)
