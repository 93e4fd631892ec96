"""Nodes that our client refuses for what they show, and handshakes that they cut."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.wire.security.certificates import DAY, NOW, certified, self_signed
from tests.wire.security.tls_nodes import (
    HOST,
    Node,
    ask,
    connected,
    dialling,
    key_store,
    listening,
)
from wire.security.principals import ANONYMOUS
from wire.security.protocols import ServerSecurity, ServerTls
from wire.security.security_protocol import SecurityProtocol
from wire.security.tls import TlsSettings, server_context
from wire.tcp_client import ConnectionPool, SendFailure


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 20))


def expired() -> ServerSecurity:
    """A node whose certificate was good when it started."""
    late = certified(begin=NOW - 2 * DAY, end=NOW - DAY)
    settings = TlsSettings(key_store=key_store(late))
    tls = ServerTls(
        context=server_context(settings, NOW - 1.5 * DAY), principal_of=lambda _: ANONYMOUS
    )
    return ServerSecurity(protocol=SecurityProtocol.SSL, tls=tls)


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (expired, "certificate has expired"),
        (lambda: listening(self_signed()), "self-signed certificate"),
        (lambda: listening(certified(hosts=())), "IP address mismatch"),
    ],
    ids=["expired", "self-signed", "without names"],
)
def test_our_client_refuses_a_node_that_shows_a_bad_certificate(
    node: Callable[[], ServerSecurity], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with Node(node()) as dialled:
            assert await connected(dialled, dialling()) is SendFailure.DISCONNECTED

    run(test)
    assert words in caplog.text


@pytest.mark.parametrize("answered", [b"", b"\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03"])
def test_our_client_outlives_a_handshake_that_is_cut(answered: bytes) -> None:
    """By a node that leaves after the hello, or in the middle of its answer."""

    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(5)
        writer.write(answered)
        writer.close()

    async def test() -> None:
        server = await asyncio.start_server(cut, HOST, 0)
        async with server, ConnectionPool(client_id="c", security_of=lambda _: dialling()) as pool:
            port = server.sockets[0].getsockname()[1]
            assert await ask(pool, port) is SendFailure.DISCONNECTED

    run(test)
