"""Planted bugs in the shipped storage, which runs in every seed that looks for one of them."""

from collections.abc import Sequence
from dataclasses import replace

from jepsen_like.planted.planting import Plants, plant_in
from quorum.log.files import recovery
from quorum.log.files.disk import Disk
from quorum.log.files.log_directories import LogDirectories
from quorum.log.files.segment import Segment
from quorum.log.files.segments import SegmentedLog, Unsynced
from wire.batch import BatchHeader

__all__ = ["FILE_PLANTS"]

FILE_PLANTS: Plants = {}

# What a plant calls of the rule that it replaces.
_replace = Disk.replace
_sync = LogDirectories.sync


# --- syncs ------------------------------------------------------------------------------------


@plant_in(FILE_PLANTS, Disk, "publish", seeds_max=40, found_at=1)
def publishes_without_a_sync(self: Disk, part: str, path: str) -> None:
    """Breaks: a snapshot is synced before it gets its name."""
    self.forget(part)
    self.forget(path)
    self.rename(part, path)


@plant_in(FILE_PLANTS, Disk, "rename", seeds_max=40, found_at=1)
def renames_without_a_sync(self: Disk, path: str, to: str) -> None:
    """Breaks: the directory is synced after a file was renamed."""
    self._system.rename(path, to)


@plant_in(FILE_PLANTS, Disk, "replace", seeds_max=40, found_at=5)
def replaces_without_a_sync(
    self: Disk, path: str, content: bytes, *, syncs_directory: bool = True
) -> None:
    """Breaks: the directory is synced after a file was replaced."""
    _replace(self, path, content, syncs_directory=False)


@plant_in(FILE_PLANTS, LogDirectories, "sync", seeds_max=40, found_at=1)
def forgets_the_name_of_a_new_segment(self: LogDirectories, log: str, unsynced: Unsynced) -> None:
    """Breaks: the directory is synced after a segment was created."""
    _sync(self, log, replace(unsynced, directory=None))


@plant_in(FILE_PLANTS, LogDirectories, "sync_cut")
def appends_over_what_may_come_back(self: LogDirectories, log: str, segments: SegmentedLog) -> None:
    """Breaks: a truncation lasts before anything is appended in its place."""


# --- descriptors ------------------------------------------------------------------------------


@plant_in(FILE_PLANTS, Disk, "forget", seeds_max=40, found_at=0)
def uses_the_descriptor_of_another_file(self: Disk, path: str) -> None:
    """Breaks: the descriptor of a file is closed when another may get its name."""


# --- recovery ---------------------------------------------------------------------------------


@plant_in(FILE_PLANTS, recovery, "epoch_problem", seeds_max=40, found_at=33)
def takes_a_falling_epoch(
    header: BatchHeader, *, last_epoch: int, noted_epoch: int | None
) -> str | None:
    """Breaks: where the leader epoch falls, or is not the one that was noted, the log has ended."""
    return None


@plant_in(FILE_PLANTS, recovery, "is_loss", seeds_max=40, found_at=4)
def tolerates_one_lost_record(end_offset: int, recovery_point: int) -> bool:
    """Breaks: a log that ends before its recovery point is refused."""
    return end_offset < recovery_point - 1


@plant_in(FILE_PLANTS, recovery, "write_again", seeds_max=100, found_at=12)
def trusts_what_a_failed_sync_left(
    disk: Disk, segments: Sequence[Segment], recovery_point: int | None
) -> None:
    """Breaks: what lies behind the recovery point is written again: its sync may have failed."""
