"""SASL over sockets: limits before a client is known, delays, bare tokens, sessions that end."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import count
from struct import pack, unpack
from typing import Any, Self

import pytest

from tests.wire.test_tcp import HOST, Clock, run, run_on_clock
from wire.api_table import ListenerKind, api_versions_response
from wire.apis import decode_response, encode_request
from wire.canonical import preload
from wire.errors import ErrorCode
from wire.framing import with_length
from wire.messages.features import ApiVersionsRequest
from wire.messages.metadata import DescribeClusterRequest, DescribeClusterResponse
from wire.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from wire.security.authentication import SaslListener, SaslMechanism
from wire.security.client_authentication import SaslLogin
from wire.security.plain import PlainClient, PlainServer
from wire.security.principals import ANONYMOUS, Principal
from wire.security.protocols import ClientSecurity, ServerSecurity
from wire.security.security_protocol import SecurityProtocol
from wire.serving import Received
from wire.tcp_client import ClientLimits, ConnectionPool, SendFailure
from wire.tcp_server import Server

ALICE = b"\0alice\0secret"
HANDSHAKE, SHOW, ASK = 17, 36, 60
ANSWER = DescribeClusterResponse(cluster_id="c", controller_id=1)


class Listener:
    """Answers every request that is let through, and remembers who asked."""

    def __init__(self, session_ms: int = 0, *, sasl: SaslListener | None = None, asks: bool = True):
        plain = SaslMechanism(begin=lambda: PlainServer({"alice": "secret"}), session_ms=session_ms)
        sasl = sasl or SaslListener(mechanisms={"PLAIN": plain})
        self.asked: list[Principal] = []
        self.port = 0
        self.server = Server(
            listener="SASL",
            kind=ListenerKind.CONTROLLER,
            receive=self._receive,
            tokens=count(),
            security=ServerSecurity(
                protocol=SecurityProtocol.SASL_PLAINTEXT, sasl=sasl if asks else None
            ),
        )

    def _receive(self, received: Received) -> None:
        if isinstance(received.request.body, ApiVersionsRequest):
            self.server.reply(received.token, api_versions_response(self.server.kind))
        else:
            self.asked.append(received.principal)
            self.server.reply(received.token, ANSWER)

    async def __aenter__(self) -> Self:
        preload()
        self.port = await self.server.start(HOST, 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.stop()


class Caller:
    """A client that says what it likes."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection(HOST, self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    def write(self, content: bytes) -> None:
        self._writer.write(b"".join(with_length([content])))

    def announce(self, size: int) -> None:
        """Begin a frame, and leave it at that."""
        self._writer.write(pack(">i", size))

    async def read(self) -> bytes:
        (size,) = unpack(">i", await self._reader.readexactly(4))
        return await self._reader.readexactly(size)

    async def ask(self, body: Any, key: int, version: int) -> Any:
        self.write(b"".join(encode_request(body, version, 7)))
        return decode_response(await self.read(), key, version)[1]

    async def choose(self, version: int = 1, mechanism: str = "PLAIN") -> Any:
        return await self.ask(SaslHandshakeRequest(mechanism=mechanism), HANDSHAKE, version)

    async def show(self, token: bytes) -> Any:
        return await self.ask(SaslAuthenticateRequest(auth_bytes=token), SHOW, 2)

    async def asks(self) -> Any:
        return await self.ask(DescribeClusterRequest(), ASK, 1)

    async def is_closed(self) -> bool:
        try:
            return await self._reader.read(1) == b""
        except ConnectionError:
            return True


def with_caller(test: Callable[[Listener, Caller], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        async with Listener(**options) as listener, Caller(listener.port) as caller:
            await test(listener, caller)

    run(main)


def test_requests_are_those_of_the_user_who_authenticated() -> None:
    async def test(listener: Listener, caller: Caller) -> None:
        assert (await caller.choose()).error_code is ErrorCode.NONE
        assert (await caller.show(ALICE)).error_code is ErrorCode.NONE
        assert await caller.asks() == ANSWER
        assert listener.asked == [Principal("User", "alice")]

    with_caller(test)


def test_bare_tokens_are_answered_bare() -> None:
    async def test(listener: Listener, caller: Caller) -> None:
        await caller.choose(version=0)
        caller.write(ALICE)
        assert await caller.read() == b""
        assert await caller.asks() == ANSWER

    with_caller(test)


def test_a_request_before_authentication_reaches_nobody() -> None:
    async def test(listener: Listener, caller: Caller) -> None:
        caller.write(b"".join(encode_request(DescribeClusterRequest(), 1, 7)))
        assert await caller.is_closed()
        assert listener.asked == []

    with_caller(test)


def test_a_listener_without_sasl_says_that_it_has_none() -> None:
    async def test(listener: Listener, caller: Caller) -> None:
        assert (await caller.choose()).error_code is ErrorCode.ILLEGAL_SASL_STATE
        assert (await caller.show(ALICE)).error_code is ErrorCode.ILLEGAL_SASL_STATE
        assert await caller.asks() == ANSWER
        assert listener.asked == [ANONYMOUS]

    with_caller(test, asks=False)


def test_frames_are_small_until_a_client_is_known() -> None:
    async def test(listener: Listener, caller: Caller) -> None:
        await caller.choose()
        caller.announce((512 << 10) + 1)
        assert await caller.is_closed()

    with_caller(test)

    async def known(listener: Listener, caller: Caller) -> None:
        await caller.choose()
        await caller.show(ALICE)
        caller.write(b"".join(encode_request(DescribeClusterRequest(), 1, 7)) + bytes(600 << 10))
        await caller.read()
        assert len(listener.asked) == 1

    with_caller(known)


# --- on virtual time -----------------------------------------------------------------------------


def test_a_failure_is_told_late_and_then_closed() -> None:
    async def test(clock: Clock) -> None:
        async with Listener() as listener, Caller(listener.port) as caller:
            await settled(clock, caller.choose())
            answer = asyncio.create_task(caller.show(b"\0alice\0wrong"))
            await clock.pass_seconds(0)  # so that it arrives
            await clock.pass_seconds(0.099)
            assert not answer.done()
            await clock.pass_seconds(0.002)
            told = await settled(clock, answer)
            assert told.error_code is ErrorCode.SASL_AUTHENTICATION_FAILED
            assert await settled(clock, caller.is_closed())
            assert listener.asked == []

    run_on_clock(test)


@pytest.mark.parametrize("step", ["nothing", "versions", "handshake"])
def test_whoever_does_not_authenticate_in_time_is_closed(step: str) -> None:
    async def test(clock: Clock) -> None:
        async with Listener() as listener, Caller(listener.port) as caller:
            await clock.pass_seconds(0)
            if step == "versions":
                await settled(clock, caller.ask(ApiVersionsRequest(), 18, 0))
            if step == "handshake":
                await settled(clock, caller.choose())
            await clock.pass_seconds(9.9)
            assert listener.server.connection_count == 1
            await clock.pass_seconds(0.2)
            assert listener.server.connection_count == 0

    run_on_clock(test)


async def settled(clock: Clock, wanted: Any) -> Any:
    """Let sockets work, without any time passing."""
    task = asyncio.ensure_future(wanted)
    for _ in range(200):
        if task.done():
            break
        await clock.pass_seconds(0)
    return task.result()


# --- our own client ------------------------------------------------------------------------------


def login(password: str = "secret") -> ClientSecurity:
    sasl = SaslLogin(mechanism="PLAIN", begin=lambda: PlainClient("alice", password))
    return ClientSecurity(protocol=SecurityProtocol.SASL_PLAINTEXT, sasl=sasl)


async def ask(clock: Clock, pool: ConnectionPool, port: int) -> Any:
    answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    pool.send(
        HOST,
        port,
        "test",
        DescribeClusterRequest(),
        timeout_ms=60_000,
        done=answered.set_result,
    )
    return await settled(clock, answered)


def test_a_client_renews_its_session_in_time() -> None:
    async def test(clock: Clock) -> None:
        async with (
            Listener(session_ms=10_000) as listener,
            ConnectionPool(client_id="c", security_of=lambda _: login()) as pool,
        ):
            for _ in range(5):
                assert await ask(clock, pool, listener.port) == ANSWER
                link = pool.connection(HOST, listener.port, "test")._link
                await clock.pass_seconds(4)
            assert pool.connection(HOST, listener.port, "test")._link is link
            await clock.pass_seconds(60)  # idle, and renewed though it is over
            assert await ask(clock, pool, listener.port) == ANSWER
            assert pool.connection(HOST, listener.port, "test")._link is link
            assert set(listener.asked) == {Principal("User", "alice")}

    run_on_clock(test)


def test_a_client_that_goes_on_without_renewing_is_closed() -> None:
    async def test(clock: Clock) -> None:
        async with Listener(session_ms=10_000) as listener, Caller(listener.port) as caller:
            await settled(clock, caller.choose())
            assert (await settled(clock, caller.show(ALICE))).session_lifetime_ms == 10_000
            await clock.pass_seconds(9.9)
            assert await settled(clock, caller.asks()) == ANSWER
            await clock.pass_seconds(0.2)
            caller.write(b"".join(encode_request(DescribeClusterRequest(), 1, 7)))
            assert await settled(clock, caller.is_closed())
            assert len(listener.asked) == 1

    run_on_clock(test)


def test_a_client_with_the_wrong_password_hears_of_it(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        async with (
            Listener() as listener,
            ConnectionPool(
                client_id="c",
                security_of=lambda _: login("wrong"),
                limits=ClientLimits(connect_seconds=5),
            ) as pool,
        ):
            request = DescribeClusterRequest()
            pool.send(HOST, listener.port, "x", request, timeout_ms=5000, done=answered.set_result)
            assert await answered is SendFailure.DISCONNECTED
            assert listener.asked == []

    with caplog.at_level(logging.WARNING):
        run(main)
    logged = " ".join(record.getMessage() for record in caplog.records)
    assert "not connected to=" in logged
    assert "Invalid username or password" in logged
    assert "wrong" not in logged
