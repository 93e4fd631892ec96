"""ZooKeeper as a core sees it: operations, results, watches and the states of a session, as values.

Decides what may be asked and what comes back; who carries it out is `wire.zk.kazoo_session` for
real and `jepsen_like.sim.ensemble.zk_ensemble` on virtual time. Both keep these promises:

Order: operations of a session are carried out, and answered, in the order in which they were
asked. They are pipelined: nobody waits for one before the next is sent.

Answers: every operation gets exactly one `Result`. `CONNECTION_LOSS` means that nobody knows
whether it was carried out, or will be: read before you ask again, and compare versions and owners.
While the session is not CONNECTED nothing is sent, and everything is answered so at once: what was
decided before a disconnection must not arrive after it.

Sessions: an operation names the session that it is meant for. If that has expired the answer is
SESSION_EXPIRED, and it never goes out on the session that came after. A session that is CLOSED is
followed by another, which begins by itself.

Expiry: only the ensemble decides it, and a client that is cut off does not hear of it. Who must
stop acting in time looks at `Session.may_have_expired_at_ms`.

Watches: a read with `watch` leaves one at its path, which fires once, for the session as a whole:
whoever reads with a watch that is there already gets no second event. The event comes before any
result that shows the change. Changes between the event and the next read are merged. Watches
outlive a disconnection, and fire after it if something has changed; they end with their session,
or by `Unwatch`.

Source: the ZooKeeper programmer's guide; seed 001, "use vanilla ZooKeeper client".
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Protocol

from wire.message import Message

ANY_VERSION = -1
REQUEST_BYTES_MAX = 0xFFFFF  # jute.maxbuffer's default; a larger request costs the connection


# --- operations -----------------------------------------------------------------------------


class Create(Message):
    """A sequential node's name gets ten digits from a counter of its parent.

    An ephemeral one goes when its session ends, and can have no children.
    """

    path: str
    data: bytes = b""
    is_ephemeral: bool = False
    is_sequential: bool = False


class SetData(Message):
    path: str
    data: bytes
    version: int = ANY_VERSION


class Delete(Message):
    path: str
    version: int = ANY_VERSION


class Check(Message):
    """A condition: the other writes of its `Multi` hold only with it. Not asked by itself."""

    path: str
    version: int


Write = Create | SetData | Delete | Check


class Multi(Message):
    """Done as a whole or not at all, as one change. Each part sees what those before it did."""

    writes: tuple[Write, ...]


class GetData(Message):
    """A watch fires when the data is set or the node deleted. None is left if there is no node."""

    path: str
    watch: bool = False


class Exists(Message):
    """A watch fires when the node is created, set or deleted; it is left in any case."""

    path: str
    watch: bool = False


class GetChildren(Message):
    """A watch fires when a child comes or goes, or the node goes. None is left without a node."""

    path: str
    watch: bool = False


class Unwatch(Message):
    """End the session's watch of a node, or of its children. NO_WATCH if there is none."""

    path: str
    is_of_children: bool


Operation = Create | SetData | Delete | Multi | GetData | Exists | GetChildren | Unwatch


# --- results --------------------------------------------------------------------------------


class Stat(Message):
    """A zxid numbers a change of the whole tree: they only grow, and no two are alike."""

    czxid: int  # of the creation
    mzxid: int  # of the last change of the data
    pzxid: int  # of the last change of the list of children
    version: int  # how often the data was set; begins anew with a node that is created again
    children_version: int  # how often a child came or went
    children_count: int
    ephemeral_owner: int  # id of the session with which the node goes; 0: it stays


class Created(Message):
    path: str  # with the digits of a sequential node
    stat: Stat | None = None  # None within a `Multi`


class Written(Message):
    stat: Stat


class Deleted(Message):
    pass


class Checked(Message):
    pass


class Committed(Message):
    """One result for each write of a `Multi`."""

    results: tuple[Created | Written | Deleted | Checked, ...]


class Data(Message):
    data: bytes
    stat: Stat

    def __repr__(self) -> str:
        return f"Data({len(self.data)} bytes, {self.stat!r})"


class Found(Message):
    stat: Stat


class Children(Message):
    names: tuple[str, ...]  # without the path of the parent, sorted
    stat: Stat


class Unwatched(Message):
    pass


class Error(Enum):
    NO_NODE = "no such node, or no parent to create it under"
    NODE_EXISTS = "the node exists"
    BAD_VERSION = "the node is at another version"
    NOT_EMPTY = "the node has children"
    NO_CHILDREN_FOR_EPHEMERALS = "an ephemeral node can have no children"
    NO_WATCH = "nothing is watched there: it has fired, or was never left"
    SESSION_EXPIRED = "the session is no more; nothing was done"
    CONNECTION_LOSS = "the connection went; nobody knows whether it was done"
    REFUSED = "the server does not want it, for another reason; nothing was done"


class Failed(Message):
    error: Error
    index: int = -1  # of the write because of which a `Multi` was not done

    @property
    def is_of_session(self) -> bool:
        """Is it the session that failed, and not what was asked?"""
        return self.error in (Error.SESSION_EXPIRED, Error.CONNECTION_LOSS)


Result = (
    Created | Written | Deleted | Checked | Committed | Data | Found | Children | Unwatched | Failed
)


# --- events ---------------------------------------------------------------------------------


class WatchKind(Enum):
    CREATED = "created"
    DELETED = "deleted"
    DATA_CHANGED = "data changed"
    CHILDREN_CHANGED = "children changed"


class WatchFired(Message):
    """Data watches fire as CREATED, DELETED or DATA_CHANGED; children's as the last or DELETED."""

    path: str
    kind: WatchKind


class SessionState(Enum):
    """The client's view, in seed 001's words."""

    NOT_CONNECTED = "not connected"  # the initial state of the client
    CONNECTING = "connecting"  # establishing a connection; nothing can be heard
    CONNECTED = "connected"  # has a connection and a session
    CLOSED = "closed"  # the session has closed or expired


NEXT_STATES: Mapping[SessionState, tuple[SessionState, ...]] = {
    SessionState.NOT_CONNECTED: (SessionState.CONNECTING,),
    SessionState.CONNECTING: (SessionState.CONNECTED, SessionState.CLOSED),
    SessionState.CONNECTED: (SessionState.CONNECTING, SessionState.CLOSED),
    SessionState.CLOSED: (),  # for ever: another session begins at NOT_CONNECTED
}


class SessionChanged(Message):
    """`session_id` is 0 as long as there is none; `timeout_ms` is what the ensemble granted."""

    state: SessionState
    session_id: int = 0
    timeout_ms: int = 0


SessionEvent = WatchFired | SessionChanged


class Session:
    """The session of a node, as the last `SessionChanged` told."""

    def __init__(self) -> None:
        self.state = SessionState.NOT_CONNECTED
        self.id = 0  # the last one that there was; 0 before the first
        self.timeout_ms = 0
        self._since_ms = 0

    @property
    def is_connected(self) -> bool:
        return self.state is SessionState.CONNECTED

    @property
    def may_have_expired_at_ms(self) -> int | None:
        """When the ensemble may have ended the session unheard; None while it can be heard."""
        if self.state is not SessionState.CONNECTING or self.id == 0:
            return None
        return self._since_ms + self.timeout_ms

    def become(self, changed: SessionChanged, now_ms: int) -> None:
        """Follow the table. After CLOSED comes the beginning of another session."""
        before = self.state
        if before is SessionState.CLOSED:
            before, self.id, self.timeout_ms = SessionState.NOT_CONNECTED, 0, 0
        assert changed.state in NEXT_STATES[before], (before, changed)
        self.state = changed.state
        self._since_ms = now_ms
        if changed.state is SessionState.CONNECTED:
            self.id, self.timeout_ms = changed.session_id, changed.timeout_ms


class ZkClient(Protocol):
    """A driver holds one client, whose sessions follow each other."""

    def ask(self, operation: Operation, *, session_id: int, done: Callable[[Result], None]) -> None:
        """Carry out `operation` in that session. `done` is called later, never from within."""
        ...
