"""Up to where a log is known to be on the medium: the line between a torn tail and a corrupt file.

Below its recovery point every byte of a log has been synced, so damage there is damage to records
that may have been acknowledged. Behind it damage is what a power failure leaves of writes that
nobody was told of. `quorum.log.files.recovery` refuses the one and cuts off the other.

A recovery point may be lower than the truth, never higher. Hence it is lowered durably *before* a
log is truncated, and raised only *after* a sync.

`SyncedMark` serves the metadata log, which is synced thousands of times a second: one small file
beside the segments, of fixed length, overwritten in place after every sync and not synced itself.
It reaches the medium within the kernel's half minute, or later, and is true whenever it does.

Partition logs are synced when a segment is rolled and at an orderly stop. Theirs stand in Kafka's
recovery-point-offset-checkpoint, all of a directory in one file
(`quorum.log.files.offset_checkpoint`).
"""

from quorum.log.files.checkpoints import RECOVERY_POINTS, CorruptFile, parse_offsets
from quorum.log.files.disk import Disk
from quorum.log.files.offset_checkpoint import topic_partition

__all__ = ["SyncedMark"]


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
