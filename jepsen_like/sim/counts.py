"""Counts, by name, of the faults that fired in a run: a fault that never fires proves nothing.

A fault that an injector strikes with is counted by its kind (`jepsen_like.faults.kinds`), a cut for
every message that it stops; beside those, what chance does to single messages, writes, syncs and
starts, and what an administrator brings about.
"""

from collections import Counter

__all__ = ["CHANCES", "QUORUM_CHANCES", "SNAPSHOT_CHANCES", "Counts"]

CHANCES = (
    "delayed",
    "disconnected",
    "duplicated",
    "fsync_failed",
    "held",
    "lost",
    "lost_election",
    "lost_tail",
    "older_release",
    "reordered",
    "restarted",
    "skewed",
    "timed_out",
    "torn_write",
    "upgraded",
    "write_failed",
)
# Those of logs with snapshots, which a run need not take.
SNAPSHOT_CHANCES = (
    "lost_part",
    "lost_snapshot",
    "short_read",
    "snapshot_received",
    "trim_undone",
)
# Those that the simulation of the quorum alone adds; the first are of the shipped storage.
QUORUM_CHANCES = (
    "bit_flipped",
    "died_at_start",
    "lost_entry",
    "lost_sectors",
    "read_failed",
    "shipped_storage",
    "change_refused",
    "clock_jumped",
    "snapshot_loaded",
    "voter_added",
    "voter_removed",
)


class Counts:
    """How often each took effect."""

    __slots__ = ("by_kind",)

    def __init__(self) -> None:
        self.by_kind: Counter[str] = Counter()

    def fired(self, kind: str, times: int = 1) -> None:
        self.by_kind[kind] += times
