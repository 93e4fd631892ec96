"""One client of a listener: frames in, requests on, answers back in the order of the requests.

Kafka's clients match answers to requests by their order, so that an answer waits for those before
it. What a connection may have outstanding is bounded: beyond it, its socket is not read. A peer
that sends what is no request loses its connection, and one line of log names it.

Decides nothing about the content, but for Envelope: it is opened here and answered here.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from wire.api_table import (
    API_VERSIONS_KEY,
    SOFTWARE_NAME_SINCE,
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
from wire.forwarding import Opened, unwrap, wrap_response
from wire.framing import (
    LENGTH_BYTES,
    FrameError,
    FrameReader,
    with_length,
)
from wire.messages.features import ApiVersionsRequest, ApiVersionsResponse
from wire.messages.registration import EnvelopeRequest, EnvelopeResponse
from wire.security.authentication import PASSED, Answered, Ended
from wire.security.principals import ANONYMOUS, Forwarder, Principal
from wire.serving import Owner, Received
from wire.tcp_authentication import ConnectionAuthentication
from wire.tcp_output import Output
from wire.varint import Malformed
from wire.writing import CannotExpress

__all__ = ["ServedConnection"]

_log = logging.getLogger(__name__)
_PROGRESS_BYTES = 16 << 10  # fewer bytes of a frame that is not whole yet are no sign of life


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


class ServedConnection(asyncio.BufferedProtocol):
    """One client. Reads while it may, and writes answers as far as they are complete."""

    def __init__(self, server: "Owner[ServedConnection]") -> None:
        self._server = server
        self._limits = server.limits
        self._loop = asyncio.get_running_loop()
        self._authentication = ConnectionAuthentication(lambda: server.security.sasl, self.refuse)
        self._frames = FrameReader(
            frame_bytes_max=self._authentication.frame_bytes_max(self._limits.frame_bytes_max)
        )
        self._outstanding: dict[int, _Outstanding] = {}  # in the order of the requests
        self._flush_due = False
        self._reading = True
        self.is_closing = False
        self.active_at = self._loop.time()
        self._idle_bytes = 0  # since then
        self._has_asked = False  # one whole frame has come
        self._idle_timer: asyncio.TimerHandle | None = None
        self._mute_timer: asyncio.TimerHandle | None = None  # set: nothing is read
        self._end: Callable[[], None] | None = None  # what comes after that, and ends it
        self._transport: asyncio.Transport
        self._output: Output
        self._peer = ("?", 0)
        self._principal = ANONYMOUS

    # --- called by asyncio ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._output = Output(self._transport)
        self._peer = (transport.get_extra_info("peername") or ("?", 0))[:2]
        self._transport.set_write_buffer_limits(high=self._limits.output_bytes_max)
        refusal = self._server.opened(self, self._peer[0]) or self._learn_principal()
        if refusal is not None:
            self.refuse(refusal)
            return
        self._authentication.begin()
        self._watch_idleness()
        admission = self._server.admit(str(self._peer[0]))
        if admission.delay_ms > 0:
            then = self.close if admission.is_refused else None
            self.mute(admission.delay_ms / 1000, then)

    def _learn_principal(self) -> str | None:
        """Learn it from the certificate, if the listener speaks TLS; or why nobody is known."""
        tls = self._server.security.tls
        if tls is None:
            return None
        shown = self._transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        try:
            self._principal = tls.principal_of(shown)
        except ValueError as error:
            return f"its certificate names nobody: {error}"
        return None

    def authenticated(self, principal: Principal) -> None:
        """From now on it is known who asks, who may send larger frames for that."""
        self._principal = principal
        self._frames.frame_bytes_max = self._limits.frame_bytes_max

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self._frames.buffer_updated(nbytes)
        self._idle_bytes += nbytes
        if self._has_asked and self._idle_bytes >= _PROGRESS_BYTES:
            self._be_active()
        self._take_frames()

    def _be_active(self) -> None:
        self.active_at = self._loop.time()
        self._idle_bytes = 0

    def eof_received(self) -> bool:
        if self._frames.untaken_bytes and not self.is_closing:
            self._log_close(f"it ended within a frame, after {self._frames.untaken_bytes} bytes")
        return False  # close: nobody reads answers on half a connection

    def pause_writing(self) -> None:
        self._output.pause()
        self._set_reading()

    def resume_writing(self) -> None:
        self._output.resume()
        self._take_frames()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closing = True
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._mute_timer is not None:
            self._mute_timer.cancel()
        self._authentication.cancel()
        self._server.lost(self, list(self._outstanding))
        self._outstanding.clear()

    # --- requests ---

    def _take_frames(self) -> None:
        """Hand on whole frames while there is room for their answers."""
        has_room = self._has_room()
        while has_room and self._frames.untaken_bytes and not self.is_closing:
            try:
                frame = self._frames.next_frame()
                if frame is None:
                    break
                self._has_asked = True
                self._be_active()
                self._take(frame)
            except (FrameError, Malformed) as error:
                self.refuse(str(error))
            except UnsupportedVersion as error:
                self._answer_unsupported(error)
            has_room = self._has_room()
        if has_room is not self._reading:
            self._set_reading()

    def _has_room(self) -> bool:
        return (
            len(self._outstanding) < self._limits.outstanding_max
            and not self._output.is_full
            and self._mute_timer is None
        )

    def mute(self, seconds: float, then: Callable[[], None] | None = None) -> None:
        """Take no request for so long (KIP-219): answers leave, those that are due later as well.

        What was read already waits, too. `then` is what ends the connection after that, if it is
        not to be served any more.
        """
        if then is not None:
            self._end = then
        until = self._loop.time() + seconds
        if self.is_closing or (self._mute_timer is not None and self._mute_timer.when() >= until):
            return
        if self._mute_timer is not None:
            self._mute_timer.cancel()
        self._mute_timer = self._loop.call_at(until, self._unmute)
        self._set_reading()

    def _unmute(self) -> None:
        self._mute_timer = None
        if self._end is None:
            self._take_frames()
        else:
            self._end()

    def _set_reading(self) -> None:
        wanted = self._has_room()
        if self.is_closing or wanted is self._reading:
            return
        self._reading = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _take(self, frame: bytes) -> None:
        bare = self._authentication.bare_token(frame)
        request = bare or decode_request(frame, self._server.kind)
        token = next(self._server.tokens)
        if self._authentication.looks_at(request) and not self._admit(token, request, frame):
            return
        if isinstance(request.body, EnvelopeRequest):
            self._take_envelope(token, request, frame)
            return
        self._server.traffic.received_bytes[request.api_key] += len(frame) + LENGTH_BYTES
        self._outstanding[token] = _Outstanding(request=request)
        if isinstance(request.body, ApiVersionsRequest) and _lacks_software_name(request):
            self.reply(token, ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST))
        else:
            asked = Opened(request, self._peer[0], self._principal)
            self._hand_on(token, asked)

    def _admit(self, token: int, request: DecodedRequest, frame: bytes) -> bool:
        """May it be served? Otherwise it was a part of the authentication, or came too early."""
        outcome = self._authentication.receive(request)
        if outcome is PASSED:
            return True
        self._server.traffic.received_bytes[request.api_key] += len(frame) + LENGTH_BYTES
        match outcome:
            case Answered(answer, principal):
                self._outstanding[token] = _Outstanding(request=request)
                self.reply(token, answer)
                if principal is not None:
                    self.authenticated(principal)
            case Ended(reason, None):
                self.refuse(reason)
            case Ended(reason, answer):
                self._outstanding[token] = _Outstanding(request=request)
                self._log_close(reason)
                delay_seconds = self._authentication.failure_delay_seconds
                self.mute(delay_seconds, then=partial(self._end_with, token, answer))
        return False

    def _end_with(self, token: int, answer: Any) -> None:
        self.make_ready(token, answer)
        self.close()

    def _take_envelope(self, token: int, envelope: DecodedRequest, frame: bytes) -> None:
        opened = unwrap(envelope.body)
        if isinstance(opened, ErrorCode):
            self._outstanding[token] = _Outstanding(request=envelope)
            self.reply(token, EnvelopeResponse(error_code=opened))
            return
        self._server.traffic.received_bytes[opened.request.api_key] += len(frame) + LENGTH_BYTES
        self._outstanding[token] = _Outstanding(request=opened.request, envelope=envelope)
        self._hand_on(token, opened, Forwarder(self._principal, self._peer[0]))

    def _hand_on(self, token: int, asked: Opened, forwarder: Forwarder | None = None) -> None:
        self._server.expect_reply(token, self)
        self._server.receive(
            Received(
                token=token,
                request=asked.request,
                listener=self._server.listener,
                client_host=asked.client_host,
                principal=asked.principal,
                forwarder=forwarder,
            )
        )

    def _answer_unsupported(self, error: UnsupportedVersion) -> None:
        """Ask of ApiVersions what we have; any other API says nothing and closes (KIP-35)."""
        header: RequestHeader = error.header
        if header.api_key != API_VERSIONS_KEY:
            self.refuse(f"not served on this listener: {error}")
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
        if outstanding is None or self.is_closing:
            return
        try:
            outstanding.answer = self._encode(outstanding, body)
        except CannotExpress as error:
            outstanding.answer = self._unspeakable(outstanding, error)

    def _encode(self, outstanding: _Outstanding, body: Any) -> list[bytes]:
        if body is None:
            return []
        if isinstance(body, bytes):  # a bare token
            return [body]
        request = outstanding.request
        if outstanding.envelope is not None:
            if not isinstance(body, EnvelopeResponse):  # the envelope itself may be refused
                body = wrap_response(request, body)
            request = outstanding.envelope
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
        self.refuse(f"its request could not be forwarded: {envelope.error_code.name}")
        return []

    def flush(self) -> None:
        """Write what is ready, and read on if only that was in the way."""
        self._flush_due = False
        self._write_answers()
        if not self._reading:
            self._take_frames()

    def _write_answers(self) -> None:
        if self.is_closing:
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
            self._be_active()
            self._output.write(ready)

    # --- ends ---

    def close(self) -> None:
        """What was answered still goes out: a transport that closes asks for what waits."""
        self._write_answers()
        self.is_closing = True
        if not self._transport.is_closing():  # closed twice, one of TLS could not be aborted
            self._transport.resume_reading()  # or the end that the peer sent stays unread
            self._transport.close()

    def abort(self) -> None:
        self.is_closing = True
        self._transport.abort()

    def refuse(self, reason: str) -> None:
        if not self.is_closing:
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
        """Close after `idle_seconds` without frames either way and nothing left to answer, and if
        the first one does not come soon: a byte now and then keeps nothing open."""
        limits = self._limits
        wait = limits.idle_seconds
        if not self._has_asked:
            wait = min(wait, limits.first_frame_seconds)
        if self.is_closing or not self._outstanding:
            wait -= self._loop.time() - self.active_at
        if wait > 0:
            self._idle_timer = self._loop.call_later(wait, self._watch_idleness)
        elif self._transport.get_write_buffer_size():
            self.abort()  # it does not read: what is left would never go out
        elif not self._has_asked and limits.first_frame_seconds < limits.idle_seconds:
            self.refuse(f"no whole request within {limits.first_frame_seconds:g} s")
        else:
            self.close()
