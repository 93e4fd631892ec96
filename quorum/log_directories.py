"""The blocking half of storage: what is done to the directory of a log, and waits for the medium.

Called from threads, for one log by one thread at a time; different logs share the recovery points.
Which of it may happen when is decided in `quorum.files`. Everything raises `StorageError`.

    <directory>/<topic>-<partition>/                    a partition's log
    <directory>/<topic>-<partition>.<32 hex>-delete/    one on its way out
    <metadata directory>/__cluster_metadata-0/          the metadata log, with quorum-state

Source: Kafka's LogManager and KafkaRaftLog.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

from quorum.checkpoints import (
    ELECTION_VERSION_MAX,
    EPOCHS,
    HIGH_WATERMARKS,
    PARTITION_METADATA,
    QUORUM_STATE,
    format_election,
    format_epochs,
    format_partition_metadata,
    parse_election,
    parse_offsets,
    parse_partition_metadata,
)
from quorum.disk import Disk
from quorum.effects import LogState, SnapshotFile
from quorum.recovery import WAY_OUT, CorruptLog, open_log
from quorum.recovery_points import RecoveryPoints, SyncedMark, topic_partition
from quorum.segment import LogSettings, Segment
from quorum.segments import SegmentedLog, Unsynced
from quorum.snapshot_files import SnapshotFiles
from quorum.storage import METADATA_LOG, Say
from quorum.types import ElectionState, OffsetAndEpoch

__all__ = ["LogDirectories", "StorageSettings"]

_METADATA = LogSettings(preallocate_bytes=4 << 20)
_PARTITIONS = LogSettings()
_LOG_NAME = re.compile(r"[A-Za-z0-9._-]+-\d+")
_DELETED_SUFFIX = "-delete"
_DELETED_NAME = re.compile(rf".+\.[0-9a-f]{{32}}{_DELETED_SUFFIX}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings:
    """`voters` are static ones, which quorum-state names while kraft.version is 0."""

    metadata: LogSettings = _METADATA
    partitions: LogSettings = _PARTITIONS
    voters: tuple[int, ...] = ()
    descriptors_max: int = 1000


class LogDirectories:
    def __init__(
        self,
        disk: Disk,
        directory: str,
        *,
        metadata_directory: str,
        settings: StorageSettings,
        say: Say,
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._metadata_directory = metadata_directory
        self._settings = settings
        self._say = say
        self._recovery_points = RecoveryPoints(disk, directory)
        self._mark = SyncedMark(disk, self.path(METADATA_LOG), METADATA_LOG)
        self.snapshots = SnapshotFiles(disk, self.path(METADATA_LOG))
        path = f"{directory}/{HIGH_WATERMARKS}"
        content = disk.read_whole(path)
        self._high_watermarks = {} if content is None else parse_offsets(content, path)

    def path(self, log: str) -> str:
        parent = self._metadata_directory if log == METADATA_LOG else self._directory
        return f"{parent}/{log}"

    def names(self) -> tuple[str, ...]:
        """The partition logs that are there, open or not."""
        found = self._disk.names(self._directory)
        return tuple(n for n in found if _LOG_NAME.fullmatch(n) and n != METADATA_LOG)

    # --- opening ----------------------------------------------------------------------------

    def open(self, log: str, topic_id: UUID) -> tuple[SegmentedLog, LogState]:
        """Recover or create. The state has the topic id that the directory has: it may belong to
        an earlier topic of the same name."""
        path = self.path(log)
        is_metadata = log == METADATA_LOG
        recovered = open_log(
            self._disk,
            path,
            self._settings.metadata if is_metadata else self._settings.partitions,
            recovery_point=self._mark.read() if is_metadata else self._recovery_points.of(log),
            reads_all=is_metadata,
            say=self._say,
        )
        segments = recovered.log
        snapshots: tuple[SnapshotFile, ...] = ()
        control_batches: tuple[bytes, ...] = ()
        if is_metadata:
            self._mark.set(segments.end_offset)
            self._disk.sync_directory(self._metadata_directory)
            was_reset, snapshots = self._recover_snapshots(segments)
            control_batches = () if was_reset else recovered.control_batches
        else:
            if recovered.is_new:
                self._recovery_points.forget(log)
            self._recovery_points.raise_to(log, segments.end_offset)
        high_watermark = 0
        if not is_metadata and not recovered.is_new:
            high_watermark = self._high_watermarks.get(topic_partition(log), 0)
        latest = segments.epochs.latest
        state = LogState(
            log=log,
            topic_id=self._topic_id(path, topic_id),
            start_offset=segments.start_offset,
            end_offset=segments.end_offset,
            last_epoch=-1 if latest is None else latest.epoch,
            epochs=segments.epochs.entries,
            high_watermark=min(high_watermark, segments.end_offset),
            producers=recovered.producers,
            size_bytes=segments.size_bytes,
            snapshots=snapshots,
            control_batches=control_batches,
        )
        return segments, state

    def _recover_snapshots(self, segments: SegmentedLog) -> tuple[bool, tuple[SnapshotFile, ...]]:
        """Whether the newest snapshot has replaced the log, and which there are.

        It does if it goes on where the log ends: then the process died between receiving it and
        beginning the log anew.
        """
        found = self.snapshots.recover()
        latest = segments.epochs.latest
        end = OffsetAndEpoch(segments.end_offset, -1 if latest is None else latest.epoch)
        is_beyond = bool(found) and found[-1].id.offset > 0 and not end.is_at_least(found[-1].id)
        if is_beyond:
            self._say(f"the metadata log ends at {end}: beginning anew after {found[-1].id}")
            self.reset(METADATA_LOG, segments, found[-1].id)
        kept = tuple(file for file in found if file.id.offset >= segments.start_offset)
        self.snapshots.remove(file.id for file in found if file not in kept)
        if segments.start_offset > 0 and not kept:
            raise CorruptLog(
                f"{segments.directory} starts at offset {segments.start_offset}, but there is no"
                f" snapshot of what came before. {WAY_OUT}"
            )
        return is_beyond, kept

    def _topic_id(self, directory: str, topic_id: UUID) -> UUID:
        path = f"{directory}/{PARTITION_METADATA}"
        content = self._disk.read_whole(path)
        if content is not None:
            return parse_partition_metadata(content, path)
        content = format_partition_metadata(topic_id)
        self._disk.replace(path, content, syncs_directory=False)
        return topic_id

    def read_election(self, log: str) -> ElectionState:
        path = f"{self.path(log)}/{QUORUM_STATE}"
        content = self._disk.read_whole(path)
        return ElectionState() if content is None else parse_election(content, path)

    # --- while open -------------------------------------------------------------------------

    def sync(self, log: str, unsynced: Unsynced) -> None:
        for path in unsynced.paths:
            self._disk.sync(path)
        if unsynced.directory is not None:
            self._disk.sync_directory(unsynced.directory)
            self._disk.sync_directory(self._directory)  # the log itself may be new
        if unsynced.epochs is not None:  # before the recovery point: recovery relies on it
            self._disk.replace(f"{self.path(log)}/{EPOCHS}", format_epochs(unsynced.epochs))
        if log == METADATA_LOG:
            self._mark.raise_to(unsynced.end_offset)
        else:
            self._recovery_points.raise_to(log, unsynced.end_offset)

    def save_election(self, log: str, election: ElectionState, kraft_version: int) -> None:
        version = min(kraft_version, ELECTION_VERSION_MAX)
        content = format_election(election, version=version, voters=self._settings.voters)
        self._disk.replace(f"{self.path(log)}/{QUORUM_STATE}", content)

    def truncate(self, log: str, segments: SegmentedLog, end_offset: int) -> None:
        if log == METADATA_LOG:
            self._mark.lower_to(end_offset)
        else:
            self._recovery_points.lower_to(log, end_offset)
        segments.truncate(end_offset)

    def reset(self, log: str, segments: SegmentedLog, start: OffsetAndEpoch) -> None:
        """Durably. A crash on the way leaves a part of the old log, and what it is replaced by."""
        if log == METADATA_LOG:
            self._mark.lower_to(0)
        else:
            self._recovery_points.lower_to(log, 0)
        segments.reset(start)
        self.sync(log, segments.unsynced())

    def remove(self, log: str, segments: Sequence[Segment]) -> None:
        """The files of segments that are no part of the log any more, the oldest first."""
        for segment in segments:
            segment.remove()
            self._disk.sync_directory(self.path(log))

    def delete(self, log: str, segments: SegmentedLog | None) -> None:
        if segments is not None:
            segments.forget()
        if log not in self._disk.names(self._directory):
            return
        doomed = f"{self.path(log)}.{uuid4().hex}{_DELETED_SUFFIX}"
        self._disk.rename(self.path(log), doomed)
        self._recovery_points.forget(log)
        self._disk.remove_tree(doomed)

    def remove_deleted(self) -> None:
        """What an earlier process did not get to."""
        for name in self._disk.names(self._directory):
            if _DELETED_NAME.fullmatch(name):
                self._disk.remove_tree(f"{self._directory}/{name}")

    def save_recovery_points(self) -> None:
        self._recovery_points.save()

    def close(self, log: str, segments: SegmentedLog) -> None:
        """Everything on the medium, files trimmed, indexes written."""
        segments.finish()
        self.sync(log, segments.unsynced())
        segments.forget()
