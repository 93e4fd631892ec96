"""One ZooKeeper server on virtual time: its copy of the tree, its connections and their watches.

Reads are answered from its own copy, which may be behind; writes go to the leader, and are answered
when this server has applied them. Requests of a connection keep their order: a read waits for the
writes before it. An event goes out before anything that shows what it tells of, because both go
through the same stream and the event is sent as the change is applied.

Source: ZooKeeper's CommitProcessor and WatchManager.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

from jepsen_like.sim.ensemble.zk_tree import Tree
from jepsen_like.sim.time.virtual_time import VirtualTime
from wire.zk.accounting import request_bytes
from wire.zk.session import (
    REQUEST_BYTES_MAX,
    Create,
    Delete,
    Error,
    Exists,
    Failed,
    GetChildren,
    GetData,
    Multi,
    Operation,
    Result,
    SetData,
    Unwatch,
    Unwatched,
    WatchFired,
    WatchKind,
)

__all__ = [
    "Change",
    "CloseSession",
    "Connection",
    "Leader",
    "OpenSession",
    "Server",
    "Stream",
    "Transaction",
]


_Arrival = Callable[[], None]


class Stream:
    """One direction: what is sent arrives later, in its order, or not at all.

    Bytes that meet a link that is cut, or a process that is paused, wait as TCP lets them wait;
    they are lost with the connection.
    """

    def __init__(self, world: VirtualTime, draw_us: Callable[[], int]) -> None:
        self._world = world
        self._draw_us = draw_us
        self._due_us = 0
        self._held: deque[_Arrival] = deque()
        self.is_open = True
        self.is_held = False

    def send(self, arrival: _Arrival) -> None:
        self._due_us = max(self._due_us, self._world.now_us + self._draw_us())
        self._world.at(self._due_us, lambda: self._arrive(arrival))

    def release(self) -> None:
        """Nothing holds it any longer: what has waited arrives, in its order."""
        self.is_held = False
        while self._held and self.is_open and not self.is_held:
            self._held.popleft()()

    def close(self) -> None:
        """Nobody reads it any longer."""
        self.is_open = False
        self._held.clear()

    def _arrive(self, arrival: _Arrival) -> None:
        if not self.is_open:
            return
        if self.is_held:
            self._held.append(arrival)
        else:
            arrival()


class Connection:
    """Between a client and one server: two ordered streams of calls.

    `session_id` is 0 until the server has said whose it is."""

    def __init__(
        self,
        world: VirtualTime,
        draw_us: Callable[[], int],
        *,
        heard: Callable[[WatchFired, int], None],
        reset: Callable[[], None],
    ) -> None:
        self.to_server = Stream(world, draw_us)
        self.to_client = Stream(world, draw_us)
        self.session_id = 0
        self.heard = heard  # at the client: an event, and the zxid at which the server was
        self._reset = reset  # at the client: the server has hung up

    def close_at_server(self) -> None:
        """What it has said before still arrives."""
        if self.to_server.is_open:
            self.to_server.close()
            self.to_client.send(self._reset)


@dataclass(frozen=True, slots=True)
class OpenSession:
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class CloseSession:
    pass


Change = Create | SetData | Delete | Multi | OpenSession | CloseSession
Answer = Callable[[Result | None], None]  # None: a session was opened or closed


class Transaction(NamedTuple):
    """One entry of the ensemble's log. Refused writes are in it, too."""

    zxid: int
    change: Change
    session_id: int
    server_id: int  # where it came from, and is answered
    answer: Answer


class Leader(Protocol):
    """What a server needs of the ensemble."""

    def propose(
        self, change: Change, *, session_id: int, server_id: int, answer: Answer
    ) -> None: ...

    def detached(self, session_id: int) -> None:
        """The connection of a session is gone."""
        ...

    def count(self, what: object) -> None:
        """A request that came, or an event that goes."""
        ...


class _Requests:
    """What a connection has asked and was not answered yet."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[Operation, Callable[[Result], None]]] = deque()
        self.writes_under_way = 0


class Server:
    def __init__(self, server_id: int, leader: Leader) -> None:
        self.id = server_id
        self.tree = Tree()
        self.zxid = 0  # of the last transaction that was applied
        self.applied = 0  # how many
        self.is_up = True
        self.lag_us = 0  # how much later than others it hears of commits
        self.due_us = 0  # when it will have heard of the last one
        self._leader = leader
        self._connections: dict[Connection, _Requests] = {}
        self._watching: dict[tuple[str, bool], dict[Connection, None]] = {}
        self._ended: set[int] = set()  # sessions

    @property
    def watch_count(self) -> int:
        return sum(len(each) for each in self._watching.values())

    @property
    def watched(self) -> tuple[tuple[str, bool], ...]:
        """The places that somebody watches: a path, and whether its children are meant."""
        return tuple(self._watching)

    # --- connections --------------------------------------------------------------------

    def attach(self, connection: Connection, session_id: int) -> None:
        connection.session_id = session_id
        self._connections[connection] = _Requests()

    def has(self, connection: Connection) -> bool:
        return connection in self._connections

    def forget(self, connection: Connection) -> None:
        """It has ended, with all its watches."""
        if self._connections.pop(connection, None) is None:
            return
        for place, watchers in list(self._watching.items()):
            watchers.pop(connection, None)
            if not watchers:
                del self._watching[place]
        self._leader.detached(connection.session_id)

    def hang_up(self, connection: Connection) -> None:
        connection.close_at_server()
        self.forget(connection)

    def hang_up_all(self) -> None:
        for connection in list(self._connections):
            self.hang_up(connection)

    def hang_up_session(self, session_id: int) -> None:
        for connection in list(self._connections):
            if connection.session_id == session_id:
                self.hang_up(connection)

    # --- requests -----------------------------------------------------------------------

    def request(
        self, connection: Connection, operation: Operation, answer: Callable[[Result], None]
    ) -> None:
        """`answer` is called where the result leaves."""
        if connection not in self._connections:
            return
        if request_bytes(operation) > REQUEST_BYTES_MAX:
            self.hang_up(connection)
            return
        self._leader.count(operation)
        self._connections[connection].waiting.append((operation, answer))
        self._go_on(connection)

    def _go_on(self, connection: Connection) -> None:
        requests = self._connections.get(connection)
        while requests is not None and requests.waiting:
            operation, answer = requests.waiting[0]
            if isinstance(operation, GetData | Exists | GetChildren | Unwatch):
                if requests.writes_under_way:
                    return
                requests.waiting.popleft()
                if isinstance(operation, Unwatch):
                    answer(self._unwatch(connection, operation))
                else:
                    answer(self._read(connection, operation))
            else:
                requests.waiting.popleft()
                requests.writes_under_way += 1
                self._write(connection, operation, answer)

    def _write(
        self,
        connection: Connection,
        write: Create | SetData | Delete | Multi,
        answer: Callable[[Result], None],
    ) -> None:
        def applied(result: Result | None) -> None:
            requests = self._connections.get(connection)
            if requests is not None:
                assert result is not None, write
                requests.writes_under_way -= 1
                answer(result)
                self._go_on(connection)

        self._leader.propose(
            write, session_id=connection.session_id, server_id=self.id, answer=applied
        )

    def _read(self, connection: Connection, read: GetData | Exists | GetChildren) -> Result:
        result = self.tree.read(read)
        if read.watch and (isinstance(read, Exists) or not isinstance(result, Failed)):
            place = (read.path, isinstance(read, GetChildren))
            self._watching.setdefault(place, {})[connection] = None
        return result

    def _unwatch(self, connection: Connection, ended: Unwatch) -> Result:
        place = (ended.path, ended.is_of_children)
        watchers = self._watching.get(place, {})
        if connection not in watchers:
            return Failed(error=Error.NO_WATCH)
        del watchers[connection]
        if not watchers:
            del self._watching[place]
        return Unwatched()

    # --- the log ------------------------------------------------------------------------

    def apply(self, transaction: Transaction) -> None:
        self.applied += 1
        self.zxid = transaction.zxid
        result: Result | None = None
        match transaction.change:
            case OpenSession():
                pass
            case CloseSession():
                self._ended.add(transaction.session_id)
                for event in self.tree.close(transaction.session_id, zxid=transaction.zxid):
                    self._tell(event)
            case _ if transaction.session_id in self._ended:
                # Asked before it heard of its end: an ephemeral node would be there for ever.
                result = Failed(error=Error.SESSION_EXPIRED)
            case change:
                result, events = self.tree.apply(
                    change, zxid=transaction.zxid, session_id=transaction.session_id
                )
                for event in events:
                    self._tell(event)
        if transaction.server_id == self.id:
            transaction.answer(result)
        if isinstance(transaction.change, CloseSession):
            self.hang_up_session(transaction.session_id)

    def _tell(self, event: WatchFired) -> None:
        """Once to each connection, however many of its watches it ends."""
        places = []
        if event.kind is not WatchKind.CHILDREN_CHANGED:
            places.append((event.path, False))
        if event.kind in (WatchKind.CHILDREN_CHANGED, WatchKind.DELETED):
            places.append((event.path, True))
        told: dict[Connection, None] = {}
        for place in places:
            told |= self._watching.pop(place, {})
        for connection in told:
            self._leader.count(event)
            connection.to_client.send(partial(connection.heard, event, self.zxid))
