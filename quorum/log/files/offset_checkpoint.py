"""One offset for each log of a data directory, in one file that is replaced as a whole.

    recovery-point-offset-checkpoint    up to where a log was synced (see `recovery_points`)
    log-start-offset-checkpoint         where it starts, if that is inside a segment
    replication-offset-checkpoint       its high watermark

A raised offset is written with the next `save`, since the lower one on disk stays true. An offset
that is lowered or forgotten is written before the call returns: one that is too high is wrong.
To raise a few of many offsets costs as much as those few, until the file is written.

Source: Kafka's OffsetCheckpointFile.
"""

from collections.abc import Mapping
from threading import Lock

from quorum.log.files.checkpoints import format_offsets, parse_offsets
from quorum.log.files.disk import Disk

__all__ = ["OffsetCheckpoint", "topic_partition"]


def topic_partition(log: str) -> tuple[str, int]:
    """A log is named <topic>-<partition>."""
    topic, _, partition = log.rpartition("-")
    assert topic, log
    assert partition.isdecimal(), log
    return topic, int(partition)


class OffsetCheckpoint:
    """Used from several threads."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        content = disk.read_whole(path)
        self._offsets = dict(parse_offsets(content, path)) if content is not None else {}
        self._is_sorted = False  # `_offsets` is, by topic and partition
        self._in_file = dict(self._offsets)  # the highest of each that the file may have
        self._raised: set[tuple[str, int]] = set()  # may be higher than in the file
        self._version = 0  # of the offsets in memory
        self._version_saved = 0
        self._lock = Lock()
        self._saving = Lock()

    def of(self, log: str) -> int:
        return self._offsets.get(topic_partition(log), 0)

    def __contains__(self, log: str) -> bool:
        return topic_partition(log) in self._offsets

    def raise_to(self, log: str, offset: int) -> None:
        """Written with the next `save`."""
        key = topic_partition(log)
        with self._lock:
            if offset > self._offsets.get(key, 0):
                self._set(key, offset)

    def set(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Set these offsets; those of other logs stay. They are written with the next `save`."""
        with self._lock:
            for key, offset in offsets.items():
                if self._offsets.get(key) != offset:
                    self._set(key, offset)

    def _set(self, key: tuple[str, int], offset: int) -> None:
        self._is_sorted = self._is_sorted and key in self._offsets
        self._offsets[key] = offset
        self._raised.add(key)
        self._version += 1

    def lower_to(self, log: str, offset: int) -> None:
        """Lower the offset durably, also in the file."""
        with self._lock:
            key = topic_partition(log)
            known = self._offsets.get(key, 0)
            if offset < known:
                self._offsets[key] = offset
            is_lower = offset < max(known, self._in_file.get(key, 0))
            self._version += is_lower
        if is_lower:
            self.save()

    def forget(self, log: str) -> None:
        """Forget the offset durably: a topic of the same name begins at 0 again."""
        with self._lock:
            key = topic_partition(log)
            is_known = self._offsets.pop(key, None) is not None or key in self._in_file
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
                if not self._is_sorted:
                    self._offsets, self._is_sorted = dict(sorted(self._offsets.items())), True
                version, offsets = self._version, dict(self._offsets)
                for key in self._raised & offsets.keys():
                    self._in_file[key] = max(offsets[key], self._in_file.get(key, 0))
                self._raised.clear()
            self._disk.replace(self._path, _format(offsets))
            with self._lock:
                self._in_file = offsets
            self._version_saved = version


def _format(offsets: Mapping[tuple[str, int], int]) -> bytes:
    return format_offsets(
        (topic, partition, offset) for (topic, partition), offset in offsets.items()
    )
