"""Is a log what a quorum and its controllers would have written?

    L-CRC, L-OFFSET, L-EPOCH   checksums hold, offsets have no gaps, epochs do not go back
    L-START                    a log that does not begin at 0 has a snapshot that it goes on from
    L-CACHE                    leader-epoch-checkpoint says what the batches say
    S-WHOLE, S-IMAGE           snapshots are whole, and equal to the log replayed up to them
    M-REPLAY                   every record can follow from what came before
    M-…                        what must hold after every batch: `quorumlab.inspection.rules`

Source: the invariants of KIP-595, KIP-630 and KIP-966 that a log alone can show.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from controller.metadata.apply import apply_with_delta
from controller.metadata.changes import decode_changes
from controller.metadata.image import MetadataImage
from quorum.core.storage import StorageError
from quorum.log.files.checkpoints import EPOCHS, parse_epochs
from quorumlab.inspection.batches import Batch, Damage
from quorumlab.inspection.rules import broken_rules
from quorumlab.inspection.states import load_snapshot
from quorumlab.inspection.stream import target_batches
from quorumlab.inspection.target import Target, is_torn, snapshot_id
from quorumlab.inspection.tree import first_difference
from wire.record_schema import UnknownRecord

__all__ = ["Verified", "verify"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """`offset` is the record where it shows, -1 if it is none's."""

    rule: str
    detail: str
    offset: int = -1

    def __str__(self) -> str:
        place = "" if self.offset < 0 else f" at offset {self.offset}"
        return f"{self.rule}{place}: {self.detail}"


@dataclass(slots=True)
class Verified:
    batches: int = 0
    records: int = 0
    snapshots_compared: int = 0
    unknown_from: int = -1  # a record that this version does not know: the state ends there
    torn_tail: str = ""  # what is no violation: a write that a crash, or our looking, cut off


def verify(target: Target, seen: Verified) -> Iterator[Violation]:
    """Every violation, in the order in which a reader of the log meets them."""
    replay = _Replay(target, seen)
    for found in target_batches(target) if target.segments else ():
        if not isinstance(found, Damage):
            yield from replay.take(found)
        elif found.path == target.segments[-1] and is_torn(found):
            seen.torn_tail = str(found)
        else:
            yield Violation(rule=found.rule, detail=str(found), offset=found.offset)
    yield from replay.compared()
    for path in target.snapshots:
        for problem in load_snapshot(path).problems:
            yield Violation(rule="S-WHOLE", detail=problem)
    yield from _cache(target, replay.epochs)


class _Replay:
    """The state behind what was read, for as long as it can be told."""

    def __init__(self, target: Target, seen: Verified) -> None:
        self._target = target
        self._seen = seen
        self._waiting = {snapshot_id(p): p for p in target.snapshots if snapshot_id(p)[0]}
        self._ends = {snapshot_id(path)[0]: path for path in target.snapshots}
        self._image: MetadataImage | None = None
        self._next_offset = -1
        self.epochs: list[tuple[int, int]] = []  # with the offset where each begins

    def take(self, batch: Batch) -> Iterator[Violation]:
        header = batch.header
        if not self._seen.batches:
            yield from self._start(header.base_offset)
        elif header.base_offset != self._next_offset:
            self._image = None  # what was lost may have changed anything
        self._next_offset = header.next_offset
        if self._image is None and header.base_offset in self._ends:
            path = self._ends[header.base_offset]
            self._image = load_snapshot(path).image
            self._waiting.pop(snapshot_id(path), None)  # it says what it says
        yield from self.compared()
        if not header.is_control:
            yield from self._apply(batch)
        if not self.epochs or self.epochs[-1][0] < header.leader_epoch:
            self.epochs.append((header.leader_epoch, header.base_offset))
        self._seen.batches += 1
        self._seen.records += header.record_count

    def _start(self, offset: int) -> Iterator[Violation]:
        """Starts from nothing, or, in a log that was cut, from the first snapshot at or in it."""
        if offset == 0:
            self._image = MetadataImage()
        elif max(self._ends, default=0) < offset and self._target.log_directory is not None:
            detail = f"the log begins at {offset}, and no snapshot goes so far"
            yield Violation(rule="L-START", detail=detail, offset=offset)

    def _apply(self, batch: Batch) -> Iterator[Violation]:
        if self._image is None:
            return
        offset = batch.header.base_offset
        try:
            for committed in decode_changes(batch.content):
                before = self._image
                self._image, _ = apply_with_delta(before, committed)
                for rule, detail in broken_rules(before, self._image, committed):
                    yield Violation(rule=rule, detail=detail, offset=offset)
        except UnknownRecord:
            self._seen.unknown_from = offset
            self._image = None
        except ValueError as error:
            self._image = None
            detail = f"{error}; the states behind it, up to a snapshot, are not looked at"
            yield Violation(rule="M-REPLAY", detail=detail, offset=offset)

    def compared(self) -> Iterator[Violation]:
        """Compare the snapshots that end where the state is."""
        image = self._image
        if image is None:
            return
        for key in [key for key in self._waiting if key[0] <= image.at.offset]:
            path = self._waiting.pop(key)
            if key[0] == image.at.offset and image.transaction is None:
                self._seen.snapshots_compared += 1
                yield from _unlike(path, image)


def _unlike(path: Path, image: MetadataImage) -> Iterator[Violation]:
    found = first_difference(image, load_snapshot(path).image)
    if found is not None:
        end, _ = snapshot_id(path)
        detail = f"{path.name} is not what the log says: {found.path} is {found.after}, by the log"
        yield Violation(rule="S-IMAGE", detail=f"{detail} {found.before}", offset=end - 1)


def _cache(target: Target, epochs: list[tuple[int, int]]) -> Iterator[Violation]:
    if target.log_directory is None or not (target.log_directory / EPOCHS).exists():
        return
    path = target.log_directory / EPOCHS
    try:
        told = [tuple(entry) for entry in parse_epochs(path.read_bytes(), str(path))]
    except StorageError as error:
        yield Violation(rule="L-CACHE", detail=str(error))
        return
    # A running node saves it when it rolls, so that the newest epochs may be missing.
    missing = [entry for entry in told if entry not in epochs and epochs and entry >= epochs[0]]
    if missing:
        yield Violation(rule="L-CACHE", detail=f"{path} has {missing}, the batches {epochs}")
