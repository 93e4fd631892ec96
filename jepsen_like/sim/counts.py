"""What fired in a run, by kind: a fault that never fires proves nothing."""

from collections.abc import Iterable

__all__ = ["ALL_KINDS", "FAULT_KINDS", "QUORUM_KINDS", "SNAPSHOT_KINDS", "Counts"]

FAULT_KINDS = (
    "cut_one_way",
    "cut_two_way",
    "delayed",
    "disconnected",
    "duplicated",
    "fsync_failed",
    "held",
    "kill",
    "lost",
    "lost_election",
    "lost_tail",
    "paused",
    "power_loss",
    "reordered",
    "resigned",
    "restarted",
    "shut_down",
    "skewed",
    "timed_out",
    "torn_write",
    "write_failed",
)
# Those of logs with snapshots, which a run need not take.
SNAPSHOT_KINDS = (
    "lost_part",
    "lost_snapshot",
    "short_read",
    "snapshot_received",
    "trim_undone",
)
# Those of disks that run the shipped storage.
SHIPPED_STORAGE_KINDS = (
    "bit_flipped",
    "died_at_start",
    "lost_entry",
    "lost_sectors",
    "read_failed",
    "shipped_storage",
)
# Those that the simulation of the quorum alone adds.
QUORUM_KINDS = (
    "change_refused",
    "clock_jumped",
    "damaged",
    "isolated",
    "snapshot_loaded",
    *SHIPPED_STORAGE_KINDS,
    "voter_added",
    "voter_removed",
    "wiped",
)
ALL_KINDS = tuple(sorted((*FAULT_KINDS, *SNAPSHOT_KINDS, *QUORUM_KINDS)))


class Counts:
    """How often each kind of fault took effect. `kinds` are those beyond the common ones."""

    __slots__ = ("by_kind",)

    def __init__(self, kinds: Iterable[str] = QUORUM_KINDS) -> None:
        self.by_kind: dict[str, int] = dict.fromkeys((*FAULT_KINDS, *SNAPSHOT_KINDS, *kinds), 0)

    def fired(self, kind: str, times: int = 1) -> None:
        assert kind in self.by_kind, kind
        self.by_kind[kind] += times
