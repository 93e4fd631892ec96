"""A log that an orderly stop has left is taken as it is: only its end is looked at.

The stop has synced all of it, written the indexes, and noted where it ends and which producers
wrote it. So a broker starts in the same time, however much its partitions hold. Where anything is
not as the stop should have left it, the log is read (`recovery`), which says what is wrong. That is
also done where the end of a log is small: then no producers were noted.

Source: Kafka's LogLoader, which after a clean shutdown skips recovery and loads the snapshot.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from quorum.core.producers import ProducerEntry, observe
from quorum.core.storage import StorageError
from quorum.log.epochs import EpochCache
from quorum.log.files.disk import Disk
from quorum.log.files.producer_snapshot import parse_producers, producers_path
from quorum.log.files.segment import Segment
from wire.batch import is_intact

__all__ = ["resume", "take_producers"]

_PRODUCERS_NAME = re.compile(r"\d{20}\.snapshot")
_READ_BYTES = 1 << 20  # at the end: whoever wrote it may have several batches in flight


def take_producers(
    disk: Disk, directory: str, names: Sequence[str], *, end_offset: int
) -> tuple[ProducerEntry, ...] | None:
    """Those of a log that ends there, if they were noted. They are never taken twice: the log may
    be cut off, and grow to the same end with other records."""
    paths = [f"{directory}/{name}" for name in names if _PRODUCERS_NAME.fullmatch(name)]
    noted = producers_path(directory, end_offset)
    content = disk.read_whole(noted) if noted in paths else None
    for path in paths:
        disk.remove(path)
    return None if content is None else parse_producers(content)


def resume(
    disk: Disk,
    segments: Sequence[Segment],
    epochs: EpochCache,
    noted: Sequence[ProducerEntry],
    *,
    end_offset: int,
) -> dict[int, ProducerEntry] | None:
    """Open `segments` as they are; the producers by id. None if they are not as they were left.

    Of the producers that were noted the last batch is known. Whoever wrote the end of the log may
    have several in flight, and has those there.
    """
    for segment, following in pairwise(segments):
        segment.adopt(size_bytes=disk.size(segment.path), end_offset=following.base_offset)
    active = segments[-1]
    if not active.resume(size_bytes=disk.size(active.path), end_offset=end_offset):
        return None
    producers = {entry.producer_id: entry for entry in noted}
    recent: dict[int, ProducerEntry] = {}
    for segment, bytes_max in _last_of(segments):
        if not _observe_end(segment, bytes_max, epochs, recent):
            return None
    return producers | recent


def _last_of(segments: Sequence[Segment]) -> list[tuple[Segment, int]]:
    """The segments that are to be read, and how much at the end of each."""
    last: list[tuple[Segment, int]] = []
    left = _READ_BYTES
    for segment in reversed(segments):
        last.append((segment, left))
        left -= segment.size_bytes
        if left <= 0:
            break
    return last[::-1]


def _observe_end(
    segment: Segment, bytes_max: int, epochs: EpochCache, producers: dict[int, ProducerEntry]
) -> bool:
    """Tell `producers` of the last batches. False if they are not sound, or end elsewhere."""
    end_position, next_offset = 0, segment.base_offset
    try:
        for position, header, batch in segment.last_batches(bytes_max):
            is_next = header.base_offset >= next_offset and is_intact(batch, 0, header)
            if not is_next or epochs.epoch_at(header.base_offset) != header.leader_epoch:
                return False
            observe(producers, header)
            end_position, next_offset = position + header.size_bytes, header.next_offset
    except StorageError:
        return False
    return (end_position, next_offset) == (segment.size_bytes, segment.end_offset)
