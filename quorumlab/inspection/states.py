"""The cluster as it was: the image at an offset or a time, from a snapshot and the log behind it.

Records that this version does not know are skipped and told. So are records that cannot follow from
what came before, since users look at damaged logs with such a tool.
"""

from dataclasses import dataclass, field
from pathlib import Path

from controller.metadata.apply import apply, apply_with_delta
from controller.metadata.changes import CommittedBatch, decode_changes, offsets_of
from controller.metadata.image import MetadataImage
from controller.metadata.snapshot import SnapshotLoad
from quorum.core.types import OffsetAndEpoch
from quorumlab.inspection.batches import Batch, Complaints, Damage
from quorumlab.inspection.entries import Entry, Unknown, entries
from quorumlab.inspection.selection import parse_place
from quorumlab.inspection.stream import snapshot_batches, target_batches
from quorumlab.inspection.target import Target, snapshot_id
from wire.control_records import ControlRecord, SnapshotHeader
from wire.foreign_records import ForeignRecord

__all__ = ["Moment", "Replay", "load_snapshot", "moment_of", "replay"]


_END = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The last offset, or the last time, that counts. Without both it is the end."""

    offset: int | None = None
    time_ms: int | None = None

    def includes(self, offset: int, timestamp_ms: int) -> bool:
        if self.offset is not None and offset > self.offset:
            return False
        return self.time_ms is None or timestamp_ms <= self.time_ms


def moment_of(text: str | None) -> Moment:
    """Raises ValueError for what is no place."""
    if text in (None, _END):
        return Moment()
    offset, time_ms = parse_place(str(text))
    return Moment(offset=offset, time_ms=time_ms)


@dataclass(slots=True)
class Replay:
    """An image, and what was wrong on the way to it."""

    image: MetadataImage = field(default_factory=MetadataImage)
    timestamp_ms: int = -1  # of the last record in it, as far as it is known
    problems: Complaints = field(default_factory=Complaints)

    def take(self, batch: Batch) -> None:
        """Apply a batch of the log."""
        self.timestamp_ms = batch.header.max_timestamp_ms
        if batch.header.is_control:
            at = OffsetAndEpoch(batch.header.next_offset, batch.header.leader_epoch)
            self.image = self.image._replace(at=at)
            return
        try:
            for committed in decode_changes(batch.content):
                self.image, _ = apply_with_delta(self.image, committed)
                self._tell_foreign(committed)
        except ValueError:  # whatever a reader of batches or records refuses
            for entry in entries(batch):
                self.take_one(entry)

    def _tell_foreign(self, batch: CommittedBatch) -> None:
        for offset, change in offsets_of(batch.changes, end_offset=batch.next_offset):
            if isinstance(change, ForeignRecord):
                how = "skipped" if change.known is None else "known in part"
                self.problems.add(f"offset {offset} is {how}: {change.reason}")

    def take_one(self, entry: Entry) -> None:
        """Apply one record alone."""
        self.timestamp_ms = entry.timestamp_ms
        at = OffsetAndEpoch(entry.offset + 1, entry.epoch)
        content = entry.content
        if isinstance(content, Unknown):
            self.problems.add(f"offset {entry.offset} is skipped: {content.reason}")
            return
        try:
            changes = () if isinstance(content, ControlRecord) else (content,)
            self.image = apply(self.image, changes, at)
        except ValueError as error:
            self.problems.add(f"offset {entry.offset} is skipped: {error}")


def replay(target: Target, moment: Moment) -> Replay:
    """The state after everything that `moment` includes."""
    state = _start(target, moment)
    if not target.segments:
        return state
    is_first = True
    for found in target_batches(target, starts_at=state.image.at.offset):
        if isinstance(found, Damage):
            state.problems.add(found)
            continue
        header = found.header
        if is_first and header.base_offset > state.image.at.offset:
            what = f"the log goes on at offset {header.base_offset}"
            state.problems.add(f"{what}, and no snapshot that was asked for has what came before")
        is_first = False
        if not moment.includes(header.base_offset, header.base_timestamp_ms):
            break
        if moment.includes(header.last_offset, header.max_timestamp_ms):
            state.take(found)
            continue
        for entry in entries(found):
            if moment.includes(entry.offset, entry.timestamp_ms):
                state.take_one(entry)
    return state


def _start(target: Target, moment: Moment) -> Replay:
    """The newest snapshot that is not too new, or nothing if the log begins at 0."""
    usable = [path for path in target.snapshots if _is_within(path, moment)]
    if usable or target.segments:
        return load_snapshot(usable[-1]) if usable else Replay()
    newest = target.snapshots[-1]
    state = load_snapshot(newest)
    if snapshot_id(newest)[0]:
        state.problems.add(f"{newest} is of a later time, and nothing here goes back further")
    return state


def _is_within(path: Path, moment: Moment) -> bool:
    end_offset, _ = snapshot_id(path)
    if end_offset == 0:
        return False  # bootstrap's: it holds voters, no metadata
    return moment.includes(end_offset - 1, _last_contained_ms(path))


def _last_contained_ms(path: Path) -> int:
    """Reads from the header when the last record in a snapshot was written."""
    for found in snapshot_batches(path):
        for entry in entries(found) if isinstance(found, Batch) else ():
            if isinstance(entry.content, SnapshotHeader):
                return entry.content.last_contained_log_timestamp
        break
    return 0


def load_snapshot(path: Path) -> Replay:
    state = Replay(timestamp_ms=_last_contained_ms(path))
    load = SnapshotLoad()
    for found in snapshot_batches(path):
        if isinstance(found, Damage):
            state.problems.add(str(found))
        elif not found.header.is_control:
            try:
                load.take(found.content)
            except ValueError as error:
                state.problems.add(f"{path} at byte {found.position}: {error}")
    state.image = load.finish(OffsetAndEpoch(*snapshot_id(path)))
    return state
