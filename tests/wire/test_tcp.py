"""Server and connections on loopback: order, bounds, versions, strangers, ends."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from itertools import count
from struct import pack, unpack
from typing import Any, Self, cast
from unittest.mock import patch

import pytest

from wire.api_table import ListenerKind, api_versions_response
from wire.apis import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from wire.canonical import preload
from wire.errors import ErrorCode
from wire.forwarding import wrap_request
from wire.framing import Traffic, with_length
from wire.messages.features import ApiVersionsRequest
from wire.messages.metadata import DescribeClusterRequest, DescribeClusterResponse
from wire.messages.producing import AllocateProducerIdsRequest
from wire.messages.quorum_epochs import VotePartition, VoteRequest, VoteTopic
from wire.messages.registration import (
    EnvelopeRequest,
    EnvelopeResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from wire.security.connection_count import ConnectionLimits
from wire.security.principals import ANONYMOUS, Forwarder
from wire.serving import Received, ServerLimits
from wire.tcp_client import ClientLimits, ConnectionPool, SendFailure
from wire.tcp_output import Output
from wire.tcp_server import Server

HOST = "127.0.0.1"


class Node:
    """A server that answers ApiVersions and leaves the rest to the test."""

    def __init__(
        self,
        kind: ListenerKind = ListenerKind.CONTROLLER,
        limits: ServerLimits | None = None,
        *,
        gathers: bool = False,
    ) -> None:
        self.received: asyncio.Queue[Received] = asyncio.Queue()
        self.server = Server(
            listener=kind.name,
            kind=kind,
            receive=self._receive,
            tokens=count(),
            limits=limits,
            gathers=gathers,
        )
        self.port = 0

    def _receive(self, received: Received) -> None:
        if isinstance(received.request.body, ApiVersionsRequest):
            self.server.reply(received.token, api_versions_response(self.server.kind))
            self.server.flush()
        else:
            self.received.put_nowait(received)

    async def __aenter__(self) -> Self:
        preload()
        self.port = await self.server.start(HOST, 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.stop()


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(10):
            await test()

    asyncio.run(main())


class Clock(asyncio.SelectorEventLoop):
    """A loop with real sockets, whose time advances by `pass_seconds` only."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    def time(self) -> float:
        return self.seconds

    async def pass_seconds(self, seconds: float) -> None:
        self.seconds += seconds
        for _ in range(20):
            await asyncio.sleep(0)


def run_on_clock(test: Callable[[Clock], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=Clock) as runner:
        runner.run(test(cast(Clock, runner.get_loop())))


class Asker:
    """Sends through a pool and gathers the outcomes in the order in which they come."""

    def __init__(self, pool: ConnectionPool, port: int) -> None:
        self.outcomes: asyncio.Queue[Any] = asyncio.Queue()
        self._pool = pool
        self._port = port

    def ask(self, body: Any, *, timeout_ms: int = 5000, channel: str = "test") -> None:
        self._pool.send(
            HOST,
            self._port,
            channel,
            body,
            timeout_ms=timeout_ms,
            done=self.outcomes.put_nowait,
        )

    async def connected_again(self, node: Node, reply: object) -> object:
        """Ask until the backoff is over, and `node` replies."""

        async def reply_once() -> None:
            node.server.reply((await node.received.get()).token, reply)

        replying = asyncio.create_task(reply_once())
        told: object = SendFailure.DISCONNECTED
        while told is SendFailure.DISCONNECTED:
            self.ask(question(2))
            told = await self.outcomes.get()
        await replying
        return told


def question(broker_id: int) -> UnregisterBrokerRequest:
    return UnregisterBrokerRequest(broker_id=broker_id)


def answer(text: str) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(error_message=text)


def frame(number: int) -> bytes:
    """A question, as it is sent."""
    return b"".join(with_length(encode_request(question(number), 0, number, None)))


async def raw_exchange(port: int, content: bytes) -> bytes:
    """Write bytes, and read until the server closes."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(content)
    received = await reader.read()
    writer.close()
    await writer.wait_closed()
    return received


def test_answers_leave_in_the_order_of_the_requests() -> None:
    async def test() -> None:
        async with Node() as node, ConnectionPool(client_id="test") as pool:
            asker = Asker(pool, node.port)
            for number in range(3):
                asker.ask(question(number))
            received = [await node.received.get() for _ in range(3)]
            assert [one.request.body.broker_id for one in received] == [0, 1, 2]
            for one in reversed(received):
                node.server.reply(one.token, answer(str(one.request.body.broker_id)))
                await asyncio.sleep(0)
                await asyncio.sleep(0)  # what may leave has left
            assert [(await asker.outcomes.get()).error_message for _ in range(3)] == [*"012"]

    run(test)


def test_gathered_answers_leave_together_when_told_to() -> None:
    async def test() -> None:
        async with Node(gathers=True) as node, ConnectionPool(client_id="test") as pool:
            asker = Asker(pool, node.port)
            for number in range(3):
                asker.ask(question(number))
            received = [await node.received.get() for _ in range(3)]
            with patch.object(Output, "write", autospec=True, side_effect=Output.write) as write:
                for one in received:
                    node.server.reply(one.token, answer(str(one.request.body.broker_id)))
                for _ in range(10):  # turns of the loop
                    await asyncio.sleep(0)
                assert write.call_count == 0
                node.server.flush()
                assert write.call_count == 1
            assert [(await asker.outcomes.get()).error_message for _ in range(3)] == [*"012"]

    run(test)


def test_requests_that_waited_for_room_are_read_when_gathered_answers_leave() -> None:
    async def test() -> None:
        limits = ServerLimits(outstanding_max=1)
        async with (
            Node(limits=limits, gathers=True) as node,
            ConnectionPool(client_id="test") as pool,
        ):
            asker = Asker(pool, node.port)
            for number in range(3):
                asker.ask(question(number))
            for number in range(3):
                one = await node.received.get()
                assert node.received.empty()
                node.server.reply(one.token, answer(str(number)))
                node.server.flush()
            assert [(await asker.outcomes.get()).error_message for _ in range(3)] == [*"012"]

    run(test)


def test_bytes_that_one_end_sends_are_those_that_the_other_receives_by_api() -> None:
    async def test() -> None:
        traffic = Traffic()
        async with Node() as node, ConnectionPool(client_id="test", traffic=traffic) as pool:
            asker = Asker(pool, node.port)
            asker.ask(question(0))
            node.server.reply((await node.received.get()).token, answer("0"))
            await asker.outcomes.get()
            assert set(traffic.sent_bytes) == {18, 64}, "ApiVersions and UnregisterBroker"
            assert traffic.sent_bytes == node.server.traffic.received_bytes
            assert traffic.received_bytes == node.server.traffic.sent_bytes

    run(test)


def test_what_came_in_an_envelope_counts_under_its_own_api() -> None:
    async def test() -> None:
        async with Node() as node, ConnectionPool(client_id="broker") as pool:
            asker = Asker(pool, node.port)
            inner = b"".join(encode_request(question(3), 0, 99, "admin"))
            asker.ask(wrap_request(inner, client_host=HOST))
            node.server.reply((await node.received.get()).token, answer("done"))
            await asker.outcomes.get()
            traffic = node.server.traffic
            assert set(traffic.received_bytes) == set(traffic.sent_bytes) == {18, 64}

    run(test)


def test_server_names_listener_client_and_version() -> None:
    async def test() -> None:
        async with Node() as node, ConnectionPool(client_id="someone") as pool:
            Asker(pool, node.port).ask(question(7))
            received = await node.received.get()
            assert (received.listener, received.client_host) == ("CONTROLLER", HOST)
            assert received.request.client_id == "someone"
            assert received.request.api_version == 0
            assert received.forwarder is None

    run(test)


def test_requests_beyond_the_bound_wait_in_the_socket() -> None:
    async def test() -> None:
        limits = ServerLimits(outstanding_max=2)
        async with Node(limits=limits) as node, ConnectionPool(client_id="test") as pool:
            asker = Asker(pool, node.port)
            for number in range(5):
                asker.ask(question(number))
            first = [await node.received.get() for _ in range(2)]
            assert node.received.empty()
            node.server.reply(first[0].token, answer("0"))
            third = await node.received.get()
            assert third.request.body.broker_id == 2
            assert node.received.empty()

    run(test)


def test_request_that_is_hung_up_on_costs_its_connection() -> None:
    async def test() -> None:
        async with Node() as node, ConnectionPool(client_id="test") as pool:
            asker = Asker(pool, node.port)
            asker.ask(question(0))
            node.server.hang_up((await node.received.get()).token)
            assert await asker.outcomes.get() is SendFailure.DISCONNECTED

    run(test)


def test_reply_to_a_lost_connection_leaves_nothing_to_write() -> None:
    async def test() -> None:
        async with Node(gathers=True) as node:
            reader, writer = await asyncio.open_connection(HOST, node.port)
            writer.write(frame(0) + frame(1))
            first, second = [await node.received.get() for _ in range(2)]
            node.server.hang_up(first.token)
            assert await reader.read() == b""
            node.server.reply(second.token, answer("for nobody"))
            assert not node.server.unwritten
            writer.close()
            await writer.wait_closed()

    run(test)


def test_reply_of_none_sends_nothing() -> None:
    async def test() -> None:
        async with Node() as node, ConnectionPool(client_id="test") as pool:
            asker = Asker(pool, node.port)
            asker.ask(question(0), timeout_ms=50)
            node.server.reply((await node.received.get()).token, None)
            assert await asker.outcomes.get() is SendFailure.TIMED_OUT

    run(test)


def test_timed_out_request_closes_its_connection_and_fails_those_behind_it() -> None:
    async def test() -> None:
        async with Node() as node, ConnectionPool(client_id="test") as pool:
            asker = Asker(pool, node.port)
            asker.ask(question(0), timeout_ms=50)
            asker.ask(question(1))
            assert await asker.outcomes.get() is SendFailure.TIMED_OUT
            assert await asker.outcomes.get() is SendFailure.DISCONNECTED
            asker.ask(question(2))
            received = [await node.received.get() for _ in range(3)]
            node.server.reply(received[0].token, answer("too late: ignored"))
            node.server.reply(received[2].token, answer("in time"))
            assert (await asker.outcomes.get()).error_message == "in time"

    run(test)


def test_peer_is_dialled_where_the_override_says() -> None:
    async def test() -> None:
        async with Node() as node:
            overrides = {("nowhere.invalid", 9): (HOST, node.port)}
            async with ConnectionPool(client_id="test", dial_overrides=overrides) as pool:
                done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
                pool.send(
                    "nowhere.invalid",
                    9,
                    "test",
                    DescribeClusterRequest(),
                    timeout_ms=5000,
                    done=done.set_result,
                )
                received = await node.received.get()
                node.server.reply(received.token, DescribeClusterResponse())
                assert isinstance(await done, DescribeClusterResponse)

    run(test)


def test_peer_that_is_not_there_is_a_failure_and_is_asked_again_after_the_backoff() -> None:
    async def test() -> None:
        async with Node() as node:
            port = node.port
        limits = ClientLimits(backoff_first_seconds=0.01)
        async with ConnectionPool(client_id="test", limits=limits) as pool:
            asker = Asker(pool, port)
            asker.ask(question(0))
            assert await asker.outcomes.get() is SendFailure.DISCONNECTED
            again = Node()
            assert await again.server.start(HOST, port) == port
            assert await asker.connected_again(again, answer("here")) == answer("here")
            await again.server.stop()

    run(test)


def test_while_a_peer_is_left_alone_requests_to_it_fail_at_once() -> None:
    async def test() -> None:
        async with Node() as node:
            port = node.port
        limits = ClientLimits(backoff_first_seconds=3600.0, backoff_last_seconds=3600.0)
        async with ConnectionPool(client_id="test", limits=limits) as pool:
            asker = Asker(pool, port)
            asker.ask(question(0))
            assert await asker.outcomes.get() is SendFailure.DISCONNECTED
            again = Node()
            await again.server.start(HOST, port)
            asker.ask(question(1))
            assert await asker.outcomes.get() is SendFailure.DISCONNECTED
            assert again.received.empty()
            await again.server.stop()

    run(test)


async def babbler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers ApiVersions, and goes on to answer what nobody asked."""
    (length,) = unpack(">i", await reader.readexactly(4))
    asked = decode_request(await reader.readexactly(length), ListenerKind.CONTROLLER)
    versions = api_versions_response(ListenerKind.CONTROLLER)
    answered = encode_response(versions, asked.api_key, asked.api_version, asked.correlation_id)
    writer.write(b"".join([*with_length(answered), *with_length([b"blah"])]))
    try:
        await reader.read()
    finally:  # also if the test is over first
        writer.close()


def test_peer_that_is_disowned_while_versions_are_exchanged_is_a_failure() -> None:
    """The connection is gone before the task that opens it has seen the answer: an error of that
    task would end every other connection with it."""

    async def test() -> None:
        server = await asyncio.start_server(babbler, HOST, 0)
        async with server, ConnectionPool(client_id="test") as pool:
            asker = Asker(pool, server.sockets[0].getsockname()[1])
            for _ in range(2):
                asker.ask(question(1))
                assert await asker.outcomes.get() is SendFailure.DISCONNECTED

    run(test)


@pytest.mark.parametrize(
    ("host", "port"), [("a..b", 9092), ("no.such.host.invalid", 1), (HOST, 99999)]
)
def test_address_that_cannot_be_is_a_failure(host: str, port: int) -> None:
    async def test() -> None:
        outcomes: asyncio.Queue[Any] = asyncio.Queue()
        async with ConnectionPool(client_id="test") as pool:
            pool.send(host, port, "", question(0), timeout_ms=5000, done=outcomes.put_nowait)
            assert await outcomes.get() is SendFailure.DISCONNECTED

    run(test)


def test_server_that_stops_fails_what_it_did_not_answer() -> None:
    async def test() -> None:
        async with ConnectionPool(client_id="test") as pool:
            async with Node() as node:
                asker = Asker(pool, node.port)
                asker.ask(question(0))
                await node.received.get()
            assert await asker.outcomes.get() is SendFailure.DISCONNECTED
            assert node.server.connection_count == 0

    run(test)


def test_pool_that_is_left_fails_what_has_no_answer() -> None:
    async def test() -> None:
        async with Node() as node:
            async with ConnectionPool(client_id="test") as pool:
                asker = Asker(pool, node.port)
                asker.ask(question(0))
                await node.received.get()
            assert await asker.outcomes.get() is SendFailure.DISCONNECTED

    run(test)


def test_api_that_the_peer_lacks_is_a_failure() -> None:
    async def test() -> None:
        async with (
            Node(ListenerKind.BROKER) as node,
            ConnectionPool(client_id="test") as pool,
        ):
            asker = Asker(pool, node.port)
            asker.ask(AllocateProducerIdsRequest(broker_id=1))
            assert await asker.outcomes.get() is SendFailure.UNSUPPORTED_VERSION

    run(test)


def test_channels_are_connections_of_their_own() -> None:
    async def test() -> None:
        async with Node() as node, ConnectionPool(client_id="test") as pool:
            asker = Asker(pool, node.port)
            asker.ask(question(0), channel="slow")
            await node.received.get()
            asker.ask(question(1), channel="fast")
            node.server.reply((await node.received.get()).token, answer("first"))
            assert (await asker.outcomes.get()).error_message == "first"
            assert node.server.connection_count == 2

    run(test)


def test_envelope_itself_may_be_refused() -> None:
    async def test() -> None:
        async with Node() as node, ConnectionPool(client_id="broker") as pool:
            inner = b"".join(encode_request(question(3), 0, 99, "admin"))
            asker = Asker(pool, node.port)
            asker.ask(wrap_request(inner, client_host="10.0.0.9"))
            refusal = EnvelopeResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            node.server.reply((await node.received.get()).token, refusal)
            assert await asker.outcomes.get() == refusal

    run(test)


def test_forwarded_request_is_seen_bare_and_answered_in_its_envelope() -> None:
    async def test() -> None:
        async with Node() as node, ConnectionPool(client_id="broker") as pool:
            inner = b"".join(encode_request(question(3), 0, 99, "admin"))
            asker = Asker(pool, node.port)
            asker.ask(wrap_request(inner, client_host="10.0.0.9"))
            received = await node.received.get()
            assert received.forwarder == Forwarder(ANONYMOUS, HOST)
            assert received.client_host == "10.0.0.9"
            assert received.request.client_id == "admin"
            node.server.reply(received.token, answer("done"))
            outcome: EnvelopeResponse = await asker.outcomes.get()
            assert outcome.error_code is ErrorCode.NONE
            assert decode_response(outcome.response_data or b"", 64, 0) == (99, answer("done"))

    run(test)


def test_not_controller_becomes_the_error_of_the_envelope() -> None:
    async def test() -> None:
        async with Node() as node, ConnectionPool(client_id="broker") as pool:
            inner = b"".join(encode_request(question(3), 0, 99, "admin"))
            asker = Asker(pool, node.port)
            asker.ask(wrap_request(inner, client_host=HOST))
            token = (await node.received.get()).token
            node.server.reply(token, UnregisterBrokerResponse(error_code=ErrorCode.NOT_CONTROLLER))
            outcome = await asker.outcomes.get()
            assert outcome == EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)

    run(test)


def test_envelope_that_cannot_be_opened_is_refused_by_the_edge() -> None:
    async def test() -> None:
        async with Node() as node, ConnectionPool(client_id="broker") as pool:
            asker = Asker(pool, node.port)
            vote = VoteRequest(topics=())
            not_forwardable = b"".join(encode_request(vote, 0, 1, None))
            inner = b"".join(encode_request(question(3), 0, 99, "admin"))
            asker.ask(wrap_request(not_forwardable, client_host=HOST))
            asker.ask(wrap_request(b"\0\x40\0\x09nonsense", client_host=HOST))
            asker.ask(EnvelopeRequest(request_data=inner, client_host_address=b"\x7f"))
            asker.ask(EnvelopeRequest(request_data=inner, client_host_address=bytes(4)))
            errors = [(await asker.outcomes.get()).error_code for _ in range(4)]
            assert errors == [
                ErrorCode.INVALID_REQUEST,
                ErrorCode.UNSUPPORTED_VERSION,
                ErrorCode.INVALID_REQUEST,
                ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE,
            ]
            assert node.received.empty()

    run(test)


def test_answer_that_cannot_be_encoded_costs_its_connection_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test() -> None:
        async with Node() as node, ConnectionPool(client_id="test") as pool:
            asker = Asker(pool, node.port)
            asker.ask(question(1))
            received = await node.received.get()
            node.server.reply(received.token, UnregisterBrokerResponse(throttle_time_ms=1 << 31))
            assert await asker.outcomes.get() is SendFailure.DISCONNECTED
            assert await asker.connected_again(node, answer("alive")) == answer("alive")

    with caplog.at_level(logging.ERROR):
        run(test)
    (line,) = [record.getMessage() for record in caplog.records]
    assert "UnregisterBrokerResponse version 0" in line
    assert "UnregisterBrokerResponse" in line


def test_forwarded_answer_that_cannot_be_encoded_is_an_error_in_its_envelope(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A broker's connection carries what many clients ask."""

    async def test() -> None:
        async with Node() as node, ConnectionPool(client_id="broker") as pool:
            inner = b"".join(encode_request(question(3), 0, 99, "admin"))
            asker = Asker(pool, node.port)
            asker.ask(wrap_request(inner, client_host=HOST))
            token = (await node.received.get()).token
            node.server.reply(token, UnregisterBrokerResponse(throttle_time_ms=1 << 31))
            outcome = await asker.outcomes.get()
            assert outcome == EnvelopeResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)

    with caplog.at_level(logging.ERROR):
        run(test)
    assert len(caplog.records) == 1


def test_answer_of_a_forwarded_request_goes_back_as_it_is() -> None:
    async def test() -> None:
        async with Node(ListenerKind.BROKER) as node, ConnectionPool(client_id="admin") as pool:
            asker = Asker(pool, node.port)
            asker.ask(question(4))
            received = await node.received.get()
            content = pack(">i", received.request.correlation_id) + b"\0"  # header
            content += b"\0\0\0\0" + b"\0\0" + b"\x03hi" + b"\0"  # throttle, error, text, tags
            node.server.reply(received.token, EnvelopeResponse(response_data=content))
            assert await asker.outcomes.get() == answer("hi")

    run(test)


def test_version_that_cannot_say_it_is_not_spoken() -> None:
    """A pre-vote to a peer without pre-votes would be taken for a vote."""

    async def test() -> None:
        gone = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await old_voter(reader, writer)
            gone.set()

        async with await asyncio.start_server(serve, HOST, 0) as peer:
            async with ConnectionPool(client_id="test") as pool:
                asker = Asker(pool, peer.sockets[0].getsockname()[1])
                partition = VotePartition(
                    partition_index=0,
                    replica_epoch=1,
                    replica_id=1,
                    last_offset_epoch=0,
                    last_offset=0,
                    pre_vote=True,
                )
                topic = VoteTopic(topic_name="t", partitions=(partition,))
                asker.ask(VoteRequest(topics=(topic,)))
                assert await asker.outcomes.get() is SendFailure.UNSUPPORTED_VERSION
            await gone.wait()

    run(test)


async def old_voter(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A peer of old: it refuses ApiVersions 4, and speaks Vote 0 to 1."""
    error, ranges = 35, [(18, 0, 2)]
    for _ in range(2):
        (size,) = unpack(">i", await reader.readexactly(4))
        frame = await reader.readexactly(size)
        content = frame[4:8] + pack(">hi", error, len(ranges))
        content += b"".join(pack(">hhh", *one) for one in ranges)
        if error == 0:
            content += bytes(4)  # version 2 has a throttle time
        writer.writelines(with_length([content]))
        error, ranges = 0, [(18, 0, 2), (52, 0, 1)]
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()


def test_api_versions_in_an_unknown_version_is_answered_in_version_0() -> None:
    async def test() -> None:
        async with Node() as node:
            reader, writer = await asyncio.open_connection(HOST, node.port)
            writer.writelines(with_length([pack(">hhih", 18, 99, 5, -1) + b"\0\0whatever"]))
            (size,) = unpack(">i", await reader.readexactly(4))
            correlation_id, body = decode_response(await reader.readexactly(size), 18, 0)
            assert correlation_id == 5
            assert body.error_code is ErrorCode.UNSUPPORTED_VERSION
            assert [(api.api_key, api.max_version) for api in body.api_keys] == [(18, 4)]
            request = ApiVersionsRequest(client_software_name="a", client_software_version="b")
            writer.writelines(with_length(encode_request(request, 3, 6, None)))
            (size,) = unpack(">i", await reader.readexactly(4))
            correlation_id, body = decode_response(await reader.readexactly(size), 18, 3)
            assert (correlation_id, body.error_code) == (6, ErrorCode.NONE)
            writer.close()
            await writer.wait_closed()

    run(test)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("apache-kafka-java", ErrorCode.NONE),
        ("", ErrorCode.INVALID_REQUEST),
        ("-a", ErrorCode.INVALID_REQUEST),
        ("a b", ErrorCode.INVALID_REQUEST),
    ],
)
def test_client_must_name_its_software(name: str, error: ErrorCode) -> None:
    async def test() -> None:
        async with Node() as node:
            reader, writer = await asyncio.open_connection(HOST, node.port)
            request = ApiVersionsRequest(client_software_name=name, client_software_version="1.0")
            writer.writelines(with_length(encode_request(request, 3, 6, None)))
            (size,) = unpack(">i", await reader.readexactly(4))
            _, body = decode_response(await reader.readexactly(size), 18, 3)
            assert body.error_code is error
            writer.close()
            await writer.wait_closed()

    run(test)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "this looks like an HTTP request"),
        (b"\x16\x03\x01\x02\x00\x01\x00", "this looks like a TLS handshake"),
        (b"\xff\xff\xff\xfe", "a frame has the length -2"),
        (b"\x7f\xff\xff\xff", "above the limit of 104857600"),
        (pack(">ihhi", 8, 0, 2, 1), "not served on this listener: produce (key 0) version 2"),
        (pack(">ihhi", 8, 4, 0, 1), "not served on this listener: an unknown API (key 4)"),
        (pack(">ih", 2, 18), "a request header needs 8 bytes, not 2"),
        (
            pack(">ihhih", 10, 60, 0, 1, -1),
            "describe_cluster version 0: the bytes end within a varint",
        ),
    ],
)
def test_what_is_no_request_closes_the_connection_with_one_line(
    content: bytes, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with Node() as node:
            assert await raw_exchange(node.port, content) == b""

    with caplog.at_level(logging.WARNING):
        run(test)
    (line,) = [record.getMessage() for record in caplog.records]
    assert said in line
    assert f"peer={HOST}:" in line
    assert "listener=CONTROLLER" in line


def test_connections_beyond_the_bound_are_closed() -> None:
    async def test() -> None:
        async with (
            Node(limits=ServerLimits(connections=ConnectionLimits(of_all=1))) as node,
            ConnectionPool(client_id="test") as pool,
        ):
            Asker(pool, node.port).ask(question(0))
            await node.received.get()
            assert await raw_exchange(node.port, b"") == b""

    run(test)


def test_idle_connection_is_closed() -> None:
    async def test() -> None:
        async with Node(limits=ServerLimits(idle_seconds=0.02)) as node:
            reader, writer = await asyncio.open_connection(HOST, node.port)
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()

    run(test)


IDLE_AFTER_A_MINUTE = ServerLimits(idle_seconds=60, first_frame_seconds=60)


def test_connection_with_an_unanswered_request_is_not_idle() -> None:
    async def test(clock: Clock) -> None:
        async with Node(limits=IDLE_AFTER_A_MINUTE) as node:
            _, writer = await asyncio.open_connection(HOST, node.port)
            writer.write(frame(0))
            await node.received.get()
            await clock.pass_seconds(61)
            assert node.server.connection_count == 1
            writer.close()
            await writer.wait_closed()

    run_on_clock(test)


def test_who_is_refused_and_does_not_read_is_let_go() -> None:
    """Found by a review: a request without an answer kept such a connection for ever."""

    async def test(clock: Clock) -> None:
        async with Node(limits=IDLE_AFTER_A_MINUTE) as node:
            _, writer = await asyncio.open_connection(HOST, node.port)
            writer.write(frame(0))
            await node.received.get()
            (connection,) = node.server.connections
            kind = type(connection._transport)
            # Something is left to be written, for which a transport that closes waits.
            with (
                patch.object(kind, "close"),
                patch.object(kind, "get_write_buffer_size", return_value=1),
            ):
                writer.write(b"\xff" * 4)
                await clock.pass_seconds(61)
                await clock.pass_seconds(61)
            assert node.server.connection_count == 0
            writer.close()

    run_on_clock(test)


def test_connection_is_idle_from_its_last_answer_on() -> None:
    async def test(clock: Clock) -> None:
        async with Node(limits=IDLE_AFTER_A_MINUTE) as node:
            reader, writer = await asyncio.open_connection(HOST, node.port)
            writer.write(frame(0))
            received = await node.received.get()
            await clock.pass_seconds(50)
            node.server.reply(received.token, answer("late"))
            await clock.pass_seconds(0)  # it leaves
            await clock.pass_seconds(59)
            assert node.server.connection_count == 1
            await clock.pass_seconds(2)
            assert node.server.connection_count == 0
            assert (await reader.read()).endswith(b"late\0")
            writer.close()
            await writer.wait_closed()

    run_on_clock(test)


def test_connection_is_idle_from_its_last_request_on_if_that_gets_no_answer() -> None:
    async def test(clock: Clock) -> None:
        async with Node(limits=IDLE_AFTER_A_MINUTE) as node:
            _, writer = await asyncio.open_connection(HOST, node.port)
            await clock.pass_seconds(50)
            writer.write(frame(0))
            node.server.reply((await node.received.get()).token, None)
            await clock.pass_seconds(0)
            await clock.pass_seconds(59)
            assert node.server.connection_count == 1
            await clock.pass_seconds(2)
            assert node.server.connection_count == 0
            writer.close()
            await writer.wait_closed()

    run_on_clock(test)


def test_large_answers_to_a_client_that_reads_slowly_arrive_whole() -> None:
    async def test() -> None:
        async with (
            Node(limits=ServerLimits(output_bytes_max=1000)) as node,
            ConnectionPool(client_id="test") as pool,
        ):
            asker = Asker(pool, node.port)
            text = "x" * 10_000
            for _ in range(50):
                asker.ask(DescribeClusterRequest())
            for _ in range(50):
                token = (await node.received.get()).token
                node.server.reply(token, DescribeClusterResponse(error_message=text))
            for _ in range(50):
                assert (await asker.outcomes.get()).error_message == text

    run(test)


LARGE = bytes(16 << 20)  # what no socket keeps while nobody reads


async def close_in_order(node: Node, unanswered: Received) -> None:
    await node.server.stop()


async def answer_what_cannot_be_written(node: Node, unanswered: Received) -> None:
    node.server.reply(unanswered.token, UnregisterBrokerResponse(throttle_time_ms=1 << 31))


@pytest.mark.parametrize("end", [close_in_order, answer_what_cannot_be_written])
def test_answer_that_is_on_its_way_arrives_whole_though_the_connection_ends(
    end: Callable[[Node, Received], Coroutine[Any, Any, None]],
) -> None:
    async def test() -> None:
        async with Node(ListenerKind.BROKER) as node:
            reader, writer = await asyncio.open_connection(HOST, node.port)
            for number in range(2):
                writer.write(frame(number))
            first, second = [await node.received.get() for _ in range(2)]
            node.server.reply(first.token, EnvelopeResponse(response_data=LARGE))
            async with asyncio.TaskGroup() as group:
                group.create_task(end(node, second))
                received = await reader.read()
            assert unpack(">i", received[:4]) == (len(LARGE),)
            assert received[4:] == LARGE
            writer.close()
            await writer.wait_closed()

    run(test)


def test_request_that_came_before_a_large_answer_has_left_is_taken_then() -> None:
    async def test() -> None:
        async with Node(ListenerKind.BROKER, ServerLimits(outstanding_max=1)) as node:
            reader, writer = await asyncio.open_connection(HOST, node.port)
            writer.write(frame(0) + frame(1))
            first = await node.received.get()
            node.server.reply(first.token, EnvelopeResponse(response_data=LARGE))
            await reader.readexactly(4 + len(LARGE))
            assert node.received.get_nowait().request.body == question(1)
            writer.close()
            await writer.wait_closed()

    run(test)


def test_what_was_answered_leaves_before_its_connection_is_refused() -> None:
    async def test() -> None:
        async with Node() as node:
            versions = with_length(encode_request(ApiVersionsRequest(), 0, 5, None))
            received = await raw_exchange(node.port, b"".join(versions) + b"\xff\xff\xff\xfe")
            correlation_id, body = decode_response(received[4:], 18, 0)
            assert (correlation_id, body.error_code) == (5, ErrorCode.NONE)

    run(test)
