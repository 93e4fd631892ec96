"""The blocking half of storage: what is done to the files of a log, and waits for the medium.

Called from threads, for one log by one thread at a time; logs of a directory share its checkpoints.
Which of it may happen when is decided in `file_storage`. Everything raises `StorageError`.

    <data directory>/<topic>-<partition>/             a partition's log, see `log_directory`
    <metadata directory>/__cluster_metadata-0/        the metadata log, with quorum-state

Where a log lies is settled before it is opened (`place`), by the one thread that runs the core.

Source: Kafka's LogManager and KafkaRaftLog.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never
from uuid import UUID

from quorum.core.effects import DeleteLog, Durability, OpenLog, ResetLog, SaveElection, Truncate
from quorum.core.log_settings import CleaningOrder, LogSettings
from quorum.core.log_state import FoundLog, LogState, SnapshotFile
from quorum.core.storage import METADATA_LOG, Say, StorageError
from quorum.core.types import ElectionState, OffsetAndEpoch
from quorum.log.cleaning_choice import Choice
from quorum.log.files.checkpoints import (
    ELECTION_VERSION_MAX,
    EPOCHS,
    PARTITION_METADATA,
    QUORUM_STATE,
    CorruptFile,
    format_election,
    format_epochs,
    format_partition_metadata,
    parse_election,
)
from quorum.log.files.cleaning_round import Round
from quorum.log.files.disk import Disk
from quorum.log.files.jobs import Workers
from quorum.log.files.log_directory import LogDirectory
from quorum.log.files.log_queue import Alone, Swap
from quorum.log.files.offset_checkpoint import OffsetCheckpoint, topic_partition
from quorum.log.files.recovery import WAY_OUT, CorruptLog, Recovered, open_log
from quorum.log.files.recovery_points import SyncedMark
from quorum.log.files.segment import Segment
from quorum.log.files.segments import SegmentedLog, Unsynced
from quorum.log.files.snapshot_files import SnapshotFiles
from quorum.log.files.swapping import swap_in
from wire.primitives import ZERO_UUID

__all__ = ["LogDirectories", "StorageSettings"]

_METADATA = LogSettings(preallocate_bytes=4 << 20)
_PARTITIONS = LogSettings()
_NOTHING = OffsetAndEpoch(0, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings:
    """`voters` are static ones, which quorum-state names while kraft.version is 0."""

    metadata: LogSettings = _METADATA
    partitions: LogSettings = _PARTITIONS  # of a log that is opened without any
    voters: tuple[int, ...] = ()
    descriptors_max: int = 4096
    inline_sync_seconds: float = 0.0  # the most that one may take in the driver's thread; 0: none


class LogDirectories:
    def __init__(
        self,
        disk: Disk,
        directories: Mapping[str, UUID],
        *,
        metadata_directory: str,
        settings: StorageSettings,
        sleep: Callable[[float], None],
        say: Say,
    ) -> None:
        """`directories` are those for partitions, by path; one that cannot be read is offline."""
        self._disk = disk
        self._settings = settings
        self._say = say
        self._metadata_directory = metadata_directory
        self.offline: list[UUID] = []  # from the start
        self.data: list[LogDirectory] = []
        self._copies: dict[str, list[LogDirectory]] = {}  # that lie there, open or not
        self._homes: dict[str, LogDirectory] = {}  # of those that were placed
        self._never_synced: set[str] = set()  # of new logs
        self.found: tuple[FoundLog, ...] = tuple(self._scan(directories))
        known = {each.path: each for each in self.data}
        metadata = known.get(metadata_directory)
        self._homes[METADATA_LOG] = metadata or LogDirectory(disk, metadata_directory, ZERO_UUID)
        self._mark = SyncedMark(disk, self.path(METADATA_LOG), METADATA_LOG)
        self.snapshots = SnapshotFiles(disk, self.path(METADATA_LOG), sleep=sleep)

    def _scan(self, directories: Mapping[str, UUID]) -> Iterable[FoundLog]:
        for path, directory_id in directories.items():
            try:
                directory = LogDirectory(self._disk, path, directory_id)
                found = [directory.describe(log) for log in directory.names()]
            except CorruptFile:
                raise  # it can be mended, and says how
            except StorageError as error:
                if path == self._metadata_directory or len(directories) == 1:
                    raise
                self._say(f"directory offline path={path}: {error}")
                self.offline.append(directory_id)
                continue
            self.data.append(directory)
            for each in found:
                self._copies.setdefault(each.log, []).append(directory)
            yield from found

    # --- places -----------------------------------------------------------------------------

    def place(self, log: str, directory_id: UUID) -> LogDirectory | None:
        """Where `log` lies, or is to be created: there, if it can be. None: nowhere.

        Of several copies the one in `directory_id` is meant, else the first.
        """
        copies = [each for each in self._copies.get(log, ()) if not each.is_offline]
        online = [each for each in self.data if not each.is_offline]
        wanted = [each for each in copies or online if each.id == directory_id]
        if not wanted and not copies and directory_id.int:
            return None
        home = next(iter(wanted or copies or online), None)
        if home is not None:
            self._homes[log] = home
        return home

    def home(self, log: str) -> LogDirectory:
        return self._homes[log]

    def lies_in(self, log: str, home: LogDirectory) -> bool:
        """Was it placed there? A log that was only found, and is to be deleted, was not placed."""
        return self._homes.get(log) is home

    def path(self, log: str) -> str:
        return f"{self._homes[log].path}/{log}"

    # --- opening ----------------------------------------------------------------------------

    def open(
        self, log: str, topic_id: UUID, settings: LogSettings | None = None
    ) -> tuple[SegmentedLog, LogState]:
        """Recover or create. The state has the topic id that the directory has: it may belong to
        an earlier topic of the same name."""
        if log == METADATA_LOG:
            return self._open_metadata(topic_id)
        home, path = self._homes[log], self.path(log)
        home.take_mark_away()
        if self.is_new(log):
            home.forget(log)  # before its directory is there: it would be taken for the old one
        else:
            topic_id = self._recover_id(log, topic_id)
        self._set_copies_aside(log)
        recovered = open_log(
            self._disk,
            path,
            settings or self._settings.partitions,
            recovery_point=home.recovery_points.of(log),
            start_offset=home.log_starts.of(log),
            cleaned_offset=home.cleaned.of(log),
            was_closed=home.was_closed,
            say=self._say,
        )
        home.opened.add(log)
        if recovered.is_new:
            home.forget(log)
            self._disk.put(self._id_path(log), format_partition_metadata(topic_id))
            self._never_synced.add(log)
        else:  # other records may come in the place of what a power failure took
            home.lower_to(log, recovered.log.end_offset)
        home.recovery_points.raise_to(log, recovered.log.end_offset)
        return recovered.log, self._state(
            log,
            recovered,
            topic_id=topic_id,
            high_watermark=home.high_watermarks.of(log),
        )

    def _recover_id(self, log: str, topic_id: UUID) -> UUID:
        """Return the topic id of a log that was found, and make it as durable as the log itself.

        A process that made the log may have been killed before its first sync, or that sync may
        have failed: what is read back of the file may be in memory alone, so that it is replaced.
        """
        home = self._homes[log]
        found_id, is_noted = home.described_id(log), log in home.recovery_points
        if found_id is None and not is_noted and home.has_records(log):
            self._say(f"{self.path(log)} was never synced, and has lost its topic id: set aside")
            home.set_aside(log)
        elif found_id is None or not (is_noted or home.was_closed):
            home.sync_found()
            # Recovery syncs the directory later, unless the log was closed in order.
            self._save_id(log, found_id or topic_id, syncs_directory=home.was_closed)
        return found_id or topic_id

    def is_new(self, log: str) -> bool:
        """Is nothing there yet? Then to open it makes small files, and reads and syncs nothing."""
        return self._homes[log] not in self._copies.get(log, ())

    def _set_copies_aside(self, log: str) -> None:
        home = self._homes[log]
        for copy in self._copies.get(log, ()):
            if copy is not home and not copy.is_offline:
                self._say(f"{copy.path}/{log} is a copy of the one in {home.path}: set aside")
                try:
                    copy.set_aside(log)
                except StorageError:
                    self._homes[log] = copy  # it is this directory that has failed
                    raise
        self._copies[log] = [home]

    def _open_metadata(self, topic_id: UUID) -> tuple[SegmentedLog, LogState]:
        path = self.path(METADATA_LOG)
        found_id = self._homes[METADATA_LOG].topic_id(METADATA_LOG)
        recovered = open_log(
            self._disk,
            path,
            self._settings.metadata,
            recovery_point=self._mark.read(),
            reads_all=True,
            say=self._say,
        )
        self._mark.set(recovered.log.end_offset)
        self._disk.sync_directory(self._metadata_directory)
        was_reset, snapshots = self._recover_snapshots(recovered.log)
        if found_id is None:
            self._save_id(METADATA_LOG, topic_id, syncs_directory=False)  # it is always the same
        return recovered.log, self._state(
            METADATA_LOG,
            recovered,
            topic_id=found_id or topic_id,
            snapshots=snapshots,
            control_batches=() if was_reset else recovered.control_batches,
        )

    def _state(
        self,
        log: str,
        recovered: Recovered,
        *,
        topic_id: UUID,
        high_watermark: int = 0,
        snapshots: tuple[SnapshotFile, ...] = (),
        control_batches: tuple[bytes, ...] = (),
    ) -> LogState:
        segments = recovered.log
        latest = segments.epochs.latest
        return LogState(
            log=log,
            topic_id=topic_id,
            directory_id=self._homes[log].id,
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

    def _recover_snapshots(self, segments: SegmentedLog) -> tuple[bool, tuple[SnapshotFile, ...]]:
        """Whether the newest snapshot has replaced the log, and which there are.

        It does if it goes on where the log ends: then the process died between receiving it and
        beginning the log anew. Or before that was done: an empty log has the epochs of the old one.
        """
        found = self.snapshots.recover()
        newest = found[-1].id if found else _NOTHING
        latest = segments.epochs.latest
        end = OffsetAndEpoch(segments.end_offset, -1 if latest is None else latest.epoch)
        is_half_done = segments.start_offset == end.offset == newest.offset and end != newest
        is_replaced = newest.offset > 0 and (is_half_done or not end.is_at_least(newest))
        if is_replaced:
            self._say(f"the metadata log ends at {end}: beginning anew after {newest}")
            self.reset(METADATA_LOG, segments, newest)
        kept = tuple(file for file in found if file.id.offset >= segments.start_offset)
        self.snapshots.remove(file.id for file in found if file not in kept)
        if segments.start_offset > 0 and not kept:
            raise CorruptLog(
                f"{segments.directory} starts at offset {segments.start_offset}, but there is no"
                f" snapshot of what came before. {WAY_OUT}"
            )
        return is_replaced, kept

    def _id_path(self, log: str) -> str:
        return f"{self.path(log)}/{PARTITION_METADATA}"

    def _save_id(self, log: str, topic_id: UUID, *, syncs_directory: bool) -> None:
        content = format_partition_metadata(topic_id)
        self._disk.replace(self._id_path(log), content, syncs_directory=syncs_directory)

    def read_election(self, log: str) -> ElectionState:
        path = f"{self.path(log)}/{QUORUM_STATE}"
        content = self._disk.read_whole(path)
        return ElectionState() if content is None else parse_election(content, path)

    # --- while open -------------------------------------------------------------------------

    def sync(self, log: str, unsynced: Unsynced) -> None:
        for path in unsynced.paths:
            self._disk.sync(path)
        directory = unsynced.directory
        self._sync_new(log)
        if unsynced.epochs is not None:  # before the recovery point: recovery relies on it
            self._disk.replace(
                f"{self.path(log)}/{EPOCHS}",
                format_epochs(unsynced.epochs),
                syncs_directory=directory is None,
            )
        if directory is not None:
            self._disk.sync_directory(directory)
        if log == METADATA_LOG:
            self._mark.raise_to(unsynced.end_offset)
        else:
            self._homes[log].recovery_points.raise_to(log, unsynced.end_offset)

    def sync_all(self, log: str, segments: SegmentedLog) -> None:
        """For who owns `segments`: nothing is written meanwhile."""
        self.sync(log, segments.unsynced())
        segments.synced()

    def _sync_new(self, log: str) -> None:
        """Make a new log's topic id durable, and that it is there, with the first sync of it."""
        if log in self._never_synced:
            self._disk.sync(self._id_path(log))
            self._disk.forget(self._id_path(log))
            self._disk.sync_directory(self._homes[log].path)
            self._never_synced.discard(log)

    def carry_out(
        self, effect: Alone, segments: SegmentedLog | None, *, is_sync_due: bool
    ) -> tuple[SegmentedLog, LogState] | None:
        """For who owns `segments`. Returns what was opened."""
        log = effect.log
        if is_sync_due and segments is not None and not isinstance(effect, ResetLog | DeleteLog):
            self.sync_all(log, segments)
        match effect:
            case SaveElection():
                self.save_election(log, effect.election, effect.kraft_version)
            case OpenLog():
                assert segments is None, f"{log} is open"
                return self.open(log, effect.topic_id, effect.settings)
            case DeleteLog():
                self.delete(log, segments, is_stray=effect.is_stray)
            case _:
                assert segments is not None, f"{log} is not open: {effect}"
                self._rewrite(effect, segments)
        return None

    def _rewrite(self, effect: Truncate | ResetLog | Swap, segments: SegmentedLog) -> None:
        match effect:
            case Truncate():
                self.truncate(effect.log, segments, effect.end_offset)
                is_synced = effect.durability is Durability.SYNCED
                sync = self.sync_all if is_synced else self.sync_cut
                sync(effect.log, segments)
            case ResetLog():
                self.reset(effect.log, segments, effect.start)
            case Swap():
                self.swap(effect, segments)
            case _:
                assert_never(effect)

    def sync_cut(self, log: str, segments: SegmentedLog) -> None:
        """Let a truncation last before anything is appended in the place of what it cut off.

        Nobody may ask for that, and yet, where batches are of one size:
        1. The log has offsets 0 to 9 of epoch 1. It is truncated to 3.
        2. Offsets 3 to 9 of epoch 2 are appended: they lie where the old ones lay.
        3. The power fails. The shorter length is lost, and so are some sectors of what followed.
        4. The log has 0 to 5 of epoch 1, then 6 to 9 of epoch 2: a history that never was, in which
           every checksum, offset and epoch is in order.
        The same may happen to segments, whose names begin again with those that were removed.
        """
        self._sync_new(log)
        self._disk.sync(segments.active_path)
        self._disk.sync_directory(segments.directory)

    def save_election(self, log: str, election: ElectionState, kraft_version: int) -> None:
        version = min(kraft_version, ELECTION_VERSION_MAX)
        content = format_election(election, version=version, voters=self._settings.voters)
        self._disk.replace(f"{self.path(log)}/{QUORUM_STATE}", content)

    def truncate(self, log: str, segments: SegmentedLog, end_offset: int) -> None:
        if log == METADATA_LOG:
            self._mark.lower_to(end_offset)
        else:
            home = self._homes[log]  # the last batch that stays may end before `end_offset`
            home.recovery_points.lower_to(log, segments.segment_start(end_offset))
            home.lower_to(log, end_offset)
        segments.truncate(end_offset)

    def reset(self, log: str, segments: SegmentedLog, start: OffsetAndEpoch) -> None:
        """Durably. A crash on the way leaves a part of the old log, and what it is replaced by."""
        if log == METADATA_LOG:
            self._mark.lower_to(0)
        else:
            self._homes[log].forget(log)
        segments.reset(start)
        self.sync_all(log, segments)

    # --- compaction -------------------------------------------------------------------------

    def cleaned_to(self, log: str) -> int:
        return self._homes[log].cleaned.of(log)

    def note_cleaned(self, log: str, offset: int) -> None:
        self._homes[log].cleaned.set({topic_partition(log): offset})
        self._homes[log].cleaned.save()

    def round_of(
        self, segments: SegmentedLog, choice: Choice, order: CleaningOrder, *, workers: Workers
    ) -> Round:
        return Round.of(segments, choice, order, disk=self._disk, workers=workers)

    def swap(self, swap: Swap, segments: SegmentedLog) -> None:
        """Durably, unless the log has changed where it was read."""
        if not segments.has(swap.round.group):
            swap.cleaned.remove()
            return
        self.sync(swap.log, segments.unsynced_rolled())
        segments.synced()
        swap_in(self._disk, segments.directory, swap.cleaned, swap.round.group)
        segments.replace(swap.round.group, swap.cleaned)
        swap.round.replaced += swap.round.group

    # --- removing ---------------------------------------------------------------------------

    def remove(self, log: str, segments: Sequence[Segment]) -> None:
        """The files of segments that are no part of the log any more, the oldest first."""
        for segment in segments:
            segment.remove()
            self._disk.sync_directory(self.path(log))

    def save_start(self, log: str, start_offset: int) -> None:
        """For a start inside a segment; the metadata log's is that of its snapshot."""
        if log != METADATA_LOG:
            self._homes[log].log_starts.raise_to(log, start_offset)
            self._homes[log].log_starts.save()

    def delete(self, log: str, segments: SegmentedLog | None, *, is_stray: bool = False) -> None:
        """One that is not open goes with all its copies."""
        if segments is not None:
            segments.forget()
        for copy in {id(each): each for each in self._places(log)}.values():
            if not copy.is_offline:
                self._homes[log] = copy  # if that fails, it is this directory that has failed
                copy.set_aside(log) if is_stray else copy.delete(log)
        self._copies.pop(log, None)
        self._never_synced.discard(log)

    def forget(self, log: str) -> None:
        """Where a deleted log was; any other is kept in mind."""
        if log != METADATA_LOG and log not in self._copies:
            self._homes.pop(log, None)

    def _places(self, log: str) -> list[LogDirectory]:
        home = self._homes.get(log)
        return [*self._copies.get(log, ()), *([] if home is None else [home])]

    # --- directories ------------------------------------------------------------------------

    def remove_deleted(self) -> None:
        for directory in self.data:
            directory.remove_deleted()

    def save_recovery_points(self) -> None:
        for directory in self.data:
            if not directory.is_offline:
                directory.recovery_points.save()

    def set_high_watermarks(
        self, entries: Iterable[tuple[str, int, int]]
    ) -> list[OffsetCheckpoint]:
        """Each directory gets those of the logs that lie there; returns what is to be saved."""
        online = [each for each in self.data if not each.is_offline]
        by_home: dict[str, dict[tuple[str, int], int]] = {each.path: {} for each in online}
        for topic, partition, offset in entries:
            home = self._homes.get(f"{topic}-{partition}")
            if home is not None and home.path in by_home:
                by_home[home.path][topic, partition] = offset
        for each in online:
            each.high_watermarks.set(by_home[each.path])
        return [each.high_watermarks for each in online]

    def close(self, log: str, segments: SegmentedLog) -> None:
        """Everything on the medium, files trimmed, indexes written."""
        segments.finish()
        self.sync_all(log, segments)
        try:
            segments.write_producers()
        except StorageError as error:  # the next start reads the log for them
            self._say(f"the producers of {log} are not noted: {error}")
        segments.forget()
