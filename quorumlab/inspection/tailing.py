"""Following a log as it grows: files by looking again, a live quorum by asking it.

From files one sees what a node has written, which may not be committed yet; from a live quorum only
what is.
"""

import time
from collections.abc import Iterator

from quorumlab.inspection.batches import Batch, Damage
from quorumlab.inspection.live import LiveLog
from quorumlab.inspection.stream import log_batches
from quorumlab.inspection.target import Address, Target, find_target

__all__ = ["follow"]

_LOOK_AGAIN_SECONDS = 0.2


def follow(text: str, *, starts_at: int | None) -> Iterator[Batch | Damage]:
    """For ever. From offset `starts_at` on, or from the end as it is now."""
    target = find_target(text)
    if isinstance(target, Address):
        yield from _follow_live(target, starts_at)
    else:
        yield from _follow_files(text, target, starts_at)


def _follow_live(address: Address, starts_at: int | None) -> Iterator[Batch]:
    live = LiveLog(address)
    live.discover()
    if starts_at is None:
        live.skip_to_end()
    while True:
        for batch in live.batches():
            if starts_at is None or batch.header.next_offset > starts_at:
                yield batch


def _follow_files(text: str, target: Target, starts_at: int | None) -> Iterator[Batch | Damage]:
    next_offset = _end_of(target) if starts_at is None else starts_at
    while True:
        for found in log_batches(target.segments, starts_at=next_offset):
            if isinstance(found, Batch):
                next_offset = found.header.next_offset
                yield found
            elif not found.is_tail:  # at the tail a batch is being written
                yield found
        time.sleep(_LOOK_AGAIN_SECONDS)
        again = find_target(text)
        assert isinstance(again, Target), again
        target = again


def _end_of(target: Target) -> int:
    end = 0
    for found in log_batches(target.segments[-1:]):
        if isinstance(found, Batch):
            end = found.header.next_offset
    return end
