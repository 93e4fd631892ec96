"""A disk for replicas on virtual time: what is written, and what a power failure leaves of it."""

from dataclasses import dataclass, field
from typing import NamedTuple

from quorum.core.effects import (
    Append,
    Durability,
    EpochStart,
    LogState,
    Read,
    ReadSnapshot,
    ReceiveSnapshot,
    ResetLog,
    SaveElection,
    SaveSnapshot,
    SnapshotFile,
    SnapshotRead,
    SnapshotSaved,
    Token,
    Trim,
    Trimmed,
    Truncate,
)
from quorum.core.storage import METADATA_LOG
from quorum.core.types import ElectionState, OffsetAndEpoch
from quorum.log.snapshots import SnapshotLoad
from wire.batch import BatchHeader, headers, read_header
from wire.varint import Malformed

__all__ = ["Disk", "Written", "first_header", "snapshot_file"]


_AT_ZERO = OffsetAndEpoch(0, -1)


class Written(NamedTuple):
    batches: tuple[bytes, ...] = ()
    election: ElectionState = ElectionState()
    start: OffsetAndEpoch = _AT_ZERO  # an epoch only where a snapshot took its place


@dataclass
class Disk:
    """Batches and the election as written, and as they would be found after a power failure.

    A snapshot is durable when it has its name; one that is being received has none.
    """

    batches: list[bytes] = field(default_factory=list)
    election: ElectionState = field(default_factory=ElectionState)
    start: OffsetAndEpoch = _AT_ZERO
    durable: Written = field(default_factory=Written)
    unsynced: list[tuple[Token, Written]] = field(default_factory=list)
    is_held: bool = False
    snapshots: tuple[SnapshotFile, ...] = ()
    contents: dict[OffsetAndEpoch, bytes] = field(default_factory=dict)
    parts: dict[OffsetAndEpoch, bytes] = field(default_factory=dict)
    number: int = 0  # how many disks the replica had before

    # --- the log --------------------------------------------------------------------------------

    def write(self, effect: Append | Truncate | SaveElection | ResetLog) -> bool:
        """Does the effect wait for a sync?"""
        match effect:
            case Append(records=records):
                self.batches += [
                    records[at : at + header.size_bytes] for at, header in headers(records)
                ]
            case Truncate(end_offset=end):
                self.batches = [b for b in self.batches if first_header(b).base_offset < end]
            case ResetLog(start=start):
                self.batches, self.start = [], start
            case SaveElection(election=election):
                self.election = election
        if isinstance(effect, Append | Truncate) and effect.durability is Durability.WRITTEN:
            return False
        written = Written(tuple(self.batches), self.election, self.start)
        self.unsynced.append((effect.token, written))
        return True

    def sync(self) -> Token | None:
        if self.is_held or not self.unsynced:
            return None
        token, self.durable = self.unsynced[-1]
        self.unsynced.clear()
        return token

    def read(self, effect: Read) -> bytes:
        assert effect.start_offset >= self.start.offset, (effect, self.start)
        found: list[bytes] = []
        size = 0
        for batch in self.batches:
            header = first_header(batch)
            if header.next_offset <= effect.start_offset or header.next_offset > effect.end_offset:
                continue
            if found and size + len(batch) > effect.bytes_max:
                break
            found.append(batch)
            size += len(batch)
        return b"".join(found)

    def trim(self, effect: Trim) -> Trimmed:
        """Not durable by itself: a power failure may bring back what was there."""
        at = effect.start_offset
        self.batches = [b for b in self.batches if first_header(b).next_offset > at]
        if at > self.start.offset:
            self.start = OffsetAndEpoch(at, -1)
        self.snapshots = tuple(file for file in self.snapshots if file.id.offset >= at)
        return Trimmed(
            token=effect.token,
            log=METADATA_LOG,
            start_offset=at,
            size_bytes=sum(map(len, self.batches)),
        )

    # --- snapshots ------------------------------------------------------------------------------

    def save(self, effect: SaveSnapshot) -> SnapshotSaved:
        content = b"".join(effect.content)
        _check(effect.id, content)
        return self._publish(effect.token, effect.id, content)

    def receive(self, effect: ReceiveSnapshot) -> SnapshotSaved | SnapshotRead | None:
        part = b"" if effect.position == 0 else self.parts.get(effect.id, b"")
        assert len(part) == effect.position, (effect.id, effect.position, len(part))
        self.parts[effect.id] = part = part + effect.records
        if not effect.is_last:
            return None
        del self.parts[effect.id]
        try:
            _check(effect.id, part)
        except Malformed:
            return SnapshotRead(token=effect.token, log=METADATA_LOG, size_bytes=-1, records=b"")
        return self._publish(effect.token, effect.id, part)

    def _publish(self, token: Token, snapshot_id: OffsetAndEpoch, content: bytes) -> SnapshotSaved:
        file = snapshot_file(snapshot_id, content)
        self.contents[file.id] = content
        others = (other for other in self.snapshots if other.id != file.id)
        self.snapshots = tuple(sorted((*others, file), key=lambda each: each.id.offset))
        return SnapshotSaved(token=token, log=METADATA_LOG, file=file)

    def read_snapshot(self, effect: ReadSnapshot) -> SnapshotRead:
        is_there = any(file.id == effect.id for file in self.snapshots)
        content = self.contents[effect.id] if is_there else b""
        return SnapshotRead(
            token=effect.token,
            log=METADATA_LOG,
            size_bytes=len(content) if is_there else -1,
            records=content[effect.position : effect.position + effect.bytes_max],
        )

    # --- life -----------------------------------------------------------------------------------

    def lose_power(self) -> None:
        self.batches, self.election, self.start = list(self.durable[0]), *self.durable[1:]
        self.unsynced.clear()
        self.parts.clear()

    def recovered(self) -> LogState:
        epochs: list[EpochStart] = []
        if self.start.epoch >= 0:
            epochs.append(EpochStart(self.start.epoch, self.start.offset))
        found = [first_header(batch) for batch in self.batches]
        for header in found:
            if not epochs or epochs[-1].epoch != header.leader_epoch:
                epochs.append(EpochStart(header.leader_epoch, header.base_offset))
        return LogState(
            log=METADATA_LOG,
            start_offset=self.start.offset,
            end_offset=found[-1].next_offset if found else self.start.offset,
            last_epoch=found[-1].leader_epoch if found else -1,
            epochs=tuple(epochs),
            size_bytes=sum(map(len, self.batches)),
            snapshots=self.snapshots,
            control_batches=tuple(b for b in self.batches if first_header(b).is_control),
        )


def first_header(batch: bytes) -> BatchHeader:
    return read_header(batch)


def snapshot_file(snapshot_id: OffsetAndEpoch, content: bytes) -> SnapshotFile:
    head = content[: read_header(content).size_bytes]
    return SnapshotFile(id=snapshot_id, size_bytes=len(content), head=head)


def _check(snapshot_id: OffsetAndEpoch, content: bytes) -> None:
    """Raises Malformed unless that is a whole snapshot."""
    SnapshotLoad(snapshot_id).take(content, len(content))
