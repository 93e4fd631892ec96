"""The storage that a driver needs: the effects that name a disk, and the events they lead to.

Synchronous and narrow, so that there can be two of it: `quorum.log.files.file_storage` on real
files, and the simulator's disk, which loses unsynced tails. Cores never see it: they emit effects.

The rules that both obey:

- Effects on one log take effect in the order in which they are performed. Whatever has to happen
  in the background (an election to be saved, a log to be recovered, truncated or deleted) holds
  back the later effects on its own log, and no other log's.
- `Stored(log, token)` covers everything performed on `log` before it, too.
- Pieces of one snapshot are received in the order in which they are performed.
- The first failure of a log is its last event but for the answers that were already on their way:
  nothing performed afterwards is carried out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from quorum.core.cleaning import Clean, Cleaned
from quorum.core.effects import (
    Append,
    Configure,
    DeleteLog,
    FindTimestamp,
    LogState,
    Opened,
    OpenLog,
    Read,
    ReadDone,
    ReadSnapshot,
    ReceiveSnapshot,
    ResetLog,
    Retain,
    SaveElection,
    SaveHighWatermarks,
    SaveProducers,
    SaveSnapshot,
    SnapshotRead,
    SnapshotSaved,
    StorageFailed,
    Stored,
    TimestampFound,
    Trim,
    Trimmed,
    Truncate,
)
from quorum.core.types import ElectionState

__all__ = [
    "METADATA_LOG",
    "Loaded",
    "LogEffect",
    "Say",
    "SnapshotEffect",
    "Storage",
    "StorageEffect",
    "StorageError",
    "StorageEvent",
    "SyncCounts",
]

METADATA_LOG = "__cluster_metadata-0"

LogEffect = (
    Append
    | Truncate
    | SaveElection
    | Read
    | FindTimestamp
    | ResetLog
    | Trim
    | Retain
    | Clean
    | OpenLog
    | Configure
    | SaveProducers
    | DeleteLog
)
SnapshotEffect = SaveSnapshot | ReceiveSnapshot | ReadSnapshot  # in no order with the log's own
StorageEffect = LogEffect | SnapshotEffect | SaveHighWatermarks
StorageEvent = (
    Stored
    | StorageFailed
    | ReadDone
    | Opened
    | TimestampFound
    | SnapshotSaved
    | SnapshotRead
    | Trimmed
    | Cleaned
)

Say = Callable[[str], None]  # one line for the process's log; called from any thread


class StorageError(Exception):
    """A disk or a file on it cannot be used. The message is a sentence for whoever runs the node.

    It names the file, says what is wrong with it, and where there is something to do, what.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What a node finds of its metadata log before its core exists."""

    election: ElectionState
    state: LogState


@dataclass(slots=True, kw_only=True)
class SyncCounts:
    """How often the disk was synced, how long that took, and for how many tokens."""

    count: int = 0
    seconds: float = 0.0
    seconds_max: float = 0.0
    tokens: int = 0  # tokens / count is what group commit gains
    inline: int = 0  # in the driver's thread
    too_slow: int = 0  # of those: it stopped the node for longer than it may

    def add(self, seconds: float, *, tokens: int) -> None:
        """From the thread that synced: an addition may be lost to another, and does not matter."""
        self.count += 1
        self.seconds += seconds
        self.seconds_max = max(self.seconds_max, seconds)
        self.tokens += tokens


class Storage(Protocol):
    """The disk of one node. One thread at a time calls it: that of the driver."""

    syncs: SyncCounts

    def load(self, log: str, topic_id: UUID) -> Loaded:
        """Recover or create `log` and read its quorum-state, before any effect names it.

        Raises `StorageError`.
        """
        ...

    def wake_with(self, wake: Callable[[], None]) -> None:
        """Have `wake` called, from any thread, when `take_events` has something new."""
        ...

    def perform(self, effect: StorageEffect) -> None:
        """Carry out one effect as far as it takes no waiting. Never raises for a bad disk."""
        ...

    def take_answers(self) -> list[StorageEvent]:
        """What has come of the effects at once: what was read, and what failed."""
        ...

    def take_events(self) -> list[StorageEvent]:
        """Begin the syncs; what has come of the effects since, in order within each log.

        To be called after the last of the effects that were taken together, since one sync serves
        them, and when all has left that need not wait for it: it may take its time.
        """
        ...

    def close(self, *, broker_epoch: int | None) -> None:
        """Wait for what is under way, make everything durable, and let go of the files.

        After an orderly stop leave the mark of it, with the broker's epoch, -1 on a controller
        (KIP-966). None: the stop is not orderly.
        """
        ...
