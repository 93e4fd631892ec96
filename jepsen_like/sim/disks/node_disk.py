"""The faults that a node's disk may have, and the data directories of a broker (JBOD).

A directory fails while a process runs, and stays so until somebody repairs it. Its logs keep what
they have, but nobody reads, writes or deletes them. The storage tells the broker of the failure, as
`quorum.log.files.file_storage` does: each log that lies there has failed. A log may begin anew in
another directory; then what the failed directory has of it is not seen again.

Source: KIP-112, KIP-858.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from uuid import UUID

from quorum.core.effects import DeleteLog, OpenLog
from quorum.core.log_state import FoundLog
from quorum.core.storage import StorageEffect

__all__ = ["DataDirectories", "DiskFaults"]


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

    def draw_sync_us(self, random: Random) -> int:
        """How long one sync takes."""
        return self.sync_us_min + int(random.expovariate(1 / self.sync_us_mean))


class DataDirectories:
    """In which of them a partition's log lies, and which have failed."""

    def __init__(self) -> None:
        self.ids: tuple[UUID, ...] = ()  # one or none: all logs lie in one place
        self.unreadable: set[UUID] = set()
        self.homes: dict[str, UUID] = {}  # by log

    @property
    def online(self) -> tuple[UUID, ...]:
        return tuple(each for each in self.ids if each not in self.unreadable)

    def logs_in(self, directory_id: UUID) -> list[str]:
        return [log for log, home in self.homes.items() if home == directory_id]

    def found(self, topic_ids: "Iterator[tuple[str, UUID]]") -> tuple[FoundLog, ...]:
        """Return the state in which a process finds these logs at its start."""
        return tuple(
            FoundLog(log=log, topic_id=topic_id, directory_id=self.homes[log])
            for log, topic_id in topic_ids
            if self.homes.get(log) in self.online
        )

    def failed(self, effect: StorageEffect) -> UUID | None:
        """The directory because of which this cannot be done; None if it can be."""
        match effect:
            case OpenLog(directory_id=directory_id):
                return directory_id if directory_id in self.unreadable else None
            case _:
                home = self.homes.get(getattr(effect, "log", ""))
                return home if home in self.unreadable else None

    def note(self, effect: StorageEffect) -> bool:
        """Returns whether a log begins anew, away from the failed directory that has it."""
        match effect:
            case OpenLog(log=log, directory_id=directory_id):
                before = self.homes.get(log)
                self.homes[log] = directory_id
                return before in self.unreadable
            case DeleteLog(log=log):
                self.homes.pop(log, None)
                return False
            case _:
                return False

    def clear(self) -> None:
        """All logs are lost."""
        self.homes.clear()
