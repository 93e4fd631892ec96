"""The contract between a core and its driver: what comes in, what must be done.

A core is deterministic. It is fed events and the time, changes its own state, and queues *effects*
that its driver takes and carries out in order. It never blocks, never does I/O, and never raises
for what a peer sent.

Time: `now_ms` is monotonic and anchored to the wall clock when the process starts, so that it
serves for timers and for record timestamps alike.

Storage: effects that name a log are carried out in the order in which they were emitted for that
log; logs are independent of each other. A driver writes at once and syncs in the background: one
sync serves all that waits (group commit). `Stored(log, token)` says that every effect on `log` up
to and including `token` has reached its durability. Effects that ask for WRITTEN only get no
`Stored`. The first failure of a log is final: `StorageFailed`, and nothing after it is carried out.
A core hears of it before anything else that waits, so it writes no more to that log.

Open: whoever has more to ask of the world (a service, another engine) brings effects and events of
its own, and gives the driver a performer for them.

Directories: a log of a partition lies in one of the node's data directories, named by its id. A
failure takes the directory with it: every log that is open there gets a `StorageFailed`, and so
does every later effect on one that would have been answered.

Tokens: a core tags its own requests and storage effects with `Token(owner, number)`, where `owner`
names the component ("raft", "controller", "broker"), so that answers find their way in a process
with several. Numbers of an owner only grow. The token of an incoming `Request` is the driver's.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Protocol
from uuid import UUID

from quorum.core.log_settings import LogSettings
from quorum.core.log_state import EpochStart, FoundLog, LogState, SnapshotFile
from quorum.core.producers import AbortedTransaction, ProducerEntry
from quorum.core.types import ElectionState, Endpoint, OffsetAndEpoch, Token
from wire.capabilities import NOTHING_LACKING, Lacking
from wire.message import Message
from wire.primitives import ZERO_UUID
from wire.security.principals import ANONYMOUS, Forwarder, Principal

__all__ = [
    "Answer",
    "Append",
    "Configure",
    "Core",
    "DeleteLog",
    "Durability",
    "Effect",
    "EpochStart",
    "Event",
    "Failure",
    "FindTimestamp",
    "FoundLog",
    "HangUp",
    "LogState",
    "OpenLog",
    "Opened",
    "Read",
    "ReadDone",
    "ReadSnapshot",
    "ReceiveSnapshot",
    "Reply",
    "Request",
    "RequestFailed",
    "ResetLog",
    "Response",
    "Retain",
    "SaveElection",
    "SaveHighWatermarks",
    "SaveProducers",
    "SaveSnapshot",
    "Send",
    "SnapshotFile",
    "SnapshotRead",
    "SnapshotSaved",
    "Stop",
    "StorageFailed",
    "Stored",
    "TimestampFound",
    "Token",
    "Told",
    "Trace",
    "Trim",
    "Trimmed",
    "Truncate",
    "body_of",
    "earliest",
]


class Durability(Enum):
    WRITTEN = "written"  # handed to the operating system: survives the process
    SYNCED = "synced"  # on the medium: survives the machine


# --- events: driver to core -----------------------------------------------------------------


class Event(Message):
    """What a core hears: a `Request`, an `Answer`, or news that nobody has asked for."""


class Answer(Event):
    """What came of something that the core has asked for; `token` is the one that it gave."""

    token: Token


class Request(Event):
    """A peer asks. `body` is a canonical message of `wire.messages`.

    `frame` holds the request as received, header and body without the length, for forwarding in
    an envelope. `forwarder` is the broker whose envelope it arrived in; `principal` and
    `client_host` are then the client's, not the broker's. `lacking` is what the version of the
    request says that the peer cannot do: a core knows no versions.
    """

    token: int
    body: object
    listener: str = ""
    client_id: str | None = None
    client_host: str = ""
    principal: Principal = ANONYMOUS
    lacking: Lacking = NOTHING_LACKING
    frame: bytes = b""
    forwarder: Forwarder | None = None

    @property
    def forwarded(self) -> bool:
        return self.forwarder is not None


class Response(Answer):
    """The answer to a `Send`, in canonical form."""

    body: object


def body_of(event: Event) -> object:
    """The body of the answer to a `Send`; None if there is no answer."""
    return event.body if isinstance(event, Response) else None


class Failure(Enum):
    """Why a `Send` has no answer. It may have been carried out by the peer all the same."""

    DISCONNECTED = "disconnected"
    TIMED_OUT = "timed out"
    UNSUPPORTED_VERSION = "no version in common"


class RequestFailed(Answer):
    failure: Failure


class Stored(Answer):
    """Every effect on `log` up to `token` is as durable as it asked to be."""

    log: str


class StorageFailed(Answer):
    """The log can no longer be used, nor can its directory; `reason` is for people."""

    log: str
    reason: str
    directory_id: UUID = ZERO_UUID


class ReadDone(Answer):
    """Whole batches, the first of which holds `Read.start_offset`; empty if there are none."""

    log: str
    records: bytes
    aborted: tuple[AbortedTransaction, ...] = ()  # if `Read.wants_aborted`


class Opened(Answer):
    state: LogState


class TimestampFound(Answer):
    """The first record at or after the timestamp: `offset` is -1 if there is none."""

    log: str
    offset: int
    timestamp_ms: int
    leader_epoch: int


class SnapshotSaved(Answer):
    """The snapshot of `SaveSnapshot`, or of the last `ReceiveSnapshot`, is whole and durable."""

    log: str
    file: SnapshotFile


class SnapshotRead(Answer):
    """A piece of a snapshot: bytes from the position that was asked for, cut anywhere.

    `size_bytes` is that of the whole file; -1 if there is no such snapshot (any longer).
    """

    log: str
    size_bytes: int
    records: bytes


class Trimmed(Answer):
    """The log has been trimmed: where it starts now, and the size of what is left of it.

    `oldest_ms` is the time of the youngest record in its oldest segment, which may grow with an
    append; None where that is not known.
    """

    log: str
    start_offset: int
    size_bytes: int
    oldest_ms: int | None = None


# --- effects: core to driver ----------------------------------------------------------------


class Effect(Message):
    """What a core wants done."""


class Told(Effect):
    """It tells somebody else something, and so leaves last: see `quorum.core.turn`."""

    def withheld(self) -> "Event | HangUp":
        """What the core hears if it did not leave, or what is done to who waits for it."""
        raise NotImplementedError


class Send(Told):
    """Ask a peer. Requests of one `channel` to one endpoint share a connection and stay in order.

    The driver answers with `Response` or `RequestFailed`, exactly once.
    """

    token: Token
    to: Endpoint
    channel: str
    body: object
    timeout_ms: int

    def withheld(self) -> Event:
        return RequestFailed(token=self.token, failure=Failure.DISCONNECTED)


class Reply(Told):
    """Answer the request `token`. A body of None sends nothing (produce with acks=0)."""

    token: int
    body: object | None

    def withheld(self) -> "HangUp":
        return HangUp(token=self.token)


class HangUp(Effect):
    """Close the connection of the request `token`: its `Reply` is withheld, or there is none."""

    token: int


class Append(Effect):
    """Write whole batches at the end of `log`; offsets and epochs in them are final."""

    log: str
    token: Token
    records: bytes
    durability: Durability = Durability.WRITTEN
    aborted: tuple[AbortedTransaction, ...] = ()  # those that markers in `records` have ended


class Truncate(Effect):
    """Remove every record at or after `end_offset`."""

    log: str
    token: Token
    end_offset: int
    durability: Durability = Durability.WRITTEN


class SaveElection(Effect):
    """Replace quorum-state, durably (write, sync, rename)."""

    log: str
    token: Token
    election: ElectionState
    kraft_version: int = 1  # 0: in the form that has no directory of a vote, but static voters


class Read(Effect):
    """Read whole batches from the one that holds `start_offset`, all below `end_offset`.

    Stops before `bytes_max` is exceeded, but returns at least one batch if there is one. With
    `wants_aborted` it also tells the aborted transactions that have records in what was read.
    """

    log: str
    token: Token
    start_offset: int
    end_offset: int
    bytes_max: int
    wants_aborted: bool = False


class FindTimestamp(Effect):
    """Find the first record below `end_offset` whose timestamp is at or after `timestamp_ms`."""

    log: str
    token: Token
    timestamp_ms: int
    end_offset: int


class SaveSnapshot(Effect):
    """Write a snapshot of `log`: `content` gives the whole file, piece by piece.

    In the background, and holding back nothing: `content` is drawn by another thread (it works on
    immutable values), written to a `.part` file, synced and renamed. Leads to `SnapshotSaved`.
    """

    log: str
    token: Token
    id: OffsetAndEpoch
    content: Iterator[bytes]


class ReceiveSnapshot(Effect):
    """Write a piece of a snapshot that another node sends, at `position` of its `.part` file.

    `position` is 0 or where the piece before ended. With `is_last` the file is synced, checked
    and renamed, which leads to `SnapshotSaved`; a file that is no whole snapshot is
    removed, and leads to `SnapshotRead` with a size of -1.
    """

    log: str
    token: Token
    id: OffsetAndEpoch
    position: int
    records: bytes
    is_last: bool


class ReadSnapshot(Effect):
    """Read up to `bytes_max` bytes of a snapshot from `position` on. Leads to `SnapshotRead`."""

    log: str
    token: Token
    id: OffsetAndEpoch
    position: int
    bytes_max: int


class ResetLog(Effect):
    """Remove every record and let the log begin anew, where `start` ends; durably (`Stored`).

    What a snapshot of another node replaces: the next record has the offset `start.offset`, and
    the leader epoch cache holds `start.epoch` alone.
    """

    log: str
    token: Token
    start: OffsetAndEpoch


class Trim(Effect):
    """Let the log start at `start_offset`: what lies before may go, whole segments at a time.

    Snapshots that end before it go too. Leads to `Trimmed`; a crash may undo it.
    """

    log: str
    token: Token
    start_offset: int


class Retain(Effect):
    """Let go of the log's oldest segments, as far as they end at or below `end_offset`.

    Of those whose youngest record is older than `since_ms`, and of those without which the log
    still has `bytes_max`; a limit of None asks for nothing. Leads to `Trimmed`.
    """

    log: str
    token: Token
    end_offset: int
    since_ms: int | None
    bytes_max: int | None


class OpenLog(Effect):
    """Recover `log` (named `<topic>-<partition>`), or create it. Runs in the background.

    It is created in `directory_id`; ZERO_UUID leaves the place to the storage, as settings of None
    leave it those.
    """

    log: str
    token: Token
    topic_id: UUID
    directory_id: UUID = ZERO_UUID
    settings: LogSettings | None = None


class Configure(Effect):
    """The topic's settings have changed: they hold from the next record on."""

    log: str
    token: Token
    settings: LogSettings


class DeleteLog(Effect):
    """Remove the log. One that `is_stray` is only set aside: a person may want to look at it."""

    log: str
    token: Token
    is_stray: bool = False


class SaveProducers(Effect):
    """Keep what is known of a log's producers for the next start, after an orderly stop.

    `producers` are those of the records below `end_offset`, which is the log's end.
    """

    log: str
    token: Token
    end_offset: int
    producers: tuple[ProducerEntry, ...]


class SaveHighWatermarks(Effect):
    """Save high watermarks of partitions: entries are (topic, partition, high watermark).

    A log that is deleted loses its entry with it: another topic may get its name."""

    entries: tuple[tuple[str, int, int], ...]


class Stop(Effect):
    """The process must end: `reason` is printed, `exit_code` is 0 for an orderly stop."""

    reason: str
    exit_code: int


class Trace(Effect):
    """One thing that happened, for logs and for the simulator: greppable `key=value`."""

    event: str  # for example "role" or "truncated"
    fields: tuple[tuple[str, object], ...] = ()


class Core(Protocol):
    """A deterministic state machine that a driver feeds and obeys, turn by turn."""

    def receive(self, event: Event, now_ms: int) -> None:
        """Take one event in. What follows from several of them may wait for `settle`."""
        ...

    def ends_batch(self, event: Event) -> bool:
        """Must what came in before this event be settled before it is received?"""
        ...

    def settle(self, now_ms: int) -> None:
        """End a turn: do what follows from all that came in, and what is due."""
        ...

    def deadline_ms(self) -> int | None:
        """Settle no later than this, events or not; None: nothing is due."""
        ...

    def take_effects(self) -> list[Effect]:
        """The effects queued since the last call, in order; ownership passes to the caller."""
        ...


def earliest(*deadlines_ms: int | None) -> int | None:
    """What is due first; None if nothing is."""
    first_ms = None
    for at_ms in deadlines_ms:
        if at_ms is not None and (first_ms is None or at_ms < first_ms):
            first_ms = at_ms
    return first_ms
