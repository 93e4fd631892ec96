"""The interface of a node's disk for its host and observers, and the faults that it may have."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from jepsen_like.sim.disks.data_directories import DataDirectories
from jepsen_like.sim.logs.stored_log import StoredLog
from quorum.core.effects import Event
from quorum.core.log_state import FoundLog, LogState
from quorum.core.storage import StorageEffect
from quorum.core.types import ElectionState, OffsetAndEpoch
from wire.primitives import ZERO_UUID

__all__ = ["DiskFaults", "NodeDisk"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFaults:
    """How slow and how treacherous a disk is. Chances are per write, sync, read or crash."""

    sync_us_min: int = 50
    sync_us_mean: int = 200  # on top of the minimum, exponentially distributed
    inline_syncs: bool = False  # some end before the node does anything else: a share by chance
    read_us: int = 20
    write_failure: float = 0.0  # at once
    fsync_failure: float = 0.0
    read_failure: float = 0.0  # of the shipped storage only
    torn_write: float = 0.0
    keeps_unsynced: bool = True  # a power failure leaves some of it, or all, by chance
    short_read: float = 0.0  # of a snapshot: fewer bytes than were asked for
    segment_batches: int = 1  # batches in a segment: only whole ones are trimmed
    snapshot_syncs: int = 1  # how many syncs' time it takes to write a snapshot


class NodeDisk(Protocol):
    """The disk of one node. It outlives every process of the node."""

    logs: dict[str, StoredLog]
    high_watermarks: dict[str, int]
    directories: DataDirectories  # of partitions
    generation: int  # how often it was wiped
    is_damaged: bool  # a bit has flipped in what was synced: no node starts on it
    saved: Callable[[str, ElectionState], None]
    syncs_at: Callable[[str], None]  # "begun", "due", "done"

    @property
    def faults(self) -> DiskFaults: ...

    @faults.setter
    def faults(self, faults: DiskFaults) -> None: ...

    @property
    def syncs(self) -> int:
        """Begun so far."""
        ...

    @property
    def busy_until_us(self) -> int:
        """When all that is under way will have ended: a sync that is slow stays so."""
        ...

    def attach(self, deliver: Callable[[Event], None]) -> None:
        """A new process runs on this disk and gets its completions."""
        ...

    def log(self, name: str, topic_id: UUID = ZERO_UUID) -> StoredLog:
        """What the process has written, and what it was promised to be durable."""
        ...

    def format(self, snapshot_id: OffsetAndEpoch, content: bytes) -> None:
        """Leave a first snapshot of the metadata log on an empty disk."""
        ...

    def recover(self, name: str, topic_id: UUID = ZERO_UUID) -> tuple[LogState, ElectionState]: ...

    def crash(self, *, power_loss: bool) -> None: ...

    def close(self) -> None:
        """The process stops in order."""
        ...

    @property
    def found(self) -> tuple[FoundLog, ...]:
        """The partition logs that a new process is told of."""
        ...

    def wipe_partitions(self) -> None:
        """All of them are lost, while no process runs."""
        ...

    def wipe(self) -> None:
        """Everything on it is lost, while no process runs."""
        ...

    def damage(self) -> None:
        """A bit flips in what was synced, while no process runs."""
        ...

    def fail_directory(self, directory_id: UUID) -> None:
        """One of several cannot be used any more; the process hears so."""
        ...

    def perform(self, effect: StorageEffect) -> None:
        """Carry out one effect; `begin_syncs` follows after the last of those taken together."""
        ...

    def take_failures(self) -> list[Event]:
        """What has come of the effects at once: failed writes; nothing on them has left yet."""
        ...

    def begin_syncs(self) -> list[Event]:
        """Sync what a turn has written; returns what has ended by then."""
        ...
