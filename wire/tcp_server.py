"""A listener: its socket, its connections, and which of them a reply belongs to.

How one connection reads and answers is in `wire.tcp_connection`. A listener that speaks TLS counts
connections before their handshake, and takes its certificates anew for each: those of before live
on when others are set.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from operator import attrgetter
from typing import cast

from wire.admission import Admission
from wire.api_table import ListenerKind
from wire.framing import Traffic
from wire.security.connection_count import ConnectionCount, Leaving
from wire.security.protocols import ServerSecurity, ServerTls
from wire.security.tls_failures import tls_failure
from wire.serving import Received, ServerLimits
from wire.tcp_connection import ServedConnection
from wire.tls_hello import NothingSaid, NotTls, wait_for_hello

__all__ = ["Server"]

_log = logging.getLogger(__name__)
_STOP_SECONDS = 1.0  # how long a stop waits for answers to be written out
_HANDSHAKES_MAX = 200  # at once: each has buffers of some 300 KiB
_TLS_SHUTDOWN_SECONDS = 2.0  # for a peer to say that it has heard of the end


class Server:
    """Listens at one address. `receive` is called in the event loop and must not block."""

    def __init__(
        self,
        *,
        listener: str,
        kind: ListenerKind,
        receive: Callable[[Received], None],
        tokens: Iterator[int],
        security: ServerSecurity | None = None,
        limits: ServerLimits | None = None,
        traffic: Traffic | None = None,
        gathers: bool = False,
        admit: Callable[[str], Admission] = lambda _host: Admission(),
        counted: ConnectionCount | None = None,
    ) -> None:
        """`tokens` numbers requests; the servers of a process share one. Those that have `counted`
        in common count their connections together.

        One that `gathers` writes no reply before it is told to `flush`. `admit` says what becomes
        of a new connection, by its host.
        """
        self.listener = listener
        self.kind = kind
        self.receive = receive
        self.tokens = tokens
        self.security = security or ServerSecurity()
        self.limits = limits or ServerLimits()
        self.traffic = traffic or Traffic()
        self.admit = admit
        self.unwritten: dict[ServedConnection, None] = {}  # an ordered set: have gathered replies
        self._gathers = gathers
        self._counted = counted or ConnectionCount()
        self._counted.lend(self._least_active)
        self._handshakes: set[asyncio.Task[None]] = set()
        self._turns = asyncio.Semaphore(_HANDSHAKES_MAX)
        self._unopened: set[ServedConnection] = set()  # that shake hands
        self._connections: dict[ServedConnection, str] = {}  # with the address of the client
        self._by_token: dict[int, ServedConnection] = {}
        self._server: asyncio.Server | None = None
        self._all_closed = asyncio.Event()

    async def start(self, host: str, port: int) -> int:
        """Listen, and return the port: the one that was free if `port` is 0."""
        assert self._server is None, "started twice"
        loop = asyncio.get_running_loop()
        server = await loop.create_server(self._serve, host or None, port)
        ports = [address.getsockname()[1] for address in server.sockets]
        if len(set(ports)) > 1:  # a host with several addresses got a port for each
            server.close()
            server = await loop.create_server(self._serve, host or None, ports[0])
        self._server = server
        return cast(int, ports[0])

    def reply(self, token: int, body: object | None) -> None:
        """Answer a request; None sends nothing. The token of a closed connection is ignored.

        An EnvelopeResponse for a request that was not an envelope is the answer of the controller
        that it was forwarded to: what is in it is sent as it is.
        """
        connection = self._by_token.pop(token, None)
        if connection is None:
            return
        if self._gathers:
            connection.make_ready(token, body)
            self.unwritten[connection] = None
        else:
            connection.reply(token, body)

    def mute(self, token: int, mute_ms: int) -> None:
        """Read no more for so long of the connection that sent the request, which may be gone."""
        connection = self._by_token.get(token)
        if connection is not None and mute_ms > 0:
            connection.mute(mute_ms / 1000)

    def flush(self) -> None:
        """Write what was gathered: to each connection all that it is to have, at once."""
        unwritten, self.unwritten = self.unwritten, {}
        for connection in unwritten:
            connection.flush()

    def hang_up(self, token: int) -> None:
        """Close the connection instead of answering: whether it was done, nobody can say."""
        connection = self._by_token.pop(token, None)
        if connection is not None:
            connection.abort()

    async def stop(self) -> None:
        """Stop listening, write out what is answered, and close every connection."""
        if self._server is None:
            return
        await _stop_accepting(self._server)
        self._server.close()
        for handshake in tuple(self._handshakes):
            handshake.cancel()
        if self._handshakes:
            await asyncio.wait(self._handshakes)
        if self._connections:
            self._all_closed.clear()
            for connection in tuple(self._connections):
                connection.close()
            try:
                async with asyncio.timeout(_STOP_SECONDS):
                    await self._all_closed.wait()
            except TimeoutError:
                for connection in tuple(self._connections):
                    connection.abort()
                await self._all_closed.wait()
        await self._server.wait_closed()
        self._server = None

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    @property
    def connections(self) -> tuple[ServedConnection, ...]:
        return tuple(self._connections)

    @property
    def handshake_count(self) -> int:
        return len(self._handshakes)

    def _serve(self) -> "ServedConnection | _Arrival":
        tls = self.security.tls
        return ServedConnection(self) if tls is None else _Arrival(self, tls)

    def arrived(self, transport: asyncio.BaseTransport, tls: ServerTls) -> None:
        """Shake hands with a client, unless there are too many."""
        host, port = (transport.get_extra_info("peername") or ("?", 0))[:2]
        refusal = self._enter(host)
        if refusal is not None:
            self._log_refusal(host, port, refusal)
            return
        try:  # asyncio shakes hands over a socket that it is given: this is the same one
            accepted = transport.get_extra_info("socket").dup()
        except OSError as error:
            self._counted.leave(self.listener, host)
            self._log_refusal(host, port, str(error))
            return
        task = asyncio.get_running_loop().create_task(self._shake_hands(accepted, host, port, tls))
        self._handshakes.add(task)
        task.add_done_callback(self._handshakes.discard)

    async def _shake_hands(
        self, accepted: socket.socket, host: str, port: int, tls: ServerTls
    ) -> None:
        connection = ServedConnection(self)
        self._unopened.add(connection)
        try:
            await self._wait_for_turn(accepted, tls)
            try:
                await asyncio.get_running_loop().connect_accepted_socket(
                    lambda: connection,
                    accepted,
                    ssl=tls.context,
                    ssl_handshake_timeout=tls.handshake_seconds,
                    ssl_shutdown_timeout=_TLS_SHUTDOWN_SECONDS,
                )
            finally:
                self._turns.release()
        except NothingSaid:
            pass  # nothing to tell: `doctor`, or a balancer's probe
        except NotTls as error:
            self._log_refusal(host, port, str(error))
        except OSError as error:
            self._log_refusal(host, port, tls_failure(error))
        finally:
            if connection in self._unopened:
                self._unopened.discard(connection)
                self._counted.leave(self.listener, host)

    async def _wait_for_turn(self, accepted: socket.socket, tls: ServerTls) -> None:
        """Let the client begin, and those before it end. Closes the socket if it takes too long."""
        with ExitStack() as unbegun:
            unbegun.callback(accepted.close)
            accepted.setblocking(False)
            async with asyncio.timeout(tls.handshake_seconds):
                await wait_for_hello(accepted)
                await self._turns.acquire()
            unbegun.pop_all()

    def _log_refusal(self, host: str, port: int, reason: str) -> None:
        _log.warning(
            "connection closed peer=%s:%s listener=%s reason=%r", host, port, self.listener, reason
        )

    def _enter(self, host: str) -> str | None:
        return self._counted.enter(self.listener, host, self.limits.connections)

    def _least_active(self) -> Leaving | None:
        open_ones = [each for each in self._connections if not each.is_closing]
        if self.limits.connections.is_protected or not open_ones:
            return None
        found = min(open_ones, key=attrgetter("active_at"))
        return Leaving(found.active_at, partial(found.refuse, "it makes room between brokers"))

    def opened(self, connection: ServedConnection, host: str) -> str | None:
        """Keep a new connection, or say why there are too many."""
        refusal = None
        if connection in self._unopened:
            self._unopened.discard(connection)  # it was counted when it arrived
        else:
            refusal = self._enter(host)
        if refusal is None:
            self._connections[connection] = host
        return refusal

    def lost(self, connection: ServedConnection, tokens: list[int]) -> None:
        """Forget a connection and the requests that it did not get answers to."""
        host = self._connections.pop(connection, None)
        if host is not None:
            self._counted.leave(self.listener, host)
        for token in tokens:
            self._by_token.pop(token, None)
        if not self._connections:
            self._all_closed.set()

    def expect_reply(self, token: int, connection: ServedConnection) -> None:
        self._by_token[token] = connection


class _Arrival(asyncio.Protocol):
    """A client that was accepted, and has not shaken hands yet."""

    def __init__(self, server: Server, tls: ServerTls) -> None:
        self._server = server
        self._tls = tls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._server.arrived(transport, self._tls)
        cast(asyncio.Transport, transport).abort()  # closes its own descriptor, and not the other


async def _stop_accepting(server: asyncio.Server) -> None:
    """A connection accepted in the turn in which a server closes is never closed (CPython 3.11):
    listen to no more of them, and let those that were accepted come to life."""
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        loop.remove_reader(listening.fileno())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
