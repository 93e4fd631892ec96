"""A real ZooKeeper, asked through kazoo: keeps the promises of `wire.zk.session`. An edge.

kazoo's client runs in a thread of its own, and makes none of these promises by itself:

  - It keeps what is asked while it is disconnected, and sends it when it is connected again, even
    in another session. Here whatever is asked is handed over under a lock, and only if the
    connection is still the one that the asker has heard of.
  - It tells of results and watches in two threads. Here both are told where they are read, and
    come to the event loop through one queue, in their order.
  - It forgets watches when it loses the connection: they are left again, see `wire.zk.watches`.
  - It is woken by a byte in a socket that holds 278 of them, and blocks who asks for more. Here so
    many wait for their answer at most that it never does.
  - It does not expire by itself, nor does any client: see `Session.may_have_expired_at_ms`.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from wire.zk import session as zk
from wire.zk.accounting import ZkCounts
from wire.zk.kazoo_client import DISCONNECTED, Answer, NumberedClient
from wire.zk.kazoo_requests import failure_of, request_of, result_of, watch_fired
from wire.zk.paths import parents
from wire.zk.watches import Watches

__all__ = ["KazooSession"]

_IN_FLIGHT_MAX = 200  # less than the bytes that the socket of kazoo's thread holds


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    operation: zk.Operation
    root: str
    connection: int  # that the asker has heard of
    done: Callable[[zk.Result], None]


class KazooSession:
    """One client of a ZooKeeper; its sessions follow each other. Used on one event loop.

    `connect` is a list of `host:port`, separated by commas, and possibly a path behind them under
    which everything lies; it is created if it is missing.
    """

    def __init__(
        self, connect: str, *, timeout_ms: int, hear: Callable[[zk.SessionEvent], None]
    ) -> None:
        hosts, slash, root = connect.partition("/")
        self._root = (slash + root).rstrip("/")
        self._hear = hear
        self._counts = ZkCounts()
        self._client = NumberedClient(
            hosts, timeout_ms=timeout_ms, changed=self._changed, counts=self._counts
        )
        self._watches = Watches()
        self._state = zk.SessionState.NOT_CONNECTED
        self._session_id = 0
        self._connection = DISCONNECTED  # that has been heard of
        self._waiting: deque[_Asked] = deque()
        self._in_flight = 0
        self._arrived: deque[Callable[[], None]] = deque()  # from kazoo's thread
        self._is_waking = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False

    def start(self) -> None:
        """Connect, and stay connected. Within the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._client.start_async()

    async def close(self) -> None:
        """End the session, with everything ephemeral. Nothing is told from now on."""
        self._is_closed = True
        await asyncio.to_thread(self._client.end)

    def ask(
        self, operation: zk.Operation, *, session_id: int, done: Callable[[zk.Result], None]
    ) -> None:
        """As `wire.zk.session.ZkClient` has it."""
        if session_id == self._session_id and self._state is zk.SessionState.CONNECTED:
            self._ask(operation, self._root, partial(self._take_result, operation, done))
            return
        is_of_this = session_id == self._session_id and self._state is zk.SessionState.CONNECTING
        error = zk.Error.CONNECTION_LOSS if is_of_this else zk.Error.SESSION_EXPIRED
        self._arrive(partial(done, zk.Failed(error=error)))

    def counts(self) -> Mapping[str, int]:
        """What it has asked and heard since it began, under names that begin with `zk.`."""
        return self._counts.describe(self._watches)

    # --- out ----------------------------------------------------------------------------

    def _ask(self, operation: zk.Operation, root: str, done: Callable[[zk.Result], None]) -> None:
        asked = _Asked(operation=operation, root=root, connection=self._connection, done=done)
        self._waiting.append(asked)
        self._send()

    def _send(self) -> None:
        while self._waiting and self._in_flight < _IN_FLIGHT_MAX:
            asked = self._waiting.popleft()
            self._in_flight += 1
            self._counts.asked(asked.operation)
            request = request_of(asked.operation, asked.root, self._watched)
            answer = Answer(partial(self._answered, asked))
            self._client.submit(request, answer, asked.connection)

    # --- in, on kazoo's thread or on the loop's -----------------------------------------

    def _arrive(self, news: Callable[[], None]) -> None:
        assert self._loop is not None, "not started"
        self._arrived.append(news)
        if not self._is_waking and not self._is_closed:
            self._is_waking = True
            self._loop.call_soon_threadsafe(self._take)

    def _answered(self, asked: _Asked, answer: Any, error: Exception | None) -> None:
        self._arrive(partial(self._take_answer, asked, answer, error))

    def _watched(self, event: Any) -> None:
        fired = watch_fired(event, self._root)
        if fired is not None:
            self._arrive(partial(self._take_watch, fired))

    def _changed(self, changed: zk.SessionChanged, connection: int) -> None:
        self._arrive(partial(self._take_change, changed, connection))

    # --- in, on the loop ----------------------------------------------------------------

    def _take(self) -> None:
        self._is_waking = False  # before looking: what comes from now on wakes again
        while self._arrived and not self._is_closed:
            self._arrived.popleft()()

    def _take_answer(self, asked: _Asked, answer: Any, error: Exception | None) -> None:
        self._in_flight -= 1
        if error is None:
            result = result_of(asked.operation, answer, asked.root)
        else:
            result = failure_of(error)
        asked.done(result)
        self._send()

    def _take_result(
        self, operation: zk.Operation, done: Callable[[zk.Result], None], result: zk.Result
    ) -> None:
        self._watches.note(operation, result)
        done(result)

    def _take_watch(self, fired: zk.WatchFired) -> None:
        if self._watches.fired(fired):  # who watches data and children hears of a deletion once
            self._hear(fired)

    def _take_change(self, changed: zk.SessionChanged, connection: int) -> None:
        resumed = changed.session_id == self._session_id
        self._state, self._connection = changed.state, connection
        self._session_id = changed.session_id
        match changed.state:
            case zk.SessionState.CONNECTED if resumed:
                self._watch_again()
            case zk.SessionState.CONNECTED:
                self._create_root()
            case zk.SessionState.CLOSED:
                self._session_id = 0
                self._watches.clear()
        self._refuse_waiting()
        self._hear(changed)

    def _refuse_waiting(self) -> None:
        """Refuse requests that were to go out on a former connection."""
        old = [asked for asked in self._waiting if asked.connection != self._connection]
        self._waiting = deque(
            asked for asked in self._waiting if asked.connection == self._connection
        )
        for asked in old:
            asked.done(zk.Failed(error=zk.Error.CONNECTION_LOSS))

    def _watch_again(self) -> None:
        """Leave the watches before anybody reads: an event comes before a result that shows its
        change."""
        for read in self._watches.again():
            self._ask(read, self._root, partial(self._take_missed, read))

    def _take_missed(self, read: zk.Exists | zk.GetChildren, result: zk.Result) -> None:
        missed = self._watches.missed(read, result)
        if missed is not None:
            self._take_watch(missed)

    def _create_root(self) -> None:
        if self._root:
            for path in (*parents(self._root), self._root):
                self._ask(zk.Create(path=path), "", _ignore)


def _ignore(_result: zk.Result) -> None:
    """It exists, or whatever is asked next will fail."""
