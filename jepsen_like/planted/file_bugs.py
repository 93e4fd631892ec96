"""Planted bugs in the shipped storage, which runs in every seed that looks for one of them."""

from dataclasses import replace

from jepsen_like.planted.planting import plant_in
from quorum.log.files import recovery
from quorum.log.files.disk import Disk
from quorum.log.files.log_directories import LogDirectories
from quorum.log.files.segments import Unsynced

_replace = Disk.replace
_sync = LogDirectories.sync


# --- syncs ------------------------------------------------------------------------------------


@plant_in("file", Disk, "publish", seeds_max=40, found_at=1)
def publishes_without_a_sync(self: Disk, part: str, path: str) -> None:
    """Breaks: a snapshot is synced before it gets its name."""
    self.forget(part)
    self.forget(path)
    self.rename(part, path)


@plant_in("file", Disk, "rename", seeds_max=40, found_at=1)
def renames_without_a_sync(self: Disk, path: str, to: str) -> None:
    """Breaks: the directory is synced after a file was renamed."""
    self._system.rename(path, to)


@plant_in("file", Disk, "replace", seeds_max=40, found_at=5)
def replaces_without_a_sync(
    self: Disk, path: str, content: bytes, *, syncs_directory: bool = True
) -> None:
    """Breaks: the directory is synced after a file was replaced."""
    _replace(self, path, content, syncs_directory=False)


@plant_in("file", LogDirectories, "sync", seeds_max=40, found_at=0)
def forgets_the_name_of_a_new_segment(self: LogDirectories, log: str, unsynced: Unsynced) -> None:
    """Breaks: the directory is synced after a segment was created."""
    _sync(self, log, replace(unsynced, directory=None))


# --- recovery ---------------------------------------------------------------------------------


@plant_in("file", recovery, "is_loss", seeds_max=40, found_at=4)
def tolerates_one_lost_record(end_offset: int, recovery_point: int) -> bool:
    """Breaks: a log that ends before its recovery point is refused."""
    return end_offset < recovery_point - 1
