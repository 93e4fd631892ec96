"""What a node finds on its disks of a log, as values: its extent, epochs, producers, snapshots.

Part of the contract between cores and drivers, which is told in `quorum.core.effects`.
"""

from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from quorum.core.producers import ProducerEntry
from quorum.core.types import OffsetAndEpoch
from wire.primitives import ZERO_UUID

__all__ = ["EpochStart", "FoundLog", "LogState", "SnapshotFile"]


class EpochStart(NamedTuple):
    """A line of leader-epoch-checkpoint: the first offset written in an epoch."""

    epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFile:
    """A whole snapshot on the disk (KIP-630).

    `id.offset` is exclusive, the end of what it contains, `id.epoch` that of the last record in it.
    `head` is its first batch as it lies there: control records, the snapshot header first, then,
    from kraft.version 1 on, the version and the voters.
    """

    id: OffsetAndEpoch
    size_bytes: int
    head: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLog:
    """A partition's log that lies in a data directory when the node starts."""

    log: str
    topic_id: UUID  # ZERO_UUID: its directory does not say
    directory_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """What recovery found in a log. Offsets called `*_offset` are exclusive ends."""

    log: str
    topic_id: UUID = ZERO_UUID
    directory_id: UUID = ZERO_UUID  # where it lies; ZERO_UUID where there is but one place
    start_offset: int = 0
    end_offset: int = 0
    last_epoch: int = -1  # of the last record; -1 in an empty log
    epochs: tuple[EpochStart, ...] = ()  # the leader epoch cache, ascending in both columns
    high_watermark: int = 0  # from replication-offset-checkpoint; the metadata log has none
    producers: tuple[ProducerEntry, ...] = ()  # rebuilt from the log
    size_bytes: int = 0  # of all segments
    snapshots: tuple[SnapshotFile, ...] = ()  # the metadata log's, ascending
    control_batches: tuple[bytes, ...] = field(default=(), repr=False)  # its control batches
