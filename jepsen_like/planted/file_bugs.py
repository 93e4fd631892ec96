"""Planted bugs of files: of the shipped storage, of partition logs, and of data directories.

The shipped storage runs in every seed that looks for one of the bugs of group `file`. The metadata
log keeps its notes elsewhere, so that only clusters whose partitions lie on the shipped storage
find those of partitions. Two are found by storage alone, in tests/sim/test_partition_storage.py:
clusters delete no records of the topics that they delete, and the power seldom fails in the
milliseconds in which the names of two segments of a new log are not synced. And a log here seldom
is closed in order twice: tests/quorum/storage/test_resumption.py. The simulator compacts nothing:
tests/quorum/storage/test_compaction.py finds the bugs of that.
"""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from broker.log_dirs import LogDirs
from broker.partition.partition import Offline
from broker.replicas import Replicas
from controller.metadata.image import MetadataImage
from controller.metadata.partitions import PartitionState
from jepsen_like.planted.planting import plant_in
from quorum.core.log_settings import CleaningOrder
from quorum.core.producers import ProducerEntry
from quorum.core.storage import METADATA_LOG
from quorum.log import cleaning_choice
from quorum.log.cleaned_batches import Cleaner
from quorum.log.cleaning_choice import Choice, Extent, NotDue
from quorum.log.files import cleaning_round, log_directories, recovery
from quorum.log.files.disk import Disk
from quorum.log.files.log_directories import LogDirectories
from quorum.log.files.log_directory import LogDirectory
from quorum.log.files.producer_snapshot import parse_producers
from quorum.log.files.segment import Segment
from quorum.log.files.segments import SegmentedLog, Unsynced
from wire.batch import BatchHeader, read_header, write_header
from wire.primitives import DIRECTORY_UNASSIGNED, INT64_MAX
from wire.varint import Buffer

_replace = Disk.replace
_sync = LogDirectories.sync
_choose = cleaning_choice.choose
_clean = Cleaner.clean
_place = LogDirs.place
_obey = Replicas.obey


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


# --- what is noted beside a partition's log ----------------------------------------------------


@plant_in("partition_file", LogDirectories, "sync", seeds_max=20, found_at=2)
def raises_the_recovery_point_without_a_sync(
    self: LogDirectories, log: str, unsynced: Unsynced
) -> None:
    """Breaks: a recovery point of a partition is raised after the sync of what lies before it."""
    if log == METADATA_LOG:
        _sync(self, log, unsynced)
    else:
        self.home(log).recovery_points.raise_to(log, unsynced.end_offset)


@plant_in("partition_file_survivors", recovery, "take_producers")
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


# --- compaction --------------------------------------------------------------------------------


@plant_in("partition_file_survivors", Cleaner, "clean")
def closes_the_gaps_in_a_batch(self: Cleaner, batch: Buffer, header: BatchHeader) -> Buffer:
    """Breaks: compaction removes records, and never moves the end of a batch."""
    left = bytearray(_clean(self, batch, header))
    if left and left != batch:
        after = read_header(left)
        write_header(left, after._replace(last_offset_delta=max(after.record_count - 1, 0)))
    return left if left != batch else batch


@plant_in("partition_file_survivors", cleaning_round, "choose")
def cleans_what_is_not_committed(
    extents: Sequence[Extent], *, dirty_offset: int, order: CleaningOrder
) -> Choice | NotDue:
    """Breaks: nothing above the high watermark is compacted."""
    beyond = replace(order, end_offset=INT64_MAX)
    return _choose(extents, dirty_offset=dirty_offset, order=beyond)


@plant_in("partition_file_survivors", log_directories, "swap_in")
def swaps_without_a_sync(
    disk: Disk, directory: str, cleaned: Segment, replaced: Sequence[Segment]
) -> None:
    """Breaks: a compacted segment is on the medium before those that it replaces go."""
    for path in cleaned.paths:
        disk.forget(path)
    for segment in replaced:
        segment.rename(".deleted")
    cleaned.rename("")


@plant_in("partition_file_survivors", recovery, "finish_swaps")
def removes_a_swap_that_is_decided(disk: Disk, directory: str) -> list[str]:
    """Breaks: a start finishes the swap of a compacted segment that was decided."""
    for name in disk.names(directory):
        if name.endswith((".cleaned", ".swap")):
            disk.remove(f"{directory}/{name}")
    return disk.names(directory)


# --- data directories that fail: where replicas lie, and who knows (KIP-858) -------------------


@plant_in("directory", LogDirs, "place", seeds_max=30, found_at=20)
def creates_anew_what_is_offline(self: LogDirs, log: str, assigned: UUID) -> UUID | None:
    """Breaks: a replica is not created anew while its directory is offline (KIP-112)."""
    chosen = _place(self, log, assigned)
    if chosen is None:
        self.removed(log)
        chosen = _place(self, log, DIRECTORY_UNASSIGNED)
    return chosen


# Found in the shipped broker, when directories began to fail here.


@plant_in("directory", Replicas, "obey", seeds_max=30, found_at=1)
def says_that_what_is_offline_lies_nowhere(
    self: Replicas, name: str, topic_id: UUID, index: int, state: PartitionState, now_ms: int
) -> None:
    """Breaks: a replica that is offline stays in the directory that the metadata names
    (KIP-858)."""
    _obey(self, name, topic_id, index, state, now_ms)
    for partition in self:
        if partition.topic_id == topic_id and isinstance(partition.role, Offline):
            partition.directory_id = DIRECTORY_UNASSIGNED


@plant_in("directory", MetadataImage, "is_acceptable", seeds_max=30, found_at=0)
def elects_into_a_failed_directory(self: MetadataImage, broker_id: int, directory: UUID) -> bool:
    """Breaks: a replica in a failed directory is not elected (KIP-858)."""
    return self.is_active(broker_id)
