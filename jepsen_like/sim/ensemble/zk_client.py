"""A client of the simulated ensemble, with the behaviour of `wire.zk.kazoo_session`.

One belongs to one process: it is paused with it, and dies with it. Reconnects by itself, begins a
new session when the old one has ended, and leaves watches again that a lost connection took along.
It notices a server that it does not hear of after two thirds of the session's time, as kazoo does.
"""

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from random import Random

from jepsen_like.sim.ensemble.zk_ensemble import Ensemble
from jepsen_like.sim.ensemble.zk_server import Connection, Server
from wire.zk.accounting import ZkCounts
from wire.zk.session import (
    Error,
    Exists,
    Failed,
    GetChildren,
    Operation,
    Result,
    SessionChanged,
    SessionEvent,
    SessionState,
    WatchFired,
)
from wire.zk.watches import Watches

__all__ = ["EnsembleClient"]

_RETRY_US_MIN = 20_000
_RETRY_US_MAX = 100_000


class EnsembleClient:
    def __init__(
        self,
        ensemble: Ensemble,
        name: str,
        *,
        timeout_ms: int,
        hear: Callable[[SessionEvent], None],
    ) -> None:
        self.state = SessionState.NOT_CONNECTED
        self.session_id = 0
        self._ensemble = ensemble
        self._world = ensemble.world
        self._random: Random = ensemble.world.fork(f"zookeeper/{name}")
        self._hear = hear
        self._asked_ms = timeout_ms
        self._timeout_ms = timeout_ms  # as granted, once it was
        self._watches = Watches()
        self._counts = ZkCounts()
        self._connection: Connection | None = None
        self._attempts = 0  # numbers connections: what is of an older one is dropped
        self._pending: deque[Callable[[Result], None]] = deque()
        self._zxid = 0  # the last that was seen: no server that is behind will do
        self._is_cut = False
        self._is_paused = False
        self._has_ended = False

    # --- the process --------------------------------------------------------------------

    def start(self) -> None:
        self._world.after(0, self._begin)

    def _begin(self) -> None:
        if not self._has_ended:
            self._change(SessionState.CONNECTING)
            self._connect()

    def pause(self) -> None:
        self._is_paused = True
        self._hold()

    def resume(self) -> None:
        self._is_paused = False
        self._hold()
        if self._is_cut:
            self._watch_the_clock()

    def cut(self) -> None:
        """No server can be reached; nobody is told."""
        self._is_cut = True
        self._hold()
        self._watch_the_clock()

    def heal(self) -> None:
        self._is_cut = False
        self._hold()

    def die(self, *, silently: bool = False) -> None:
        """The process ends. `silently`: with its machine, which does not close connections."""
        self._has_ended = True
        self._drop_connection(silently=silently)

    def close(self) -> None:
        """End the session in good order; nothing is told from now on."""
        if self._connection is not None and self.state is SessionState.CONNECTED:
            close = partial(self._ensemble.close, self.session_id, server_id=self._server_id)
            self._connection.to_server.send(partial(close, answer=lambda _result: None))
        self._has_ended = True

    def counts(self) -> Mapping[str, int]:
        """As `wire.zk.kazoo_session.KazooSession` has it; there are no bytes."""
        return self._counts.describe(self._watches)

    # --- asking -------------------------------------------------------------------------

    def ask(self, operation: Operation, *, session_id: int, done: Callable[[Result], None]) -> None:
        """As `wire.zk.session.ZkClient` has it."""
        if session_id == self.session_id and self.state is SessionState.CONNECTED:
            self._ask(operation, partial(self._take_result, operation, done))
            return
        is_of_this = session_id == self.session_id and self.state is SessionState.CONNECTING
        error = Error.CONNECTION_LOSS if is_of_this else Error.SESSION_EXPIRED
        self._world.after(0, partial(self._refuse, done, error))

    def _refuse(self, done: Callable[[Result], None], error: Error) -> None:
        if not self._has_ended:
            done(Failed(error=error))

    def _ask(self, operation: Operation, done: Callable[[Result], None]) -> None:
        connection = self._connection
        assert connection is not None, self.state
        server = self._ensemble.servers[self._server_id]
        self._counts.asked(operation)
        self._pending.append(done)

        def answer(result: Result) -> None:
            arrival = partial(self._answered, connection, result, server.zxid)
            connection.to_client.send(arrival)

        connection.to_server.send(partial(server.request, connection, operation, answer))

    def _answered(self, connection: Connection, result: Result, zxid: int) -> None:
        if connection is self._connection and not self._has_ended:
            self._zxid = max(self._zxid, zxid)
            self._pending.popleft()(result)

    def _take_result(
        self, operation: Operation, done: Callable[[Result], None], result: Result
    ) -> None:
        self._watches.note(operation, result)
        done(result)

    def _heard(self, event: WatchFired, zxid: int) -> None:
        self._zxid = max(self._zxid, zxid)
        if self._watches.fired(event) and not self._has_ended:
            self._hear(event)

    # --- connecting ---------------------------------------------------------------------

    def _connect(self) -> None:
        """Try one server; whoever does not answer in time is given up."""
        if self._has_ended:
            return
        if self._is_paused:
            self._try_again()
            return
        self._attempts += 1
        self._server_id = self._random.choice(tuple(self._ensemble.servers))
        server = self._ensemble.servers[self._server_id]
        attempt = self._attempts
        connection = Connection(
            self._world,
            self._ensemble.draw_us,
            heard=self._heard,
            reset=partial(self._lost, attempt),
        )
        self._connection = connection
        self._hold()
        connection.to_server.send(partial(self._accept, server, connection, attempt))
        self._world.after(self._timeout_ms * 1000 // 3, partial(self._give_up, attempt))

    def _accept(self, server: Server, connection: Connection, attempt: int) -> None:
        """At the server."""
        ensemble = self._ensemble
        if not ensemble.serves(server.id, self._zxid):
            connection.close_at_server()
            return

        def opened(session_id: int, timeout_ms: int) -> None:
            server.attach(connection, session_id)
            if not connection.to_server.is_open:  # the client has gone meanwhile
                server.forget(connection)
            elif not self._is_cut and not self._is_paused:
                ensemble.heard(session_id)
            arrival = partial(self._connected, attempt, session_id, timeout_ms, server.zxid)
            connection.to_client.send(arrival)

        if self.session_id == 0:
            ensemble.open(self._asked_ms, server_id=server.id, answer=opened)
            return
        timeout_ms = ensemble.resume(self.session_id)
        if timeout_ms == 0:
            connection.to_client.send(partial(self._expired, attempt))
            return
        ensemble.hang_up(self.session_id)  # an older connection of it, wherever it is
        opened(self.session_id, timeout_ms)

    def _connected(self, attempt: int, session_id: int, timeout_ms: int, zxid: int) -> None:
        if attempt != self._attempts or self._has_ended:
            return
        self._zxid = max(self._zxid, zxid)
        self._timeout_ms = timeout_ms
        self.session_id = session_id
        self.state = SessionState.CONNECTED
        for read in self._watches.again():
            self._ask(read, partial(self._take_missed, read))
        self._change(SessionState.CONNECTED)

    def _take_missed(self, read: Exists | GetChildren, result: Result) -> None:
        missed = self._watches.missed(read, result)
        if missed is not None:
            self._heard(missed, self._zxid)

    def _expired(self, attempt: int) -> None:
        if attempt != self._attempts or self._has_ended:
            return
        self._change(SessionState.CLOSED)
        self._watches.clear()
        self.session_id = 0
        self._zxid = 0
        self._begin()

    # --- losing the connection ----------------------------------------------------------

    def _lost(self, attempt: int) -> None:
        if attempt != self._attempts or self._has_ended:
            return
        self._drop_connection(silently=False)
        pending, self._pending = self._pending, deque()
        was_connected = self.state is SessionState.CONNECTED
        if was_connected:
            self.state = SessionState.CONNECTING  # for those who ask again at once
        for done in pending:
            done(Failed(error=Error.CONNECTION_LOSS))
        if was_connected:
            self._change(SessionState.CONNECTING)
        self._try_again()

    def _try_again(self) -> None:
        wait_us = self._random.randint(_RETRY_US_MIN, _RETRY_US_MAX)
        self._world.after(wait_us, self._connect)

    def _give_up(self, attempt: int) -> None:
        """A server that takes a connection and says nothing."""
        if self.state is not SessionState.CONNECTING or attempt != self._attempts:
            return
        if self._is_paused:
            self._world.after(_RETRY_US_MAX, partial(self._give_up, attempt))
        else:
            self._lost(attempt)

    def _drop_connection(self, *, silently: bool) -> None:
        connection, self._connection = self._connection, None
        self._attempts += 1
        if connection is None:
            return
        connection.to_client.close()
        self._ensemble.detached(self.session_id)
        if silently or self._is_cut:  # the server does not hear of it, only nothing more
            connection.to_server.close()
            return
        server = self._ensemble.servers[self._server_id]

        def forget() -> None:
            connection.to_server.close()
            server.forget(connection)

        connection.to_server.send(forget)

    def _watch_the_clock(self) -> None:
        attempt = self._attempts

        def look() -> None:
            if self._is_cut and attempt == self._attempts and not self._is_paused:
                self._lost(attempt)

        self._world.after(self._timeout_ms * 2000 // 3, look)

    def _hold(self) -> None:
        """Bytes wait while they cannot pass, and nobody is heard."""
        connection = self._connection
        if connection is None:
            return
        connection.to_server.is_held = self._is_cut
        connection.to_client.is_held = self._is_cut or self._is_paused
        if connection.to_client.is_held:
            self._ensemble.detached(self.session_id)
        elif self._ensemble.servers[self._server_id].has(connection):
            self._ensemble.heard(self.session_id)
        if not connection.to_server.is_held:
            connection.to_server.release()
        if not connection.to_client.is_held:
            connection.to_client.release()

    def _change(self, state: SessionState) -> None:
        self.state = state
        self._hear(
            SessionChanged(state=state, session_id=self.session_id, timeout_ms=self._timeout_ms)
        )
