"""The snapshots of one simulated log: whole files, and those that are still being written.

A file has its final name only when it is whole and synced, so a crash leaves a snapshot or nothing
of it. Whether a rename that nobody was told of lasts is up to chance, and so is whether the
removal of one does. Pieces that are received lie in a `.part` file, which no process finds again.
"""

from dataclasses import dataclass, field
from random import Random

from jepsen_like.sim.counts import Counts
from jepsen_like.sim.violation import Crash
from quorum.core.effects import ReceiveSnapshot, SnapshotFile
from quorum.core.types import OffsetAndEpoch
from quorum.log.snapshots import SnapshotLoad
from wire.batch import read_header
from wire.varint import Malformed

__all__ = ["StoredSnapshots", "is_whole", "snapshot_file"]


def snapshot_file(end: OffsetAndEpoch, content: bytes) -> SnapshotFile:
    head = read_header(content)
    return SnapshotFile(id=end, size_bytes=len(content), head=content[: head.size_bytes])


def is_whole(end: OffsetAndEpoch, content: bytes) -> bool:
    load = SnapshotLoad(end)
    try:
        load.take(content, len(content))
    except Malformed:
        return False
    return load.is_complete


@dataclass(slots=True)
class StoredSnapshots:
    whole: dict[OffsetAndEpoch, bytes] = field(default_factory=dict)  # as the process sees them
    _renaming: dict[OffsetAndEpoch, bytes] = field(default_factory=dict)  # not told of yet
    _removed: dict[OffsetAndEpoch, bytes] = field(default_factory=dict)  # since the last start
    _parts: dict[OffsetAndEpoch, bytearray] = field(default_factory=dict)

    @property
    def newest(self) -> OffsetAndEpoch | None:
        return max(self.whole, key=lambda end: end.offset, default=None)

    def files(self) -> tuple[SnapshotFile, ...]:
        ascending = sorted(self.whole, key=lambda end: (end.offset, end.epoch))
        return tuple(snapshot_file(end, self.whole[end]) for end in ascending)

    def rename(self, end: OffsetAndEpoch, content: bytes) -> None:
        """Written and synced; whether the name will last is not known yet."""
        self._renaming[end] = content

    def renamed(self, end: OffsetAndEpoch, content: bytes) -> SnapshotFile:
        """One may have been received and saved at the same time: the last has the name."""
        self._renaming.pop(end, None)
        self.whole[end] = content
        return snapshot_file(end, content)

    def receive(self, effect: ReceiveSnapshot) -> bytes | None:
        """The content, if that was its last piece."""
        part = self._parts.setdefault(effect.id, bytearray())
        if effect.position == 0:
            part.clear()
        if effect.position != len(part):
            raise Crash(
                "contract",
                f"{effect.id}: a piece for {effect.position}, but {len(part)} bytes are there",
            )
        part += effect.records
        return bytes(self._parts.pop(effect.id)) if effect.is_last else None

    def remove_before(self, start_offset: int) -> None:
        """Those that end before it."""
        for end in [end for end in self.whole if end.offset < start_offset]:
            self._removed[end] = self.whole.pop(end)

    def crash(self, random: Random, counts: Counts, *, power_loss: bool) -> None:
        for end, content in self._renaming.items():
            if random.random() < 0.5:
                self.whole[end] = content
            else:
                counts.fired("lost_snapshot")
        for end, content in self._removed.items():
            if power_loss and random.random() < 0.5:
                self.whole.setdefault(end, content)
        if self._parts:
            counts.fired("lost_part", len(self._parts))
        self._renaming.clear()
        self._removed.clear()
        self._parts.clear()
