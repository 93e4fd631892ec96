"""An answer with a value that does not fit: nothing of it gets as far as the connection's output.

A writer appends to the `Sink` that it is given, and finds out on the way. Both callers give it one
of their own, and hand the bytes on after it has returned.
"""

import asyncio
from itertools import count
from typing import Any

import pytest

from wire.api_table import ListenerKind
from wire.apis import decode_response, encode_request, encode_response
from wire.canonical import writer_for
from wire.errors import ErrorCode
from wire.forwarding import wrap_request
from wire.framing import LENGTH_BYTES, with_length
from wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from wire.messages.registration import EnvelopeRequest
from wire.messages.topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from wire.serving import Received
from wire.tcp_connection import ServedConnection
from wire.tcp_server import Server
from wire.writing import CannotExpress, Sink

METADATA, VERSION, ENVELOPE = 3, 12, 58
TOPICS = tuple(
    MetadataResponseTopic(name=f"topic {number}" * 5, partitions=()) for number in range(2000)
)
UNFIT = MetadataResponse(
    topics=(
        *TOPICS,
        MetadataResponseTopic(
            name="last", partitions=(MetadataResponsePartition(partition_index=2**31),)
        ),
    )
)


class Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_closed = False

    def is_closing(self) -> bool:
        return self.is_closed

    def write(self, data: Any) -> None:
        self.written += data

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def resume_reading(self) -> None:
        pass

    def close(self) -> None:
        self.is_closed = True


def served(kind: ListenerKind, *frames: bytes, answers: list[Any]) -> Transport:
    """What a connection writes that gets these requests, all at once, and these answers."""

    async def serve() -> Transport:
        received: list[Received] = []
        server = Server(listener="test", kind=kind, receive=received.append, tokens=count())
        connection, transport = ServedConnection(server), Transport()
        connection.connection_made(transport)
        for frame in frames:
            content = b"".join(with_length([frame]))
            connection.get_buffer(len(content))[: len(content)] = content
            connection.buffer_updated(len(content))
        for request, answer in zip(received, answers, strict=True):
            server.reply(request.token, answer)
        await asyncio.sleep(0)
        connection.connection_lost(None)
        return transport

    return asyncio.run(serve())


def request(correlation_id: int) -> bytes:
    return b"".join(encode_request(MetadataRequest(), VERSION, correlation_id))


def test_writer_may_have_written_much_before_it_finds_out() -> None:
    out = Sink()
    with pytest.raises(CannotExpress, match=r"topics\[2000\].partitions\[0\].partition_index"):
        writer_for("metadata", VERSION, "response")(out, UNFIT)
    assert len(b"".join(out.buffers())) > 100_000


def test_nothing_of_an_answer_that_does_not_fit_is_written() -> None:
    transport = served(ListenerKind.BROKER, request(1), answers=[UNFIT])
    assert transport.written == b""
    assert transport.is_closed


def test_answers_before_one_that_does_not_fit_are_written_whole() -> None:
    first = MetadataResponse(topics=TOPICS[:1])
    frames = [request(1), request(2), request(3)]
    transport = served(ListenerKind.BROKER, *frames, answers=[first, UNFIT, first])
    answer = encode_response(first, METADATA, VERSION, 1)
    assert transport.written == b"".join(with_length(answer))
    assert transport.is_closed


def test_an_answer_in_an_envelope_that_does_not_fit_is_an_error_and_nothing_else() -> None:
    asked = encode_request(CreateTopicsRequest(topics=()), 7, 1)
    inner = wrap_request(b"".join(asked), client_host="::1")
    assert isinstance(inner, EnvelopeRequest)
    frame = b"".join(encode_request(inner, 0, 7))
    unfit = CreateTopicsResponse(topics=(CreatableTopicResult(name="t", num_partitions=2**31),))
    transport = served(ListenerKind.CONTROLLER, frame, answers=[unfit])
    correlation_id, body = decode_response(transport.written[LENGTH_BYTES:], ENVELOPE, 0)
    assert correlation_id == 7
    assert (body.error_code, body.response_data) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert not transport.is_closed
