"""The seam between a replicated metadata log and what runs on it.

A *replication engine* (`quorum.raft`, or another) orders records. An *application*
(controller, broker) decides and obeys. `quorum.node.member` joins one engine and its applications
into one `Core`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from quorum.core.effects import Core, Effect, EpochStart, Event
from quorum.core.types import Endpoint, LeaderAndEpoch, OffsetAndEpoch

__all__ = ["Application", "Engine", "MetadataLog", "State"]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What an application makes of all committed records before `end_offset`: a snapshot's data.

    `end_offset` is where a batch ends that it was given; only control batches may have come since.
    `batches` gives it as record batches, each of a bearable size, offsets and epochs in them
    without meaning. It is drawn later, in another thread: it may rest on immutable values only.
    """

    end_offset: int
    batches: Iterator[bytes] = field(repr=False)


class MetadataLog(Protocol):
    """What an application sees of the engine."""

    @property
    def node_id(self) -> int: ...

    @property
    def leader(self) -> LeaderAndEpoch: ...

    @property
    def high_watermark(self) -> int | None:
        """None while a new leader's high watermark is unknown."""
        ...

    @property
    def end_offset(self) -> int:
        """Where the next record goes: on the leader, the offset of the next `append`."""
        ...

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        """Where a voter's controller listener is."""
        ...

    def append(self, batch: bytes, now_ms: int) -> int:
        """Append one record batch as leader, whole or not at all; returns its last offset.

        Base offset and leader epoch of the batch are assigned here. Only the leader may call it:
        an application knows that it leads from `lead` until `resign`.
        """
        ...

    def resign(self, now_ms: int) -> None:
        """Give up leadership."""
        ...

    @property
    def voter_ids(self) -> tuple[int, ...]:
        """The ids of the voters as this node knows them, ascending."""
        ...

    @property
    def kraft_version(self) -> int:
        """The finalised kraft.version: shown with the other features, unless it is 0."""
        ...

    def raise_kraft_version(self, version: int, now_ms: int) -> str | None:
        """Finalise a kraft.version as leader. None: it is appended, or was so; else why not.

        That the metadata.version allows it is for the caller to see to (21 or later, for 1).
        """
        ...


class Engine(Core, MetadataLog, Protocol):
    """What orders the records: `quorum.raft.raft_node`, or another for comparison."""

    @property
    def log_name(self) -> str:
        """The log that `Read` effects find the records in."""
        ...

    @property
    def start_offset(self) -> int:
        """Where delivery begins: the first offset of the log."""
        ...

    @property
    def committed_through(self) -> int:
        """Everything before it is committed and may be delivered. Never goes back."""
        ...

    def newest(self, *, start_offset: int, end_offset: int, bytes_max: int) -> bytes | None:
        """What `Read` would give, if it is in memory; None if the disk must be asked."""
        ...

    @property
    def leading_since(self) -> EpochStart | None:
        """The epoch that this node leads and the offset at which it began; None if it does not."""
        ...

    @property
    def latest_snapshot(self) -> OffsetAndEpoch | None:
        """Whence to begin instead of the start of the log: where the newest snapshot ends.

        Never after `committed_through`, nor before `start_offset` if that is not 0.
        """
        ...

    def save_snapshot(self, state: State, *, last_timestamp_ms: int, now_ms: int) -> None:
        """Write `state`, everything in which is committed, as a snapshot, in the background.

        `last_timestamp_ms` is that of the last record in it.
        """
        ...

    @property
    def is_saving_snapshot(self) -> bool: ...

    def serves(self, body: object) -> bool:
        """Is this request for the engine?"""
        ...

    def shut_down(self, now_ms: int) -> None:
        """Leave the quorum in good order, then emit `Stop`."""
        ...


class Application(Protocol):
    """A state machine on the metadata log, with requests and timers of its own."""

    def receive(self, event: Event, now_ms: int) -> None: ...

    def tick(self, now_ms: int) -> None:
        """The deadline has come."""
        ...

    def deadline_ms(self) -> int | None: ...

    def take_effects(self) -> list[Effect]:
        """Return what is to be done since the last call: all that was decided is appended."""
        ...

    def serves(self, body: object) -> bool:
        """Is this request for this application?"""
        ...

    def lead(self, epoch: int, now_ms: int) -> None:
        """This node leads `epoch`, and everything committed before it has been delivered."""
        ...

    def resign(self, now_ms: int) -> None:
        """This node no longer leads: what it appended and was not delivered may be gone."""
        ...

    def committed(self, batches: bytes, next_offset: int, now_ms: int) -> None:
        """Whole committed batches, each exactly once and in order, up to `next_offset`.

        Control batches are among them. `next_offset` is exclusive.
        """
        ...

    def load(self, batches: bytes, *, is_first: bool) -> None:
        """A piece of a snapshot: whole batches, in order. The first replaces all that was known.

        Control batches are among them: the first of the file, and the last. Nothing of it may be
        shown before `loaded`.
        """
        ...

    def loaded(self, end: OffsetAndEpoch, now_ms: int) -> None:
        """The snapshot is complete: everything before `end.offset` is in it."""
        ...

    def state(self) -> State | None:
        """What to put into a snapshot; None if now is not the time (an open transaction)."""
        ...
