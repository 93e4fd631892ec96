"""kazoo's client, with its connections numbered and everything told where it is read. An edge.

This reaches into kazoo: its version is pinned. What it is for is told in `wire.zk.kazoo_session`.
"""

import logging
import select
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import ceil
from threading import Lock
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, WriterNotClosedException
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import Connect
from kazoo.protocol.states import KeeperState

from wire.zk.accounting import ZkCounts
from wire.zk.session import SessionChanged, SessionState

__all__ = ["DISCONNECTED", "Answer", "NumberedClient"]

DISCONNECTED = 0
_RETRY = {"max_tries": -1, "delay": 0.02, "backoff": 1.5, "max_delay": 0.5}

_log = logging.getLogger("quorumlab.zookeeper")
_log.setLevel(logging.ERROR)  # that connections come and go is told as events


class Answer:
    """What kazoo gives its answer to: once, and on whichever thread it has it."""

    __slots__ = ("_done",)

    def __init__(self, done: Callable[[Any, Exception | None], None]) -> None:
        self._done: Callable[[Any, Exception | None], None] | None = done

    def set(self, answer: Any) -> None:
        self._give(answer, None)

    def set_exception(self, error: Exception) -> None:
        self._give(None, error)

    def _give(self, answer: Any, error: Exception | None) -> None:
        done, self._done = self._done, None
        if done is not None:  # a connection that closes may fail twice
            done(answer, error)


class _Inline(SequentialThreadingHandler):  # type: ignore[misc] # kazoo has no types
    """Calls back where kazoo reads, instead of in another thread: events stay in their order.

    Its waits are polls. kazoo's own make a selector each, four times an operation, which is most
    of what a pipelined operation costs.
    """

    def dispatch_callback(self, callback: Any) -> None:
        callback.func(*callback.args)

    def select(
        self,
        readers: Sequence[Any],
        writers: Sequence[Any],
        _errors: Sequence[Any],
        timeout: float | None = None,
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """A socket that has failed is ready: whoever uses it hears why."""
        poll = select.poll()
        for each in readers:
            poll.register(each, select.POLLIN)
        for each in writers:
            poll.register(each, select.POLLOUT)
        ready = dict(poll.poll(None if timeout is None else ceil(timeout * 1000)))
        return (
            [each for each in readers if each.fileno() in ready],
            [each for each in writers if each.fileno() in ready],
            [],
        )


class _Connection(ConnectionHandler):  # type: ignore[misc] # kazoo has no types
    """Keeps what kazoo drops: for how long the ensemble has granted the session. Counts bytes."""

    granted_ms = 0
    counts: ZkCounts

    def _read(self, length: int, timeout: float) -> Any:
        read = super()._read(length, timeout)
        self.counts.received_bytes += length
        return read

    def _write(self, msg: bytes, timeout: float) -> None:
        super()._write(msg, timeout)
        self.counts.sent_bytes += len(msg)

    def _invoke(self, timeout: float, request: Any, xid: int | None = None) -> Any:
        answer = super()._invoke(timeout, request, xid)
        if isinstance(request, Connect):
            self.granted_ms = answer[0].time_out
        return answer


class NumberedClient(KazooClient):  # type: ignore[misc] # kazoo has no types
    """A client that numbers its connections, and takes requests for a certain one only."""

    def __init__(
        self,
        hosts: str,
        *,
        timeout_ms: int,
        changed: Callable[[SessionChanged, int], None],
        counts: ZkCounts,
    ) -> None:
        super().__init__(
            hosts,
            timeout=timeout_ms / 1000,
            handler=_Inline(),
            connection_retry=_RETRY,
            logger=_log,
        )
        self._connection = _Connection(self, self._conn_retry.copy(), logger=_log)
        self._connection.counts = counts  # only its thread adds bytes
        self._changed = changed
        self._lock = Lock()  # between a change of state and a request that must not outlive it
        self._connections = 0
        self._connected = DISCONNECTED

    def submit(self, request: Any, answer: Answer, connection: int) -> None:
        with self._lock:
            if connection == self._connected:
                self._call(request, answer)
                return
        answer.set_exception(ConnectionLoss())

    def end(self) -> None:
        """Close the session; a server that does not answer will expire it."""
        with suppress(WriterNotClosedException):
            self.stop()
            self.close()

    def _session_callback(self, state: Any) -> None:
        """kazoo changes its state here, on its own thread, and answers all that was under way."""
        with self._lock:
            if state == self._state:
                return
            session_id = self._session_id or 0
            self._connected = DISCONNECTED
            super()._session_callback(state)
            if state == KeeperState.CONNECTED:
                self._connections += 1
                self._connected = self._connections
                said = SessionState.CONNECTED
            elif state == KeeperState.CONNECTING:
                said = SessionState.CONNECTING
            else:
                said = SessionState.CLOSED
            changed = SessionChanged(
                state=said, session_id=session_id, timeout_ms=self._connection.granted_ms
            )
            self._changed(changed, self._connected)
