"""What fired in a run, by kind: a fault that never fires proves nothing."""

from collections.abc import Iterable

__all__ = ["FAULT_KINDS", "SNAPSHOT_KINDS", "Counts"]

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
SNAPSHOT_KINDS = ("broken_snapshot", "lost_part", "lost_snapshot", "trim_undone")


class Counts:
    """How often each kind of fault took effect."""

    __slots__ = ("by_kind",)

    def __init__(self, kinds: Iterable[str] = (*FAULT_KINDS, *SNAPSHOT_KINDS)) -> None:
        self.by_kind: dict[str, int] = dict.fromkeys(kinds, 0)

    def fired(self, kind: str, times: int = 1) -> None:
        assert kind in self.by_kind, kind
        self.by_kind[kind] += times
