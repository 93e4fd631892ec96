"""A log that an orderly stop has left is taken as it is: only its end is looked at.

The stop has synced all of it, written the indexes, and noted where it ends and which producers
wrote it. So a broker starts in the same time, however much its partitions hold. Where anything is
not as the stop should have left it, the log is read (`recovery`), which says what is wrong. So it
is where no producers were noted: such a log has none, and its end is small.

Source: Kafka's LogLoader, which after a clean shutdown skips recovery and loads the snapshot.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from quorum.core.producers import ProducerEntry
from quorum.core.storage import StorageError
from quorum.log.epochs import EpochCache
from quorum.log.files.disk import Disk
from quorum.log.files.producer_snapshot import parse_producers, producers_path
from quorum.log.files.segment import Segment
from quorum.log.open_transactions import only_open
from wire.batch import BatchHeader, is_intact

__all__ = ["adopt_snapshots", "resume", "take_producers"]

_PRODUCERS_NAME = re.compile(r"\d{20}\.snapshot")


def take_producers(
    disk: Disk, directory: str, names: Sequence[str], *, end_offset: int
) -> dict[int, ProducerEntry] | None:
    """Those that were noted of a log that ends there, by id; None if none were.

    They are never taken twice: the log may be cut off, and grow to the same end with other records.
    """
    paths = [f"{directory}/{name}" for name in names if _PRODUCERS_NAME.fullmatch(name)]
    wanted = producers_path(directory, end_offset)
    content = disk.read_whole(wanted) if wanted in paths else None
    for path in paths:
        disk.remove(path)
    return None if content is None else parse_producers(content)


def adopt_snapshots(
    disk: Disk, directory: str, names: Sequence[str], segments: Sequence[Segment]
) -> None:
    """Kafka has noted all producers where each segment begins: keep those with open transactions.

    What an earlier process of ours has noted there counts no longer.
    """
    snapshots = {f"{directory}/{name}" for name in names if _PRODUCERS_NAME.fullmatch(name)}
    for segment in segments:
        path = producers_path(directory, segment.base_offset)
        if path in snapshots:
            producers = parse_producers(disk.read_whole(path) or b"") or {}
            if segment.transactions.put_open(only_open(producers.values())):
                for changed in segment.transactions.take_unsynced():
                    disk.sync(changed)
                disk.sync_directory(directory)


def resume(disk: Disk, segments: Sequence[Segment], epochs: EpochCache, *, end_offset: int) -> bool:
    """Open `segments` as they are. False if they are not as they were left: read them then.

    A batch is whole, and in its place; so the last two segments have all their batches if they end
    where they should. Those before them are trusted in any case.
    """
    for segment, following in pairwise(segments):
        segment.adopt(size_bytes=disk.size(segment.path), end_offset=following.base_offset)
        if not segment.has_index_files():
            return False
    active = segments[-1]
    if not active.resume(size_bytes=disk.size(active.path), end_offset=end_offset):
        return False
    found: list[BatchHeader] = []
    for segment in segments[-2:]:
        headers = _last_headers(segment)
        if headers is None:
            return False
        found += headers
    if found and epochs.epoch_at(found[-1].last_offset) != found[-1].leader_epoch:
        return False
    epochs.truncate(end_offset)  # Kafka's has the epoch of a leader that wrote nothing yet
    return True


def _last_headers(segment: Segment) -> list[BatchHeader] | None:
    """Return the headers of the batches behind its last index entry.

    None if these are not whole and in their order, or do not end where the segment should.
    """
    position, next_offset = 0, segment.base_offset
    found = []
    try:
        for at, header, batch in segment.last_batches():
            is_timed = header.max_timestamp_ms <= segment.max_timestamp_ms()
            if header.base_offset < next_offset or not is_timed or not is_intact(batch, 0, header):
                return None
            position, next_offset = at + header.size_bytes, header.next_offset
            found.append(header)
    except StorageError:
        return None
    finally:
        segment.drop_cache()
    is_end = (position, next_offset) == (segment.size_bytes, segment.end_offset)
    return found if is_end else None
