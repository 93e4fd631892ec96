"""Up to where a log is known to be on the medium: the line between a torn tail and a corrupt file.

Below its recovery point every byte of a log has been synced, so damage there is damage to records
that may have been acknowledged. Behind it damage is what a power failure leaves of writes that
nobody was told of. `quorum.recovery` refuses the one and cuts off the other.

A recovery point may be lower than the truth, never higher. Hence it is lowered durably *before* a
log is truncated, and raised only *after* a sync.

`SyncedMark` serves the metadata log, which is synced thousands of times a second: one small file
beside the segments, of fixed length, overwritten in place after every sync and not synced itself.
It reaches the medium within the kernel's half minute, or later, and is true whenever it does.

`RecoveryPoints` serves partition logs, which are synced when a segment is rolled and at an orderly
stop: Kafka's recovery-point-offset-checkpoint, all logs of the directory in one file.
"""

from collections.abc import Mapping
from threading import Lock

from quorum.checkpoints import RECOVERY_POINTS, CorruptFile, format_offsets, parse_offsets
from quorum.disk import Disk

__all__ = ["RecoveryPoints", "SyncedMark", "topic_partition"]


def topic_partition(log: str) -> tuple[str, int]:
    """A log is named <topic>-<partition>."""
    topic, _, partition = log.rpartition("-")
    assert topic, log
    assert partition.isdecimal(), log
    return topic, int(partition)


class SyncedMark:
    """The recovery point of one log, in the log's own directory."""

    def __init__(self, disk: Disk, directory: str, log: str) -> None:
        self._disk = disk
        self._path = f"{directory}/{RECOVERY_POINTS}"
        self._topic, self._partition = topic_partition(log)
        self._offset = -1

    def read(self) -> int | None:
        """None if it was never written, as in a directory of Kafka's."""
        content = self._disk.read_whole(self._path)
        if content is None:
            return None
        offset = parse_offsets(content, self._path).get((self._topic, self._partition))
        if offset is None:
            raise CorruptFile(self._path, 3, f"a line for {self._topic} expected")
        return offset

    def set(self, offset: int) -> None:
        """Durably; creates the file."""
        self._disk.replace(self._path, self._format(offset))
        self._offset = offset

    def raise_to(self, offset: int) -> None:
        """After a sync. Not durable at once, and need not be."""
        if offset > self._offset:
            self._disk.write(self._path, self._format(offset), position=0)
            self._offset = offset

    def lower_to(self, offset: int) -> None:
        """Durably, before a truncation."""
        if offset < self._offset:
            self._disk.write(self._path, self._format(offset), position=0)
            self._disk.sync(self._path)
            self._offset = offset

    def _format(self, offset: int) -> bytes:
        # Leading zeros keep the length: the write stays inside the one sector that it began with.
        return b"0\n1\n%b %d %019d\n" % (self._topic.encode(), self._partition, offset)


class RecoveryPoints:
    """Those of all partition logs of a data directory. Used from several threads."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._path = f"{directory}/{RECOVERY_POINTS}"
        content = disk.read_whole(self._path)
        self._points = dict(parse_offsets(content, self._path)) if content is not None else {}
        self._version = 0  # of the points in memory
        self._version_saved = 0
        self._lock = Lock()
        self._saving = Lock()

    def of(self, log: str) -> int:
        return self._points.get(topic_partition(log), 0)

    def raise_to(self, log: str, offset: int) -> None:
        """After a sync; written with the next `save`."""
        with self._lock:
            key = topic_partition(log)
            if offset > self._points.get(key, 0):
                self._points[key] = offset
                self._version += 1

    def lower_to(self, log: str, offset: int) -> None:
        """Durably, before a truncation."""
        with self._lock:
            key = topic_partition(log)
            is_lower = offset < self._points.get(key, 0)
            if is_lower:
                self._points[key] = offset
                self._version += 1
        if is_lower:
            self.save()

    def forget(self, log: str) -> None:
        """Durably: a topic of the same name begins at 0 again."""
        with self._lock:
            is_known = self._points.pop(topic_partition(log), None) is not None
            self._version += is_known
        if is_known:
            self.save()

    def save(self) -> None:
        """Write the file if it is behind. Of callers that come together one writes for all."""
        with self._lock:
            wanted = self._version
        with self._saving:
            if self._version_saved >= wanted:
                return
            with self._lock:
                version, points = self._version, dict(self._points)
            self._disk.replace(self._path, _format_points(points))
            self._version_saved = version


def _format_points(points: Mapping[tuple[str, int], int]) -> bytes:
    return format_offsets(
        (topic, partition, offset) for (topic, partition), offset in sorted(points.items())
    )
