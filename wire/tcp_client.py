"""Connections to peers: requests out, answers back to the callback of each, exactly once.

A connection opens at the first request and again after a failure, no sooner than its backoff says:
until then requests fail at once, so that whoever asks can turn to somebody else. It asks the peer
for its versions first, and speaks the highest in common. Requests are pipelined, and answered in
order: one that takes too long says that those behind it will too, so that a time-out closes the
connection, as Kafka's clients do.

Decides nothing about whether to try again: a failure is told, and may have been carried out.
"""

import asyncio
import logging
import math
import ssl
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import count
from types import TracebackType
from typing import Any, Self, cast

from wire.api_table import API_VERSIONS_KEY, api_of
from wire.apis import decode_response, encode_request
from wire.errors import ErrorCode
from wire.framing import (
    FRAME_BYTES_MAX,
    LENGTH_BYTES,
    FrameError,
    FrameReader,
    Traffic,
    with_length,
)
from wire.messages.features import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from wire.messages.sasl import SaslHandshakeRequest
from wire.security.client_authentication import AuthenticationFailed
from wire.security.protocols import ClientSecurity
from wire.security.tls_failures import tls_failure
from wire.varint import Malformed
from wire.writing import CannotExpress

__all__ = ["Address", "ClientLimits", "Connection", "ConnectionPool", "SendFailure"]

_log = logging.getLogger(__name__)
_API_VERSIONS_NEWEST = 4
_RENEWED_AFTER = 0.85  # of the lifetime of a session; Kafka's clients: of 0.85 to 0.95
_UNSUPPORTED_VERSION = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2)


class SendFailure(Enum):
    """Why a request has no answer. It may have been carried out by the peer all the same."""

    DISCONNECTED = "disconnected"
    TIMED_OUT = "timed out"
    UNSUPPORTED_VERSION = "no version in common"


Outcome = Any  # a canonical response, or a SendFailure
Done = Callable[[Outcome], None]
Address = tuple[str, int]  # host and port


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    connect_seconds: float = 2.0  # for the connection, the exchange of versions and SASL
    backoff_first_seconds: float = 0.05  # Kafka's reconnect.backoff.ms
    backoff_last_seconds: float = 1.0  # Kafka's reconnect.backoff.max.ms
    waiting_max: int = 1000  # requests of one connection without an answer
    frame_bytes_max: int = FRAME_BYTES_MAX


@dataclass(slots=True, kw_only=True, eq=False)
class _Sent:
    """A request on its way. `done` is taken away when it is called: once, and no more."""

    body: Any
    done: Done | None
    until: float = math.inf  # by the loop's clock
    version: int = -1
    correlation_id: int = -1

    def finish(self, outcome: Outcome) -> None:
        done, self.done = self.done, None
        if done is not None:
            done(outcome)


class Connection:
    """One connection to one peer. Use it within the event loop that it was made in."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        client_id: str,
        tasks: asyncio.TaskGroup,
        security: Callable[[], ClientSecurity] = ClientSecurity,
        certified_host: str | None = None,
        limits: ClientLimits | None = None,
        traffic: Traffic | None = None,
    ) -> None:
        """`security` is asked at each opening; `certified_host` is the name that the certificate
        of the peer must bear, if it is not dialled by that."""
        self.host = host
        self.port = port
        self._certified_host = certified_host or host
        self.api_versions: tuple[ApiVersion, ...] | None = None  # of the peer, once it has told
        self._client_id = client_id
        self._tasks = tasks
        self._security_now = security
        self._limits = limits or ClientLimits()
        self._traffic = traffic or Traffic()
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[_Sent] = deque()  # for the connection
        self._in_flight: deque[_Sent] = deque()  # for their answers, in order
        self._correlation_ids = count()
        self._link: _Link | None = None
        self._ready = False  # the peer's versions are known, and it knows us
        self._renew_at = math.inf  # by when to authenticate again
        self._versions: dict[type, int | None] = {}  # what each kind of request is sent in
        self._opening: asyncio.Task[None] | None = None
        self._backoff_seconds = 0.0
        self._retry_at = 0.0
        self._closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf  # when it goes off: too early does no harm

    def send(self, body: Any, *, timeout_ms: int, done: Done) -> None:
        """Ask the peer; `done` gets the answer or a SendFailure, never before this returns."""
        now = self._loop.time()
        sent = _Sent(body=body, done=done, until=now + timeout_ms / 1000)
        is_full = len(self._waiting) + len(self._in_flight) >= self._limits.waiting_max
        if self._closed or is_full or now < self._retry_at:
            self._loop.call_soon(sent.finish, SendFailure.DISCONNECTED)
            return
        if sent.until < self._timer_at:
            self._look_at(sent.until)
        if self._ready and now < self._renew_at:
            self._write(sent)
            return
        self._waiting.append(sent)
        if self._opening is None:
            opening = self._renew_session() if self._ready else self._open()
            self._ready = False
            self._opening = self._tasks.create_task(opening)

    def close(self) -> None:
        """Close for good; what has no answer fails."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._opening is not None:
            self._opening.cancel()
        self._disconnect("closed")

    # --- opening ---

    @property
    def _security(self) -> ClientSecurity:
        return self._security_now()

    async def _open(self) -> None:
        """Connect and learn the peer's versions, or fail all that waits."""
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                await self._dial()
                self.api_versions = await self._ask_versions()
                self._versions.clear()
                await self._authenticate()
        except (OSError, ValueError, OverflowError) as error:
            # Also for what a peer said of a third one: no name, or a port above 65535.
            self._not_opened(error)
            return
        self._backoff_seconds = 0.0
        self._opened()

    async def _renew_session(self) -> None:
        """Authenticate again on the connection as it is, or fail all that waits."""
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                await self._authenticate()
        except (OSError, ValueError) as error:
            self._not_opened(error)
            return
        self._opened()

    def _opened(self) -> None:
        self._opening = None
        self._ready = True
        while self._waiting:
            self._write(self._waiting.popleft())

    def _not_opened(self, error: Exception) -> None:
        reason = tls_failure(error) if isinstance(error, ssl.SSLError) else str(error)
        if isinstance(error, AuthenticationFailed | ssl.SSLError):  # tried again: files may change
            _log.warning("not connected to=%s:%s reason=%r", self.host, self.port, reason)
        self._back_off()
        self._opening = None
        self._disconnect(f"not connected: {reason or 'it took too long'}")

    async def _authenticate(self) -> None:
        """Show who we are, if that is asked for. Raises ConnectionError."""
        if self._security.sasl is None:
            return
        dialogue = self._security.sasl.dialogue()
        began = self._loop.time()
        request = next(dialogue)
        try:
            while True:
                version = self._negotiated(type(request))
                if version is None or (isinstance(request, SaslHandshakeRequest) and version < 1):
                    raise AuthenticationFailed("the server does not serve SASL as it should")
                request = dialogue.send(await self._exchange(request, version))
        except StopIteration as ended:
            lifetime_seconds = ended.value / 1000
        is_bounded = lifetime_seconds > 0
        self._renew_at = began + _RENEWED_AFTER * lifetime_seconds if is_bounded else math.inf

    async def _dial(self) -> None:
        context = self._security.tls
        await self._loop.create_connection(
            lambda: _Link(self, self._limits.frame_bytes_max),
            self.host,
            self.port,
            ssl=context,
            server_hostname=None if context is None else self._certified_host,
        )

    async def _ask_versions(self) -> tuple[ApiVersion, ...]:
        """The newest ApiVersions first; a peer that lacks it answers in version 0 (KIP-511)."""
        answer = await self._exchange_versions(_API_VERSIONS_NEWEST)
        if answer.error_code is ErrorCode.UNSUPPORTED_VERSION:
            theirs = [api for api in answer.api_keys if api.api_key == API_VERSIONS_KEY]
            newest = theirs[0].max_version if theirs else 0
            answer = await self._exchange_versions(min(max(newest, 0), _API_VERSIONS_NEWEST))
        if answer.error_code is not ErrorCode.NONE:
            raise Malformed(f"ApiVersions was answered with {answer.error_code.name}")
        return answer.api_keys

    async def _exchange_versions(self, version: int) -> ApiVersionsResponse:
        request = ApiVersionsRequest(
            client_software_name="quorumlab", client_software_version="0.1.0"
        )
        outcome = await self._exchange(request, version)
        assert isinstance(outcome, ApiVersionsResponse), outcome
        return outcome

    async def _exchange(self, request: Any, version: int) -> Any:
        """Ask what belongs to the opening itself. Raises ConnectionError."""
        answered: asyncio.Future[Outcome] = self._loop.create_future()

        def settle(outcome: Outcome) -> None:
            if not answered.done():
                answered.set_result(outcome)

        if self._link is None:
            raise ConnectionError("closed before it was open")
        self._write_version(_Sent(body=request, done=settle), version)
        outcome = await answered
        # What comes right behind the answer may have ended the connection before this task runs.
        if self._link is None or isinstance(outcome, SendFailure):
            raise ConnectionError(f"closed at the exchange of {type(request).__name__}")
        return outcome

    def _back_off(self) -> None:
        limits = self._limits
        self._backoff_seconds = min(
            max(2 * self._backoff_seconds, limits.backoff_first_seconds),
            limits.backoff_last_seconds,
        )
        self._retry_at = self._loop.time() + self._backoff_seconds

    # --- requests and answers ---

    def _write(self, sent: _Sent) -> None:
        kind = type(sent.body)
        if kind not in self._versions:
            self._versions[kind] = self._negotiated(kind)
        version = self._versions[kind]
        try:
            if version is None:
                raise CannotExpress("no version in common")
            self._write_version(sent, version)
        except CannotExpress as error:
            _log.info("request not sent to=%s:%s reason=%r", self.host, self.port, str(error))
            self._loop.call_soon(sent.finish, SendFailure.UNSUPPORTED_VERSION)

    def _negotiated(self, kind: type) -> int | None:
        own = api_of(kind)
        for theirs in self.api_versions or ():
            if theirs.api_key == own.key:
                newest = min(own.asked.newest, theirs.max_version)
                return newest if newest >= max(own.asked.oldest, theirs.min_version) else None
        return None

    def _write_version(self, sent: _Sent, version: int) -> None:
        assert self._link is not None, "not connected"
        sent.version = version
        sent.correlation_id = next(self._correlation_ids) & 0x7FFF_FFFF
        buffers = encode_request(sent.body, version, sent.correlation_id, self._client_id)
        self._in_flight.append(sent)
        frame = with_length(buffers)
        self._traffic.sent_bytes[api_of(type(sent.body)).key] += sum(map(len, frame))
        self._link.write(frame)

    def _look_at(self, at: float) -> None:
        """See by then whose time is up. One timer serves all that is on its way."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._loop.call_at(at, self._time_out)

    def _time_out(self) -> None:
        self._timer, self._timer_at = None, math.inf
        now = self._loop.time()
        for sent in [sent for sent in self._waiting if sent.until <= now]:
            self._waiting.remove(sent)
            sent.finish(SendFailure.TIMED_OUT)
        late = [sent for sent in self._in_flight if sent.until <= now]
        for sent in late:
            sent.finish(SendFailure.TIMED_OUT)
        if late:
            self._disconnect("a request had no answer in time")
        left = min((sent.until for sent in (*self._waiting, *self._in_flight)), default=math.inf)
        if left < math.inf:
            self._look_at(left)

    def connected(self, link: "_Link") -> None:
        """Told by the link itself: a task that is cancelled would lose what it was waiting for."""
        if self._opening is None or self._closed:
            link.close()
        else:
            self._link = link

    def answered(self, frame: bytes) -> None:
        """The oldest request in flight is answered. Raises Malformed."""
        if not self._in_flight:
            raise Malformed("an answer to nothing")
        sent = self._in_flight[0]
        key = api_of(type(sent.body)).key
        self._traffic.received_bytes[key] += len(frame) + LENGTH_BYTES
        version = sent.version
        if key == API_VERSIONS_KEY and frame[4:6] == _UNSUPPORTED_VERSION:
            version = 0  # a peer that lacks the version answers so, whatever was asked (KIP-511)
        correlation_id, body = decode_response(frame, key, version)
        if correlation_id != sent.correlation_id:
            raise Malformed(f"the answer to {correlation_id}, not {sent.correlation_id}")
        self._in_flight.popleft()
        sent.finish(body)

    def lost(self, link: "_Link", reason: str) -> None:
        """The peer, or the network, closed the connection."""
        if link is self._link:
            if self._opening is None:  # or else that counts the failure
                self._back_off()
            self._disconnect(reason)

    def _disconnect(self, reason: str) -> None:
        """Close, and fail everything: the core asks again if it wants to."""
        link, self._link = self._link, None
        self._ready = False
        if link is not None:
            link.close()
            _log.info("disconnected from=%s:%s reason=%r", self.host, self.port, reason)
        failed = [*self._in_flight]
        self._in_flight.clear()
        if self._opening is None or self._closed:
            failed += self._waiting
            self._waiting.clear()
        for sent in failed:
            sent.finish(SendFailure.DISCONNECTED)


class _Link(asyncio.BufferedProtocol):
    """The socket of a connection, from its opening to its end."""

    def __init__(self, owner: Connection, frame_bytes_max: int) -> None:
        self._owner = owner
        self._frames = FrameReader(frame_bytes_max=frame_bytes_max)
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._owner.connected(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self._frames.buffer_updated(nbytes)
        try:
            while self._transport is not None and self._frames.untaken_bytes:
                frame = self._frames.next_frame()
                if frame is None:
                    break
                self._owner.answered(frame)
        except (FrameError, Malformed) as error:
            _log.warning(
                "bad answer from=%s:%s reason=%r", self._owner.host, self._owner.port, str(error)
            )
            self._owner.lost(self, str(error))

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._owner.lost(self, str(exc) if exc is not None else "closed by the peer")

    def write(self, buffers: list[bytes]) -> None:
        if self._transport is not None:
            self._transport.write(b"".join(buffers))

    def close(self) -> None:
        """At once: whoever closes here has given up on the answers."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()


class ConnectionPool:
    """Connections by peer and channel: what shares both shares a connection and keeps its order.

    An async context: leaving it closes them all. `dial_overrides` says where to dial instead of the
    address of a peer, as proxies want it; peers are known by their own addresses all the same.
    `security_of` says how the connections of a channel are secured.
    """

    def __init__(
        self,
        *,
        client_id: str,
        security_of: Callable[[str], ClientSecurity] = lambda _channel: ClientSecurity(),
        limits: ClientLimits | None = None,
        dial_overrides: Mapping[Address, Address] | None = None,
        traffic: Traffic | None = None,
    ) -> None:
        self._client_id = client_id
        self._traffic = traffic or Traffic()
        self._limits = limits or ClientLimits()
        self._security_of = security_of
        self._dial_overrides = dict(dial_overrides or {})
        self._tasks = asyncio.TaskGroup()
        self._connections: dict[tuple[str, int, str], Connection] = {}

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for connection in self._connections.values():
            connection.close()
        await self._tasks.__aexit__(kind, error, traceback)

    def send(
        self, host: str, port: int, channel: str, body: Any, *, timeout_ms: int, done: Done
    ) -> None:
        """See `Connection.send`."""
        known = self._connections.get((host, port, channel))
        connection = known or self.connection(host, port, channel)
        connection.send(body, timeout_ms=timeout_ms, done=done)

    def connection(self, host: str, port: int, channel: str) -> Connection:
        """The connection of a channel, opened at its first request."""
        key = (host, port, channel)
        if key not in self._connections:
            dialled = self._dial_overrides.get((host, port), (host, port))
            self._connections[key] = Connection(
                *dialled,
                client_id=self._client_id,
                tasks=self._tasks,
                security=partial(self._security_of, channel),
                certified_host=host,
                limits=self._limits,
                traffic=self._traffic,
            )
        return self._connections[key]
