"""Following a log as it grows: files are listed again, a live quorum is asked.

Files show what a node has written, which may not be committed yet; a live quorum shows only what
is. The log before the starting point is replayed once, so that topics are known by name. Where a
node truncates its log, or goes on from a snapshot, that is told, and then what follows.
"""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from controller.metadata.image import MetadataImage
from jepsen_like.real.client_settings import PLAIN, ClientSettings
from jepsen_like.real.layout import ClusterError
from quorumlab.inspection.batches import Batch, Damage, read_batches
from quorumlab.inspection.entries import TopicNames
from quorumlab.inspection.live import LiveLog
from quorumlab.inspection.states import Moment, replay
from quorumlab.inspection.stream import opened, segments_from
from quorumlab.inspection.target import Address, Target, find_target, listed_again
from wire.batch import HEADER_BYTES, BatchHeader, CorruptBatch, read_header

__all__ = ["follow"]

_LOOK_AGAIN_SECONDS = 0.2
_REMEMBERED = 10_000  # batches; a truncation that goes back further is told from the oldest on


def follow(
    text: str,
    names: TopicNames,
    *,
    starts_at: int | None,
    settings: ClientSettings = PLAIN,
) -> Iterator[Batch | Damage]:
    """Yields for ever, from the batch with offset `starts_at`, or from the end as it is now."""
    moment = Moment() if starts_at is None else Moment(offset=starts_at - 1)
    with opened(text, settings) as files:
        before = replay(files, moment).image
    names.learn_topics(before)
    target = find_target(text, settings)
    if isinstance(target, Address):
        return _follow_live(target, before)
    if not target.segments and target.log_directory is None:
        raise ClusterError(f"{text} is a snapshot, which never grows: follow its directory")
    return _follow_files(target, before.at.offset if starts_at is None else starts_at)


def _follow_live(address: Address, before: MetadataImage) -> Iterator[Batch]:
    live = LiveLog(address)
    live.position = before.at
    while True:
        yield from live.batches()


def _follow_files(target: Target, next_offset: int) -> Iterator[Batch | Damage]:
    """Each segment is read once, and the newest one from where it ended."""
    seen: deque[_Seen] = deque(maxlen=_REMEMBERED)
    while True:
        lost = _pop_lost(seen, target)
        if lost is not None:
            next_offset = lost.header.base_offset
            yield _told(lost, next_offset, "the log was truncated here, and goes on otherwise")
        for found in _behind(target, seen[-1] if seen else None, next_offset):
            if isinstance(found, Damage):
                if not found.is_tail:  # at the tail a batch is being written
                    yield found
                continue
            header = found.header
            seen.append(_Seen(found.path, found.position, header))
            if found.position == 0 and header.base_offset > next_offset:
                problem = (
                    f"the log goes on with offset {header.base_offset}: a snapshot has the rest"
                )
                yield _told(seen[-1], next_offset, problem)
            if header.next_offset > next_offset:
                next_offset = header.next_offset
                yield found
        time.sleep(_LOOK_AGAIN_SECONDS)
        target = listed_again(target)


class _Seen(NamedTuple):
    """A batch without its content."""

    path: Path
    position: int
    header: BatchHeader


def _told(where: _Seen, offset: int, problem: str) -> Damage:
    return Damage(path=where.path, position=where.position, offset=offset, problem=problem)


def _pop_lost(seen: deque[_Seen], target: Target) -> _Seen | None:
    """Take away the batches that were truncated since; the first of them."""
    lost = None
    while seen and not _is_there(seen[-1], target):
        lost = seen.pop()
    return lost


def _is_there(batch: _Seen, target: Target) -> bool:
    """A batch also counts as there if a snapshot has replaced its segment."""
    if batch.path not in target.segments:
        return batch.path < target.segments[0]
    try:
        with batch.path.open("rb") as file:
            file.seek(batch.position)
            return read_header(file.read(HEADER_BYTES)) == batch.header
    except CorruptBatch:
        return False
    except FileNotFoundError:  # removed just now: the next look tells why
        return True


def _behind(target: Target, last: _Seen | None, next_offset: int) -> Iterator[Batch | Damage]:
    """Reads what is in the segments behind the last batch that was seen."""
    for segment in segments_from(target.segments, next_offset):
        position = 0
        if last is not None and segment == last.path:
            position = last.position + last.header.size_bytes
        with suppress(FileNotFoundError):  # a running node has just removed it
            yield from read_batches(segment, position)
