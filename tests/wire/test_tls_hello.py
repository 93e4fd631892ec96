"""Nothing of TLS is begun for a client that has not said its hello."""

import asyncio
import socket

import pytest

from tests.wire.security.tls_nodes import HOST, Node, connected, dialling, listening, until
from wire import tcp_server
from wire.security.principals import ANONYMOUS
from wire.tls_hello import NotTls, wait_for_hello

HELLO = b"\x16\x03\x01\x00\x06" + b"hello!"
# A whole record that holds the beginning of a longer message: OpenSSL waits for the next one.
HALF = b"\x16\x03\x01\x00\x2a" + b"\x01\x00\x10\x00" + bytes(38)


def pair() -> tuple[socket.socket, socket.socket]:
    """Two ends of a TCP connection: others know no SO_RCVLOWAT."""
    with socket.create_server((HOST, 0)) as server:
        theirs = socket.create_connection(server.getsockname())
        ours, _ = server.accept()
    ours.setblocking(False)
    theirs.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return ours, theirs


def test_hello_is_waited_for_as_a_whole_and_left_where_it_is() -> None:
    async def test() -> None:
        ours, theirs = pair()
        with ours, theirs:
            waiting = asyncio.create_task(wait_for_hello(ours))
            for at in range(len(HELLO)):
                await asyncio.sleep(0)
                assert not waiting.done(), at
                theirs.sendall(HELLO[at : at + 1])
            await waiting
            assert ours.recv(100) == HELLO

    asyncio.run(asyncio.wait_for(test(), 5))


@pytest.mark.parametrize("sent", [b"\0\0\0\x0a\0", b"GET /", b"\x16\x03\x01\xff\xff"])
def test_what_is_no_hello_is_told_at_once(sent: bytes) -> None:
    async def test() -> None:
        ours, theirs = pair()
        with ours, theirs:
            theirs.sendall(sent)
            with pytest.raises(NotTls, match="on a listener of TLS"):
                await wait_for_hello(ours)

    asyncio.run(asyncio.wait_for(test(), 5))


def test_only_so_many_handshakes_have_buffers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp_server, "_HANDSHAKES_MAX", 1)

    async def test() -> None:
        async with Node(listening(seconds=0.2)) as node:
            with socket.create_connection((HOST, node.port)) as first:
                first.sendall(HALF)
                await until(lambda: node.server._turns.locked())
                with socket.create_connection((HOST, node.port)) as second:
                    second.sendall(HELLO)
                    await until(lambda: node.server.handshake_count == 2)
            await until(lambda: not node.server.handshake_count)
            assert await connected(node, dialling()) == str(ANONYMOUS)

    asyncio.run(asyncio.wait_for(test(), 5))
