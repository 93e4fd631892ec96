"""A connection to a peer, on virtual time and without sockets: time-outs, backoff, ends."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from wire.api_table import ListenerKind, api_versions_response
from wire.apis import DecodedRequest, decode_request, encode_response
from wire.framing import with_length
from wire.message import replace
from wire.messages.features import ApiVersionsRequest
from wire.messages.registration import UnregisterBrokerRequest, UnregisterBrokerResponse
from wire.tcp_client import ClientLimits, Connection, SendFailure

VERSIONS = api_versions_response(ListenerKind.CONTROLLER)
TIMED_OUT, DISCONNECTED = SendFailure.TIMED_OUT, SendFailure.DISCONNECTED


class Link(asyncio.Transport):
    """One connection as the peer sees it: `asked` holds what came over it."""

    def __init__(self, peer: "Peer", protocol: asyncio.BufferedProtocol) -> None:
        super().__init__()
        self.asked: list[DecodedRequest] = []
        self.is_aborted = False
        self._peer = peer
        self._protocol = protocol

    def write(self, data: Any) -> None:
        asked = decode_request(bytes(data)[4:], ListenerKind.CONTROLLER)
        if isinstance(asked.body, ApiVersionsRequest):
            asyncio.get_running_loop().call_soon(self.answer, asked, self._peer.versions)
        else:
            self.asked.append(asked)

    def answer(self, asked: DecodedRequest, body: object, *, other_id: int = 0) -> None:
        correlation_id = asked.correlation_id + other_id
        answer = encode_response(body, asked.api_key, asked.api_version, correlation_id)
        content = b"".join(with_length(answer))
        room = self._protocol.get_buffer(len(content))
        cast(memoryview, room)[: len(content)] = content
        self._protocol.buffer_updated(len(content))

    def end(self) -> None:
        """The connection is gone, and its protocol hears of it."""
        self._protocol.connection_lost(None)

    def abort(self) -> None:
        self.is_aborted = True


class Peer(asyncio.SelectorEventLoop):
    """A loop whose time advances by `pass_seconds` only; all connections lead to one peer."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0
        self.links: list[Link] = []
        self.versions = VERSIONS
        self.listens = asyncio.Event()
        self.listens.set()
        self.outcomes: list[tuple[int, Any]] = []
        self.timers: list[asyncio.TimerHandle] = []

    def time(self) -> float:
        return self.seconds

    def call_at(  # type: ignore[override]
        self, when: float, *what: Any, **more: Any
    ) -> asyncio.TimerHandle:
        handle = super().call_at(when, *what, **more)
        self.timers.append(handle)
        return handle

    async def create_connection(self, protocol_factory: Any, *_where: Any, **_more: Any) -> Any:
        try:
            await self.listens.wait()
        finally:  # a connection may be made though nobody waits for it any more
            protocol = protocol_factory()
            link = Link(self, protocol)
            self.links.append(link)
            protocol.connection_made(link)
        return link, protocol

    async def pass_seconds(self, seconds: float) -> None:
        self.seconds += seconds
        for _ in range(20):
            await asyncio.sleep(0)

    def ask(self, connection: Connection, number: int, *, timeout_ms: int = 60_000) -> None:
        body = UnregisterBrokerRequest(broker_id=number)
        connection.send(
            body,
            timeout_ms=timeout_ms,
            done=lambda outcome: self.outcomes.append((number, outcome)),
        )

    def asked(self, link: int = -1) -> list[int]:
        return [each.body.broker_id for each in self.links[link].asked]


def play(
    script: Callable[[Peer, Connection], Awaitable[None]], limits: ClientLimits | None = None
) -> None:
    async def work(peer: Peer) -> None:
        async with asyncio.TaskGroup() as tasks:
            connection = Connection("peer", 1, client_id="t", tasks=tasks, limits=limits)
            await script(peer, connection)
            connection.close()

    loop = Peer()
    try:
        loop.run_until_complete(work(loop))
    finally:
        loop.close()


ANSWER = UnregisterBrokerResponse(error_message="answer")


# --- time-outs ------------------------------------------------------------------------------------


def test_request_with_less_time_is_timed_out_though_it_came_later() -> None:
    async def script(peer: Peer, connection: Connection) -> None:
        peer.ask(connection, 1, timeout_ms=10_000)
        peer.ask(connection, 2, timeout_ms=1_000)
        await peer.pass_seconds(0)
        await peer.pass_seconds(1.5)
        assert peer.outcomes == [(2, TIMED_OUT), (1, DISCONNECTED)]

    play(script)


@pytest.mark.parametrize("listens", [True, False], ids=["in flight", "waiting"])
def test_next_time_out_is_looked_at_when_one_has_passed(listens: bool) -> None:
    async def script(peer: Peer, connection: Connection) -> None:
        if not listens:
            peer.listens.clear()
        peer.ask(connection, 1, timeout_ms=1_000)
        peer.ask(connection, 2, timeout_ms=5_000)
        await peer.pass_seconds(0)
        if listens:
            peer.links[0].answer(peer.links[0].asked[0], ANSWER)
        await peer.pass_seconds(1.5)
        assert peer.outcomes == [(1, ANSWER if listens else TIMED_OUT)]
        await peer.pass_seconds(5)
        assert peer.outcomes[1:] == [(2, TIMED_OUT)]

    play(script, ClientLimits(connect_seconds=60))


def test_time_out_is_looked_at_after_a_time_in_which_nothing_was_on_its_way() -> None:
    async def script(peer: Peer, connection: Connection) -> None:
        peer.ask(connection, 1, timeout_ms=1_000)
        await peer.pass_seconds(0)
        peer.links[0].answer(peer.links[0].asked[0], ANSWER)
        await peer.pass_seconds(2)
        peer.ask(connection, 2, timeout_ms=1_000)
        await peer.pass_seconds(1.5)
        assert peer.outcomes == [(1, ANSWER), (2, TIMED_OUT)]

    play(script)


def test_one_timer_serves_all_requests() -> None:
    async def script(peer: Peer, connection: Connection) -> None:
        peer.ask(connection, 0)
        await peer.pass_seconds(0)
        for number in range(10):
            peer.ask(connection, number, timeout_ms=20_000 - 1_000 * number)
        pending = [each for each in peer.timers if not each.cancelled() and each.when() > 2.0]
        assert [each.when() for each in pending] == [11.0]

    play(script)


def test_what_has_timed_out_before_there_is_a_connection_is_not_sent() -> None:
    async def script(peer: Peer, connection: Connection) -> None:
        peer.listens.clear()
        peer.ask(connection, 1, timeout_ms=1_000)
        peer.ask(connection, 2)
        await peer.pass_seconds(1.5)
        assert peer.outcomes == [(1, TIMED_OUT)]
        peer.listens.set()
        await peer.pass_seconds(0)
        assert peer.asked() == [2]

    play(script, ClientLimits(connect_seconds=60))


# --- bounds, versions, answers --------------------------------------------------------------------


def test_requests_beyond_the_bound_fail_at_once() -> None:
    async def script(peer: Peer, connection: Connection) -> None:
        for number in range(3):
            peer.ask(connection, number)
        await peer.pass_seconds(0)
        assert peer.outcomes == [(2, DISCONNECTED)]
        assert peer.asked() == [0, 1]

    play(script, ClientLimits(waiting_max=2))


def test_peer_that_comes_back_with_other_versions_is_asked_in_those() -> None:
    async def script(peer: Peer, connection: Connection) -> None:
        peer.ask(connection, 1)
        await peer.pass_seconds(0)
        peer.links[0].end()
        peer.versions = replace(VERSIONS, api_keys=VERSIONS.api_keys[:1])
        await peer.pass_seconds(60)
        peer.ask(connection, 2)
        await peer.pass_seconds(0)
        assert peer.outcomes == [(1, DISCONNECTED), (2, SendFailure.UNSUPPORTED_VERSION)]

    play(script)


def test_nothing_of_a_request_that_does_not_fit_is_written() -> None:
    async def script(peer: Peer, connection: Connection) -> None:
        for number in (1, 2**31, 3):
            peer.ask(connection, number)
            await peer.pass_seconds(0)
        assert peer.asked() == [1, 3], "each write has one whole request, or else it is Malformed"
        for asked in peer.links[0].asked:
            peer.links[0].answer(asked, ANSWER)
        refused = (2**31, SendFailure.UNSUPPORTED_VERSION)
        assert peer.outcomes == [refused, (1, ANSWER), (3, ANSWER)]

    play(script)


def test_answer_to_another_request_ends_the_connection() -> None:
    async def script(peer: Peer, connection: Connection) -> None:
        peer.ask(connection, 1)
        await peer.pass_seconds(0)
        peer.links[0].answer(peer.links[0].asked[0], ANSWER, other_id=1)
        await peer.pass_seconds(0)
        assert peer.outcomes == [(1, DISCONNECTED)]
        assert peer.links[0].is_aborted

    play(script)


# --- backoff, and ends ----------------------------------------------------------------------------


def test_backoff_grows_with_every_failure_and_begins_anew_after_a_success() -> None:
    async def script(peer: Peer, connection: Connection) -> None:
        async def is_left_alone_for(seconds: float) -> bool:
            """Lose the connection, if there is one; is the next one made then, and not before?"""
            made = len(peer.links)
            await peer.pass_seconds(seconds - 0.25)
            peer.ask(connection, 1)
            await peer.pass_seconds(0)
            before = len(peer.links) - made
            await peer.pass_seconds(0.5)
            peer.ask(connection, 2)
            await peer.pass_seconds(0)
            return (before, len(peer.links) - made) == (0, 1)

        peer.ask(connection, 0)
        await peer.pass_seconds(0)
        for _ in range(2):
            peer.links[-1].end()
            assert await is_left_alone_for(1)
        peer.listens.clear()
        peer.links[-1].end()
        await peer.pass_seconds(1.5)
        peer.ask(connection, 3)
        await peer.pass_seconds(0)
        await peer.pass_seconds(1.5)  # it is not there: the second failure in a row
        peer.listens.set()
        assert await is_left_alone_for(2)

    play(script, ClientLimits(backoff_first_seconds=1, backoff_last_seconds=8, connect_seconds=1))


def test_end_of_an_earlier_connection_leaves_the_next_one_alone() -> None:
    async def script(peer: Peer, connection: Connection) -> None:
        peer.ask(connection, 1, timeout_ms=1_000)
        await peer.pass_seconds(0)
        await peer.pass_seconds(1.5)
        peer.ask(connection, 2)
        await peer.pass_seconds(0)
        peer.links[0].end()
        peer.links[1].answer(peer.links[1].asked[0], ANSWER)
        assert peer.outcomes == [(1, TIMED_OUT), (2, ANSWER)]

    play(script)


def test_connection_that_comes_about_after_the_end_is_closed() -> None:
    async def script(peer: Peer, connection: Connection) -> None:
        peer.listens.clear()
        peer.ask(connection, 1)
        await peer.pass_seconds(0)
        connection.close()
        await peer.pass_seconds(0)
        assert [link.is_aborted for link in peer.links] == [True]
        assert peer.outcomes == [(1, DISCONNECTED)]
        peer.ask(connection, 2)
        await peer.pass_seconds(0)
        assert peer.outcomes[1:] == [(2, DISCONNECTED)]

    play(script)
