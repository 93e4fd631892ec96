"""A whole log, record by record: all segments in order, and what is wrong on the way.

Damage is told where it lies, and reading goes on behind it. Whatever no quorum writes is damage
too: gaps between batches, epochs that go back or begin without a record that says who leads them, a
segment that does not begin where its name says, a snapshot without its header or footer.

A live log is first copied into a scratch folder (`opened`), so that all readers read files.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from jepsen_like.real.client_settings import PLAIN, ClientSettings
from quorumlab.inspection.batches import Batch, Damage, read_batches
from quorumlab.inspection.entries import Entry, entries
from quorumlab.inspection.target import Target, find_target, snapshot_id
from wire.control_records import SnapshotFooter, SnapshotHeader

__all__ = [
    "opened",
    "segments_from",
    "snapshot_batches",
    "target_batches",
    "target_entries",
    "whole_entries",
]


def target_batches(target: Target, *, starts_at: int = 0) -> Iterator[Batch | Damage]:
    """Reads the log, else the newest snapshot, and keeps `target.progress` informed."""
    if target.segments:
        found = log_batches(target.segments, starts_at=starts_at)
    elif target.snapshots:
        found = snapshot_batches(target.snapshots[-1])
    else:
        return
    for each in found:
        if isinstance(each, Batch):
            target.progress(each.path, each.position)
        yield each


def target_entries(target: Target) -> Iterator[Entry | Damage]:
    for found in target_batches(target):
        if isinstance(found, Damage):
            yield found
        else:
            yield from entries(found)


def whole_entries(directory: Path) -> Iterator[Entry]:
    """Reads the log in a node's directory, while it runs too. Raises ClusterError if none."""
    target = find_target(str(directory))
    assert isinstance(target, Target), target
    return (found for found in target_entries(target) if isinstance(found, Entry))


def log_batches(segments: Sequence[Path], *, starts_at: int = 0) -> Iterator[Batch | Damage]:
    """The batches of `segments`, from the one that holds offset `starts_at` on."""
    end = _End()
    for segment in segments_from(segments, starts_at):
        is_first = True
        for found in _still_there(segment):
            if isinstance(found, Damage):
                yield found
                end = replace(end, is_sure=False)
                is_first = False
                continue
            if is_first:
                yield from _misnamed(found)
            is_first = False
            yield from _breaks(found, end)
            header = found.header
            end = _End(next_offset=header.next_offset, epoch=max(end.epoch, header.leader_epoch))
            if end.next_offset > starts_at:
                yield found


def _still_there(segment: Path) -> Iterator[Batch | Damage]:
    """A running node may remove its oldest segments while we read."""
    try:
        yield from read_batches(segment)
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
        yield Damage(path=segment, position=0, offset=-1, problem=problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """The end of the batches that were read so far."""

    next_offset: int = -1
    epoch: int = -1
    is_sure: bool = True  # nothing was skipped just before


def segments_from(segments: Sequence[Path], offset: int) -> Sequence[Path]:
    """Drops segments that end before `offset`: a segment is named after its first one."""
    bases = [_base_offset(path) or 0 for path in segments]
    first = max((at for at, base in enumerate(bases) if base <= offset), default=0)
    return segments[first:]


def _base_offset(segment: Path) -> int | None:
    """Out of its name; None for a copy that is called something else."""
    return int(segment.stem) if segment.stem.isdecimal() else None


def _misnamed(first: Batch) -> Iterator[Damage]:
    named, offset = _base_offset(first.path), first.header.base_offset
    if named is not None and named != offset:
        yield _damaged(first, named, "L-OFFSET", f"the segment begins with offset {offset}")


def _breaks(batch: Batch, end: _End) -> Iterator[Damage]:
    header, following = batch.header, end.next_offset
    is_gap = header.base_offset > following and end.is_sure
    if following >= 0 and (is_gap or header.base_offset < following):
        problem = f"offset {header.base_offset} follows {following - 1}"
        yield _damaged(batch, following, "L-OFFSET", problem)
    if header.leader_epoch < end.epoch:
        problem = f"leader epoch {header.leader_epoch} follows {end.epoch}"
        yield _damaged(batch, following, "L-EPOCH", problem)
    is_new = 0 <= end.epoch < header.leader_epoch
    if is_new and end.is_sure and not header.is_control:
        problem = f"leader epoch {header.leader_epoch} begins without a LeaderChange"
        yield _damaged(batch, following, "L-EPOCH", problem)


def _damaged(batch: Batch, offset: int, rule: str, problem: str) -> Damage:
    return Damage(
        path=batch.path, position=batch.position, offset=offset, problem=problem, rule=rule
    )


# --- snapshots ------------------------------------------------------------------------------


def snapshot_batches(path: Path) -> Iterator[Batch | Damage]:
    """A snapshot goes from a header to a footer; its offsets count from 0, its epoch is in its
    name."""
    epoch = snapshot_id(path)[1] or None  # a copy may be called something else
    end, position = _End(next_offset=0), 0
    types: list[type] = []
    for found in read_batches(path):
        if isinstance(found, Damage):
            yield found
            end = replace(end, is_sure=False)
            continue
        header = found.header
        if header.is_control:
            types += [type(entry.content) for entry in entries(found)]
        yield from _breaks(found, end)
        epoch = header.leader_epoch if epoch is None else epoch
        if header.leader_epoch != epoch:
            problem = f"leader epoch {header.leader_epoch} in a snapshot of epoch {epoch}"
            yield _damaged(found, end.next_offset, "L-EPOCH", problem)
        end, position = _End(next_offset=header.next_offset), found.position + header.size_bytes
        yield found
    if types[:1] != [SnapshotHeader] or types[-1:] != [SnapshotFooter]:
        problem = "the snapshot does not go from a header to a footer: it is not whole"
        yield Damage(path=path, position=position, offset=end.next_offset, problem=problem)


# --- a live log, too -------------------------------------------------------------------------


@contextmanager
def opened(text: str, settings: ClientSettings = PLAIN) -> Iterator[Target]:
    """The files of a target; a live log is read into a scratch folder first."""
    target = find_target(text, settings)
    if isinstance(target, Target):
        yield target
        return
    from quorumlab.inspection.live import mirrored  # files need no client, which is slow to load

    with tempfile.TemporaryDirectory(prefix="quorumlab-inspect-") as scratch:
        yield mirrored(target, Path(scratch))
