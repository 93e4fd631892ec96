"""One client of a listener: frames in, requests on, answers back in the order of the requests.

Kafka's clients match answers to requests by their order, so that an answer waits for those before
it. What a connection may have outstanding is bounded: beyond it, its socket is not read. A peer
that sends what is no request loses its connection, and one line of log names it.

Decides nothing about the content, but for Envelope: it is opened here and answered here.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from wire.api_table import (
    API_VERSIONS_KEY,
    SOFTWARE_NAME_SINCE,
    ListenerKind,
    api_versions_unsupported,
    names_its_software,
)
from wire.apis import (
    DecodedRequest,
    RequestHeader,
    UnsupportedVersion,
    decode_request,
    encode_response,
)
from wire.errors import ErrorCode
from wire.forwarding import unwrap, wrap_response
from wire.framing import (
    FRAME_BYTES_MAX,
    LENGTH_BYTES,
    FrameError,
    FrameReader,
    Traffic,
    with_length,
)
from wire.message import Message
from wire.messages.features import ApiVersionsRequest, ApiVersionsResponse
from wire.messages.registration import EnvelopeRequest, EnvelopeResponse
from wire.varint import Malformed
from wire.writing import CannotExpress

__all__ = ["SLICE_BYTES", "Output", "Owner", "Received", "ServedConnection", "ServerLimits"]

_log = logging.getLogger(__name__)
SLICE_BYTES = 256 << 10  # of a large piece, handed over at a time; smaller ones go together


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    frame_bytes_max: int = FRAME_BYTES_MAX
    outstanding_max: int = 100  # requests of one connection without an answer
    connections_max: int = 1000
    idle_seconds: float = 600.0  # Kafka's default of connections.max.idle.ms
    output_bytes_max: int = 1 << 20  # above it, a connection that does not read is not read either


class Received(Message):
    """A request to be answered with `Server.reply(token, body)`, once.

    If it came in an envelope, `request` is the inner one and `client_host` the client's own.
    """

    token: int
    request: DecodedRequest
    listener: str
    client_host: str
    forwarded: bool = False


class Owner(Protocol):
    """The server of a connection."""

    @property
    def listener(self) -> str: ...

    @property
    def kind(self) -> ListenerKind: ...

    @property
    def limits(self) -> ServerLimits: ...

    @property
    def traffic(self) -> Traffic: ...

    @property
    def tokens(self) -> Iterator[int]: ...

    @property
    def receive(self) -> Callable[[Received], None]: ...

    def opened(self, connection: "ServedConnection") -> bool:
        """Is there room for it?"""
        ...

    def lost(self, connection: "ServedConnection", tokens: list[int]) -> None:
        """It is gone, and so are the requests that it had no answers to."""
        ...

    def expect_reply(self, token: int, connection: "ServedConnection") -> None: ...


@dataclass(slots=True, kw_only=True)
class _Outstanding:
    request: DecodedRequest
    envelope: DecodedRequest | None = None  # the request that `request` came in
    answer: list[bytes] | None = None  # ready to be written, without its length


def _lacks_software_name(request: DecodedRequest) -> bool:
    return (
        isinstance(request.body, ApiVersionsRequest)
        and request.api_version >= SOFTWARE_NAME_SINCE
        and not names_its_software(request.body)
    )


class _Transport(Protocol):
    """The part of `asyncio.Transport` that is used."""

    def write(self, data: bytes | memoryview, /) -> None: ...


class Output:
    """Hands answers to a socket that may be slow in slices, and never copies them whole.

    A transport copies what its socket does not take at once. An answer of many megabytes to thirty
    followers would be copied thirty times; here it waits as one object until there is room for the
    next slice. `pause` and `resume` are asyncio's `pause_writing` and `resume_writing`.
    """

    __slots__ = ("_transport", "_waiting", "is_full")

    def __init__(self, transport: _Transport) -> None:
        self._transport = transport
        self._waiting: deque[memoryview] = deque()
        # Is there more than the transport wants to keep? Only then does anything wait here.
        self.is_full = False

    def write(self, pieces: Sequence[bytes]) -> None:
        if not self._waiting and sum(map(len, pieces)) <= SLICE_BYTES:
            self._transport.write(b"".join(pieces))
            return
        self._waiting.extend(map(memoryview, pieces))
        self._hand_over()

    def pause(self) -> None:
        self.is_full = True

    def resume(self) -> None:
        self.is_full = False
        self._hand_over()

    def _hand_over(self) -> None:
        while self._waiting and not self.is_full:
            piece = self._waiting.popleft()
            if len(piece) > SLICE_BYTES:
                self._waiting.appendleft(piece[SLICE_BYTES:])
                piece = piece[:SLICE_BYTES]
            self._transport.write(piece)


class ServedConnection(asyncio.BufferedProtocol):
    """One client. Reads while it may, and writes answers as far as they are complete."""

    def __init__(self, server: Owner) -> None:
        self._server = server
        self._limits = server.limits
        self._loop = asyncio.get_running_loop()
        self._frames = FrameReader(frame_bytes_max=self._limits.frame_bytes_max)
        self._outstanding: dict[int, _Outstanding] = {}  # in the order of the requests
        self._flush_due = False
        self._reading = True
        self._closing = False
        self._active_at = self._loop.time()
        self._idle_timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport
        self._output: Output
        self._peer = ("?", 0)

    # --- called by asyncio ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._output = Output(self._transport)
        self._peer = (transport.get_extra_info("peername") or ("?", 0))[:2]
        self._transport.set_write_buffer_limits(high=self._limits.output_bytes_max)
        if not self._server.opened(self):
            self._refuse(f"more than {self._limits.connections_max} connections")
            return
        self._watch_idleness()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self._frames.buffer_updated(nbytes)
        self._active_at = self._loop.time()
        self._take_frames()

    def eof_received(self) -> bool:
        if self._frames.untaken_bytes and not self._closing:
            self._log_close(f"it ended within a frame, after {self._frames.untaken_bytes} bytes")
        return False  # close: nobody reads answers on half a connection

    def pause_writing(self) -> None:
        self._output.pause()
        self._set_reading()

    def resume_writing(self) -> None:
        self._output.resume()
        self._take_frames()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._server.lost(self, list(self._outstanding))
        self._outstanding.clear()

    # --- requests ---

    def _take_frames(self) -> None:
        """Hand on whole frames while there is room for their answers."""
        has_room = self._has_room()
        while has_room and self._frames.untaken_bytes and not self._closing:
            try:
                frame = self._frames.next_frame()
                if frame is None:
                    break
                self._take(frame)
            except (FrameError, Malformed) as error:
                self._refuse(str(error))
            except UnsupportedVersion as error:
                self._answer_unsupported(error)
            has_room = self._has_room()
        if has_room is not self._reading:
            self._set_reading()

    def _has_room(self) -> bool:
        return len(self._outstanding) < self._limits.outstanding_max and not self._output.is_full

    def _set_reading(self) -> None:
        wanted = self._has_room()
        if self._closing or wanted is self._reading:
            return
        self._reading = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _take(self, frame: bytes) -> None:
        request = decode_request(frame, self._server.kind)
        token = next(self._server.tokens)
        if isinstance(request.body, EnvelopeRequest):
            self._take_envelope(token, request, frame)
            return
        self._server.traffic.received_bytes[request.api_key] += len(frame) + LENGTH_BYTES
        self._outstanding[token] = _Outstanding(request=request)
        if isinstance(request.body, ApiVersionsRequest) and _lacks_software_name(request):
            self.reply(token, ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST))
        else:
            self._hand_on(token, request, self._peer[0], forwarded=False)

    def _take_envelope(self, token: int, envelope: DecodedRequest, frame: bytes) -> None:
        opened = unwrap(envelope.body)
        if isinstance(opened, ErrorCode):
            self._outstanding[token] = _Outstanding(request=envelope)
            self.reply(token, EnvelopeResponse(error_code=opened))
            return
        inner, client_host = opened
        self._server.traffic.received_bytes[inner.api_key] += len(frame) + LENGTH_BYTES
        self._outstanding[token] = _Outstanding(request=inner, envelope=envelope)
        self._hand_on(token, inner, client_host, forwarded=True)

    def _hand_on(
        self, token: int, request: DecodedRequest, client_host: str, *, forwarded: bool
    ) -> None:
        self._server.expect_reply(token, self)
        self._server.receive(
            Received(
                token=token,
                request=request,
                listener=self._server.listener,
                client_host=client_host,
                forwarded=forwarded,
            )
        )

    def _answer_unsupported(self, error: UnsupportedVersion) -> None:
        """Ask of ApiVersions what we have; any other API says nothing and closes (KIP-35)."""
        header: RequestHeader = error.header
        if header.api_key != API_VERSIONS_KEY:
            self._refuse(f"not served on this listener: {error}")
            return
        token = next(self._server.tokens)
        asked = DecodedRequest(
            api_key=header.api_key,
            api_version=0,
            correlation_id=header.correlation_id,
            client_id=None,
            body=None,
        )
        self._outstanding[token] = _Outstanding(request=asked)
        self.reply(token, api_versions_unsupported())

    # --- answers ---

    def reply(self, token: int, body: Any) -> None:
        """Answer; one write for all the answers of a turn of the loop."""
        self.make_ready(token, body)
        if not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self.flush)

    def make_ready(self, token: int, body: Any) -> None:
        """The answer leaves with the next flush after those before it are ready."""
        outstanding = self._outstanding.get(token)
        if outstanding is None or self._closing:
            return
        try:
            outstanding.answer = self._encode(outstanding, body)
        except CannotExpress as error:
            outstanding.answer = self._unspeakable(outstanding, error)

    def _encode(self, outstanding: _Outstanding, body: Any) -> list[bytes]:
        if body is None:
            return []
        request = outstanding.request
        if outstanding.envelope is not None:
            body, request = wrap_response(request, body), outstanding.envelope
        elif isinstance(body, EnvelopeResponse) and not isinstance(request.body, EnvelopeRequest):
            return self._forwarded_answer(body)
        return encode_response(body, request.api_key, request.api_version, request.correlation_id)

    def _unspeakable(self, outstanding: _Outstanding, error: CannotExpress) -> list[bytes]:
        """A defect of ours, and no reason to end: whoever asked hears that there is no answer.

        A connection of envelopes is a broker's, for all of its clients: it stays.
        """
        _log.error("an answer cannot be written peer=%s:%s reason=%r", *self._peer, str(error))
        if outstanding.envelope is None:
            self.close()
            return []
        refusal = EnvelopeResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        return self._encode(_Outstanding(request=outstanding.envelope), refusal)

    def _forwarded_answer(self, envelope: EnvelopeResponse) -> list[bytes]:
        """The controller lacks the client's version: a new connection asks for versions anew."""
        if envelope.error_code is ErrorCode.NONE and envelope.response_data:
            return [envelope.response_data]
        self._refuse(f"its request could not be forwarded: {envelope.error_code.name}")
        return []

    def flush(self) -> None:
        """Write what is ready, and read on if only that was in the way."""
        self._flush_due = False
        self._write_answers()
        if not self._reading:
            self._take_frames()

    def _write_answers(self) -> None:
        if self._closing:
            return
        ready: list[bytes] = []
        for token, outstanding in tuple(self._outstanding.items()):
            if outstanding.answer is None:
                break
            del self._outstanding[token]
            if outstanding.answer:
                frame = with_length(outstanding.answer)
                sent_bytes = self._server.traffic.sent_bytes
                sent_bytes[outstanding.request.api_key] += sum(map(len, frame))
                ready.extend(frame)
        if ready:
            self._active_at = self._loop.time()
            self._output.write(ready)

    # --- ends ---

    def close(self) -> None:
        """What was answered still goes out: a transport that closes asks for what waits."""
        self._write_answers()
        self._closing = True
        self._transport.close()

    def abort(self) -> None:
        self._closing = True
        self._transport.abort()

    def _refuse(self, reason: str) -> None:
        self._log_close(reason)
        self.close()

    def _log_close(self, reason: str) -> None:
        host, port = self._peer
        _log.warning(
            "connection closed peer=%s:%s listener=%s reason=%r",
            host,
            port,
            self._server.listener,
            reason,
        )

    def _watch_idleness(self) -> None:
        """Close after `idle_seconds` without bytes either way and nothing left to answer."""
        wait = self._limits.idle_seconds
        if not self._outstanding:
            wait -= self._loop.time() - self._active_at
        if wait > 0:
            self._idle_timer = self._loop.call_later(wait, self._watch_idleness)
        elif self._transport.get_write_buffer_size():
            self.abort()  # it does not read: what is left would never go out
        else:
            self.close()
