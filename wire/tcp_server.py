"""A listener: its socket, its connections, and which of them a reply belongs to.

How one connection reads and answers is in `wire.tcp_connection`.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import cast

from wire.api_table import ListenerKind
from wire.framing import Traffic
from wire.tcp_connection import Received, ServedConnection, ServerLimits

__all__ = ["Server"]

_STOP_SECONDS = 1.0  # how long a stop waits for answers to be written out


class Server:
    """Listens at one address. `receive` is called in the event loop and must not block."""

    def __init__(
        self,
        *,
        listener: str,
        kind: ListenerKind,
        receive: Callable[[Received], None],
        tokens: Iterator[int],
        limits: ServerLimits | None = None,
        traffic: Traffic | None = None,
        gathers: bool = False,
    ) -> None:
        """`tokens` numbers requests; the servers of a process share one.

        One that `gathers` writes no reply before it is told to `flush`.
        """
        self.listener = listener
        self.kind = kind
        self.receive = receive
        self.tokens = tokens
        self.limits = limits or ServerLimits()
        self.traffic = traffic or Traffic()
        self.unwritten: dict[ServedConnection, None] = {}  # an ordered set: have gathered replies
        self._gathers = gathers
        self._connections: set[ServedConnection] = set()
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

    def _serve(self) -> ServedConnection:
        return ServedConnection(self)

    def opened(self, connection: ServedConnection) -> bool:
        """Keep a new connection, unless there are too many."""
        if len(self._connections) >= self.limits.connections_max:
            return False
        self._connections.add(connection)
        return True

    def lost(self, connection: ServedConnection, tokens: list[int]) -> None:
        """Forget a connection and the requests that it did not get answers to."""
        self._connections.discard(connection)
        for token in tokens:
            self._by_token.pop(token, None)
        if not self._connections:
            self._all_closed.set()

    def expect_reply(self, token: int, connection: ServedConnection) -> None:
        self._by_token[token] = connection


async def _stop_accepting(server: asyncio.Server) -> None:
    """A connection accepted in the turn in which a server closes is never closed (CPython 3.11):
    listen to no more of them, and let those that were accepted come to life."""
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        loop.remove_reader(listening.fileno())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
