"""Following a log as it grows: files by looking again, a live quorum by asking it.

From files one sees what a node has written, which may not be committed yet; from a live quorum only
what is. What came before is replayed once, so that topics are known by name.
"""

import time
from collections.abc import Iterator
from pathlib import Path

from controller.metadata.image import MetadataImage
from jepsen_like.real.layout import ClusterError
from quorumlab.inspection.batches import Batch, Damage, read_batches
from quorumlab.inspection.live import LiveLog
from quorumlab.inspection.states import Moment, replay
from quorumlab.inspection.stream import segments_from
from quorumlab.inspection.target import Address, Target, find_target, listed_again, opened
from quorumlab.inspection.telling import TopicNames

__all__ = ["follow"]

_LOOK_AGAIN_SECONDS = 0.2


def follow(text: str, names: TopicNames, *, starts_at: int | None) -> Iterator[Batch | Damage]:
    """For ever. From offset `starts_at` on, or from the end as it is now."""
    moment = Moment() if starts_at is None else Moment(offset=starts_at - 1)
    with opened(text) as files:
        before = replay(files, moment).image
    names.learn_topics(before)
    target = find_target(text)
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
    positions: dict[Path, int] = {}
    while True:
        for segment in segments_from(target.segments, next_offset):
            for found in read_batches(segment, positions.get(segment, 0)):
                if isinstance(found, Batch):
                    positions[segment] = found.position + found.header.size_bytes
                    if found.header.next_offset > next_offset:
                        next_offset = found.header.next_offset
                        yield found
                elif not found.is_tail:  # at the tail a batch is being written
                    yield found
        time.sleep(_LOOK_AGAIN_SECONDS)
        target = listed_again(target)
