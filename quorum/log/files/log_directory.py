"""One data directory: the partition logs in it, their checkpoints, and the mark of an orderly stop.

    <topic>-<partition>/                    a partition's log
    <topic>-<partition>.<32 hex>-delete/    a deleted log, whose files are being removed
    <topic>-<partition>.<32 hex>-stray/     a log that the metadata does not know, kept for people
    .kafka_cleanshutdown                    the last process that opened a log here stopped in order

The mark of an orderly stop says that the logs are as the process with its broker epoch left them.
It is removed before the first log is opened, not when a process starts: a process that ends before
it has registered has changed no log, however it ends, and the mark is as true as before. Where
there was none, it comes back only when every log has been opened, and so synced.

Two copies of a partition's log may lie in two directories: one failed, the partition was created
again in the other, and the first came back.

Source: Kafka's LogManager (`loadLogs` deletes the mark) and LogDirFailureChannel; KIP-966.
"""

import re
from threading import Lock
from uuid import UUID, uuid4

from quorum.core.log_state import FoundLog
from quorum.core.storage import METADATA_LOG
from quorum.log.files.checkpoints import (
    CLEAN_SHUTDOWN,
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    LOG_STARTS,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    CorruptFile,
    clean_shutdown_epoch,
    format_clean_shutdown,
    parse_clean_shutdown,
    parse_partition_metadata,
)
from quorum.log.files.disk import Disk
from quorum.log.files.offset_checkpoint import OffsetCheckpoint, topic_partition
from wire.primitives import ZERO_UUID

__all__ = ["LogDirectory"]

_LOG_NAME = re.compile(r"[A-Za-z0-9._-]+-\d+")
_DELETED_SUFFIX = "-delete"
_STRAY_SUFFIX = "-stray"
_DELETED_NAME = re.compile(rf".+\.[0-9a-f]{{32}}{_DELETED_SUFFIX}")
_NAME_MAX = 255  # of a file, on Linux; a topic's name may have 249 already


class LogDirectory:
    """Raises `StorageError` if it cannot be used."""

    def __init__(self, disk: Disk, path: str, directory_id: UUID) -> None:
        self._disk = disk
        self.path = path
        self.id = directory_id
        self.is_offline = False
        self.recovery_points = OffsetCheckpoint(disk, f"{path}/{RECOVERY_POINTS}")
        self.log_starts = OffsetCheckpoint(disk, f"{path}/{LOG_STARTS}")
        self.high_watermarks = OffsetCheckpoint(disk, f"{path}/{HIGH_WATERMARKS}")
        self.cleaned = OffsetCheckpoint(disk, f"{path}/{CLEANED_OFFSETS}")
        self._checkpoints = (
            self.recovery_points,
            self.log_starts,
            self.high_watermarks,
            self.cleaned,
        )
        self._mark = f"{path}/{CLEAN_SHUTDOWN}"
        mark = disk.read_whole(self._mark)
        self._marked_epoch = None if mark is None else parse_clean_shutdown(mark)
        self.was_closed = mark is not None  # in order, by the last process that opened a log here
        self.opened: set[str] = set()  # the logs that this process has recovered
        self._described: dict[str, UUID | None] = {}  # topic ids of logs that were not opened yet
        self._is_found_synced = False
        self._marking = Lock()

    # --- the mark of an orderly stop ----------------------------------------------------------

    def take_mark_away(self) -> None:
        """Remove the mark durably, before a log is opened, renamed or deleted.

        Called from several threads.
        """
        with self._marking:
            if self._marked_epoch is not None:
                self._disk.remove(self._mark)
                self._disk.sync_directory(self.path)
                self._marked_epoch = None

    def sync_found(self) -> None:
        """Make it durable, once, that the logs are there which an earlier process has made.

        Called from several threads.
        """
        with self._marking:
            if not self._is_found_synced:
                self._disk.sync_directory(self.path)
                self._is_found_synced = True

    def leave_mark(self, broker_epoch: int) -> None:
        """Leave the mark at an orderly stop, unless a log here is as a killed process left it."""
        if not self.was_closed and not self.opened.issuperset(self.names()):
            return
        epoch = clean_shutdown_epoch(self._marked_epoch, broker_epoch)
        if epoch != self._marked_epoch:
            self._disk.replace(self._mark, format_clean_shutdown(epoch))

    # --- the logs -----------------------------------------------------------------------------

    def names(self) -> list[str]:
        """The partition logs that are there, open or not."""
        found = self._disk.names(self.path)
        return [n for n in found if _LOG_NAME.fullmatch(n) and n != METADATA_LOG]

    def describe(self, log: str) -> FoundLog:
        topic_id = self._described[log] = self.topic_id(log)
        return FoundLog(log=log, topic_id=topic_id or ZERO_UUID, directory_id=self.id)

    def described_id(self, log: str) -> UUID | None:
        """The same as `topic_id`, once without reading it again after `describe`."""
        return self._described.pop(log) if log in self._described else self.topic_id(log)

    def topic_id(self, log: str) -> UUID | None:
        """None without a file, or where it is damaged and nothing has promised that it is not.

        A new log's file is not synced, and not written in one step: until the log has a recovery
        point, a crash may have left anything of it.
        """
        path = f"{self.path}/{log}/{PARTITION_METADATA}"
        try:
            return parse_partition_metadata(self._disk.read_whole(path), path)
        except CorruptFile:
            if log == METADATA_LOG or log in self.recovery_points:
                raise
            return None

    def has_records(self, log: str) -> bool:
        path = f"{self.path}/{log}"
        segments = [name for name in self._disk.names(path) if name.endswith(".log")]
        return any(self._disk.size(f"{path}/{name}") for name in segments)

    def delete(self, log: str) -> None:
        """Rename the log first, so that its name is free before its files are removed."""
        doomed = self._rename(log, _DELETED_SUFFIX)
        if doomed is not None:
            self._disk.remove_tree(doomed)

    def set_aside(self, log: str) -> None:
        self._rename(log, _STRAY_SUFFIX)

    def _rename(self, log: str, suffix: str) -> str | None:
        """The new path; None if the log is not there. Its checkpoints are forgotten."""
        if log not in self._disk.names(self.path):
            return None
        self.take_mark_away()
        self._described.pop(log, None)
        topic, partition = topic_partition(log)
        rest = f"-{partition}.{uuid4().hex}{suffix}"
        renamed = f"{self.path}/{topic[: _NAME_MAX - len(rest)]}{rest}"
        self._disk.rename(f"{self.path}/{log}", renamed)
        self.forget(log)
        return renamed

    def forget(self, log: str) -> None:
        """Forget its checkpoints durably: a topic of the same name begins anew."""
        for checkpoint in self._checkpoints:
            checkpoint.forget(log)

    def lower_to(self, log: str, end_offset: int) -> None:
        """Lower its checkpoints durably, before it is truncated."""
        for checkpoint in self._checkpoints:
            checkpoint.lower_to(log, end_offset)

    def remove_deleted(self) -> None:
        """Remove the deleted logs whose files an earlier process has left."""
        for name in self._disk.names(self.path):
            if _DELETED_NAME.fullmatch(name):
                self._disk.remove_tree(f"{self.path}/{name}")
