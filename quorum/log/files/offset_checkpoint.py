"""One offset for each log of a data directory, in one file that is replaced as a whole.

    recovery-point-offset-checkpoint    up to where a log was synced (see `recovery_points`)
    log-start-offset-checkpoint         where it starts, if that is inside a segment
    replication-offset-checkpoint       its high watermark
    cleaner-offset-checkpoint           up to where it is compacted

A raised offset is written with the next `save`, since the lower one on disk stays true. An offset
that is lowered or forgotten is written before the call returns: one that is too high is wrong.
To raise a few of many offsets costs as much as those few. When the file is written, the lines of
the others are joined as they are, since to format 30,000 again takes 13 ms.

Source: Kafka's OffsetCheckpointFile.
"""

from collections.abc import Iterable, Mapping
from threading import Lock

from quorum.log.files.checkpoints import format_offsets, offset_line, parse_offsets
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
        self._in_file = dict(self._offsets)  # the highest of each that the file may have
        self._changed = dict.fromkeys(self._offsets)  # since `_lines` were as they should be
        self._lines: dict[tuple[str, int], str] = {}  # sorted; only who saves uses them
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
        self._offsets[key] = offset
        self._changed[key] = None
        self._version += 1

    def lower_to(self, log: str, offset: int) -> None:
        """Lower the offset durably, also in the file."""
        with self._lock:
            key = topic_partition(log)
            known = self._offsets.get(key, 0)
            if offset < known:
                self._offsets[key] = offset
                self._changed[key] = None
            is_lower = offset < max(known, self._in_file.get(key, 0))
            self._version += is_lower
        if is_lower:
            self.save()

    def forget(self, log: str) -> None:
        """Forget the offset durably: a topic of the same name begins at 0 again."""
        with self._lock:
            key = topic_partition(log)
            is_known = self._offsets.pop(key, None) is not None or key in self._in_file
            self._changed[key] = None
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
                version, offsets = self._version, dict(self._offsets)
                changed, self._changed = self._changed, {}
                for key in changed:
                    if key in offsets:
                        self._in_file[key] = max(offsets[key], self._in_file.get(key, 0))
            self._change_lines(changed, offsets)
            self._disk.replace(self._path, format_offsets(self._lines.values()))
            with self._lock:
                self._in_file = offsets
            self._version_saved = version

    def _change_lines(
        self, changed: Iterable[tuple[str, int]], offsets: Mapping[tuple[str, int], int]
    ) -> None:
        lines, are_sorted = self._lines, True
        for key in changed:
            offset = offsets.get(key)
            if offset is None:
                lines.pop(key, None)
            else:
                are_sorted = are_sorted and key in lines
                lines[key] = offset_line(*key, offset)
        if not are_sorted:
            self._lines = dict(sorted(lines.items()))
