"""Planted bugs of the files of partition logs: what is noted beside a log, and when it is synced.

The metadata log keeps its notes elsewhere, so that only clusters whose partitions lie on the
shipped storage find these. Two are found by storage alone, in tests/sim/test_partition_storage.py:
clusters delete no records of the topics that they delete, and the power seldom fails in the
milliseconds in which the names of two segments of a new log are not synced.
"""

from collections.abc import Sequence

from jepsen_like.planted.planting import plant_in
from quorum.core.producers import ProducerEntry
from quorum.core.storage import METADATA_LOG
from quorum.log.files import recovery
from quorum.log.files.disk import Disk
from quorum.log.files.log_directories import LogDirectories
from quorum.log.files.log_directory import LogDirectory
from quorum.log.files.producer_snapshot import parse_producers
from quorum.log.files.segments import SegmentedLog, Unsynced

_sync = LogDirectories.sync


@plant_in("partition_file", LogDirectories, "sync", seeds_max=20, found_at=2)
def raises_the_recovery_point_without_a_sync(
    self: LogDirectories, log: str, unsynced: Unsynced
) -> None:
    """Breaks: a recovery point of a partition is raised after the sync of what lies before it."""
    if log == METADATA_LOG:
        _sync(self, log, unsynced)
    else:
        self.home(log).recovery_points.raise_to(log, unsynced.end_offset)


@plant_in("partition_file", recovery, "take_producers", seeds_max=20, found_at=7)
def takes_the_producers_of_an_earlier_end(
    disk: Disk, directory: str, names: Sequence[str], *, end_offset: int
) -> dict[int, ProducerEntry] | None:
    """Breaks: the producers of a log are those that were noted at its end, and of it alone."""
    notes = sorted(name for name in names if name.endswith(".snapshot"))
    content = disk.read_whole(f"{directory}/{notes[0]}") if notes else None
    return None if content is None else parse_producers(content)


@plant_in("partition_file_survivors", LogDirectory, "forget")
def keeps_the_start_of_a_deleted_log(self: LogDirectory, log: str) -> None:
    """Breaks: where a log started is forgotten with the log: one of the same name begins at 0."""
    for checkpoint in (self.recovery_points, self.high_watermarks):
        checkpoint.forget(log)


@plant_in("partition_file_survivors", SegmentedLog, "sync_names")
def begins_a_segment_without_the_names_before(self: SegmentedLog) -> None:
    """Breaks: no segment is on the medium without those before it."""
