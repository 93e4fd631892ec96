"""Before anybody is known: how many connections, how large a frame, and for how long."""

import asyncio
import logging
from functools import partial
from itertools import count
from struct import pack

import pytest

from tests.wire.security.tls_nodes import HOST, Node, until
from tests.wire.test_tcp import Clock, frame, run_on_clock
from wire.api_table import ListenerKind
from wire.security.authentication import SaslListener, SaslMechanism
from wire.security.connection_count import ConnectionCount, ConnectionLimits, Leaving
from wire.security.plain import PLAIN, PlainServer
from wire.security.principals import Principal
from wire.security.protocols import ServerSecurity
from wire.security.security_protocol import SecurityProtocol
from wire.serving import ServerLimits
from wire.tcp_server import Server


def test_connections_are_counted_in_all_and_by_address() -> None:
    counted = ConnectionCount()

    def enter(host: str, host_max: int = 2) -> str | None:
        return counted.enter("L", host, ConnectionLimits(of_all=3, of_host=host_max))

    assert [enter("a"), enter("a"), enter("b")] == [None, None, None]
    assert enter("c") == "more than 3 connections"
    counted.leave("L", "b")
    assert enter("a") == "more than 2 connections of one address"
    assert enter("a", host_max=3) is None
    for _ in range(3):
        counted.leave("L", "a")
    assert counted.count == 0
    assert enter("a", host_max=0) == "more than 0 connections of one address"


def test_listeners_share_what_a_node_may_have_and_may_have_less() -> None:
    counted = ConnectionCount()
    limits = ConnectionLimits(of_all=3)
    few = ConnectionLimits(of_all=3, of_listener=1)
    assert [counted.enter("ONE", "a", limits), counted.enter("TWO", "b", few)] == [None, None]
    assert counted.enter("TWO", "c", few) == "more than 1 connections of the listener"
    assert counted.enter("ONE", "d", limits) is None
    assert counted.enter("ONE", "e", limits) == "more than 3 connections"
    counted.leave("TWO", "b")
    assert counted.enter("ONE", "e", limits) is None


def test_brokers_get_in_where_clients_have_taken_all_the_room() -> None:
    counted = ConnectionCount()
    closed: list[str] = []
    for name, active_at in (("new", 2.0), ("old", 1.0)):
        counted.lend(partial(Leaving, active_at, partial(closed.append, name)))
    counted.lend(lambda: None)
    clients = ConnectionLimits(of_all=2)
    between = ConnectionLimits(of_all=2, is_protected=True)
    assert [counted.enter("OUT", "a", clients), counted.enter("OUT", "b", clients)] == [None, None]
    assert closed == []
    assert counted.enter("IN", "c", between) is None
    assert closed == ["old"]
    assert counted.enter("OUT", "d", clients) == "more than 2 connections"


def test_listener_between_brokers_is_open_while_clients_fill_the_other() -> None:
    """The client that was used longest ago makes room."""
    counted, clients = ConnectionCount(), ServerLimits(connections=ConnectionLimits(of_all=2))
    between = ServerLimits(connections=ConnectionLimits(of_all=2, is_protected=True))

    def server(limits: ServerLimits) -> Server:
        return Server(
            listener="L",
            kind=ListenerKind.BROKER,
            receive=lambda _: None,
            tokens=count(1),
            limits=limits,
            counted=counted,
        )

    async def test() -> None:
        outside, inside = server(clients), server(between)
        ports = [await each.start(HOST, 0) for each in (outside, inside)]
        opened = [await asyncio.open_connection(HOST, ports[0])]
        await until(lambda: outside.connection_count == 1)
        opened += [await asyncio.open_connection(HOST, ports[place]) for place in (0, 0)]
        assert await opened[2][0].read() == b"", "the third client is one too many"
        opened.append(await asyncio.open_connection(HOST, ports[1]))
        assert await opened[0][0].read() == b"", "the first client makes room"
        assert (outside.connection_count, inside.connection_count) == (1, 1)
        for _, writer in opened:
            writer.close()
        for each in (outside, inside):
            await each.stop()

    asyncio.run(asyncio.wait_for(test(), 10))


def test_an_address_may_have_a_limit_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    limits = ServerLimits(connections=ConnectionLimits(of_host=0, of_hosts={HOST: 1}))

    async def test() -> None:
        async with Node(ServerSecurity(), limits) as node:
            _, first = await asyncio.open_connection(HOST, node.port)
            await until(lambda: node.server.connection_count)
            reader, second = await asyncio.open_connection(HOST, node.port)
            assert await reader.read() == b""
            first.close()
            second.close()

    asyncio.run(asyncio.wait_for(test(), 10))
    assert "more than 1 connections of one address" in caplog.text


@pytest.mark.parametrize("every_seconds", [1, 31])
def test_a_byte_now_and_then_keeps_nothing_open(
    every_seconds: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(clock: Clock) -> None:
        limits = ServerLimits(first_frame_seconds=30, idle_seconds=600)
        async with Node(ServerSecurity(), limits) as node:
            _, writer = await asyncio.open_connection(HOST, node.port)
            for byte in pack(">i", 1000):
                writer.write(bytes([byte]))
                await clock.pass_seconds(every_seconds)
            await clock.pass_seconds(30)
            assert node.server.connection_count == 0
            writer.close()

    with caplog.at_level(logging.WARNING):
        run_on_clock(test)
    assert "no whole request within 30 s" in caplog.text


def test_nor_does_it_after_a_request() -> None:
    async def test(clock: Clock) -> None:
        async with Node(ServerSecurity(), ServerLimits(idle_seconds=60)) as node:
            reader, writer = await asyncio.open_connection(HOST, node.port)
            writer.write(frame(0))
            await reader.read(1)
            for _ in range(7):
                await clock.pass_seconds(10)
                writer.write(b"\0")
            await clock.pass_seconds(0)
            assert node.server.connection_count == 0
            writer.close()

    run_on_clock(test)


def test_a_frame_that_grows_slowly_is_waited_for() -> None:
    async def test(clock: Clock) -> None:
        async with Node(ServerSecurity(), ServerLimits(idle_seconds=60)) as node:
            reader, writer = await asyncio.open_connection(HOST, node.port)
            writer.write(frame(0))
            await reader.read(1)
            writer.write(pack(">i", 1 << 20))
            for _ in range(7):
                await clock.pass_seconds(10)
                writer.write(bytes(16 << 10))
                await clock.pass_seconds(0)
            assert node.server.connection_count == 1
            writer.close()

    run_on_clock(test)


def test_who_is_not_known_yet_may_send_half_a_mebibyte(caplog: pytest.LogCaptureFixture) -> None:
    """A frame of two gigabytes, too, is judged by its length: not a byte is kept of it."""

    async def test() -> None:
        plain = SaslMechanism(begin=lambda: PlainServer({}))
        sasl = SaslListener(mechanisms={PLAIN: plain})
        asking = ServerSecurity(protocol=SecurityProtocol.SASL_PLAINTEXT, sasl=sasl)
        async with Node(asking) as node:
            for length in ((512 << 10) + 1, 2**31 - 1):
                reader, writer = await asyncio.open_connection(HOST, node.port)
                writer.write(pack(">i", length))
                assert await reader.read() == b""
                writer.close()
            reader, writer = await asyncio.open_connection(HOST, node.port)
            await until(lambda: node.server.connection_count)
            (known,) = node.server.connections
            known.authenticated(Principal("User", "alice"))
            writer.write(pack(">i", 1 << 20) + bytes(1000))
            writer.write_eof()
            assert await reader.read() == b""
            writer.close()

    asyncio.run(asyncio.wait_for(test(), 10))
    assert caplog.text.count("above the limit of 524288") == 2
    assert "it ended within a frame, after 1004 bytes" in caplog.text
