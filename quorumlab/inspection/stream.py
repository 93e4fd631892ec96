"""A whole log, record by record: all segments in order, and what is wrong on the way.

Damage is told where it lies and reading goes on behind it. Gaps between batches, and epochs that go
back, are damage too: no log that a quorum wrote has them.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from quorumlab.inspection.batches import Batch, Damage, read_batches
from quorumlab.inspection.entries import Entry, entries

__all__ = ["log_batches", "log_entries"]


def log_batches(segments: Sequence[Path], *, starts_at: int = 0) -> Iterator[Batch | Damage]:
    """The batches of `segments`, from the one that holds offset `starts_at` on."""
    next_offset, epoch = -1, -1
    for segment in _holding(segments, starts_at):
        for found in read_batches(segment):
            if isinstance(found, Batch):
                yield from _breaks(found, next_offset, epoch)
                next_offset = found.header.next_offset
                epoch = max(epoch, found.header.leader_epoch)
                if next_offset <= starts_at:
                    continue
            yield found


def log_entries(segments: Sequence[Path], *, starts_at: int = 0) -> Iterator[Entry | Damage]:
    for found in log_batches(segments, starts_at=starts_at):
        if isinstance(found, Damage):
            yield found
        else:
            yield from entries(found)


def _holding(segments: Sequence[Path], offset: int) -> Sequence[Path]:
    """Without those that end before `offset`: a segment is named after its first one."""
    bases = [int(path.stem) if path.stem.isdecimal() else 0 for path in segments]
    first = max((at for at, base in enumerate(bases) if base <= offset), default=0)
    return segments[first:]


def _breaks(batch: Batch, next_offset: int, epoch: int) -> Iterator[Damage]:
    header = batch.header
    problems = []
    if 0 <= next_offset != header.base_offset:
        problems.append(f"offset {header.base_offset} follows {next_offset - 1}")
    if header.leader_epoch < epoch:
        problems.append(f"leader epoch {header.leader_epoch} follows {epoch}")
    for problem in problems:
        yield Damage(path=batch.path, position=batch.position, offset=next_offset, problem=problem)
