"""Changes of the metadata: single records, and blocks that stand for many partition records.

The controller's rules return changes, the log carries them as batches, `controller.metadata.apply`
makes them an image. A block and its records, one by one, mean the same.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from wire.batch import headers
from wire.partition_block import Change, decode, encode, record_count
from wire.partition_columns import PartitionBlock, take

__all__ = [
    "Change",
    "CommittedBatch",
    "decode_changes",
    "encode_changes",
    "offsets_of",
    "record_count",
    "split_changes",
]


class CommittedBatch(NamedTuple):
    """One batch of the log, read. `next_offset` is exclusive."""

    changes: tuple[Change, ...]
    base_offset: int
    next_offset: int
    epoch: int
    timestamp_ms: int


def offsets_of(changes: tuple[Change, ...], *, end_offset: int) -> Iterator[tuple[int, Change]]:
    """Each change with the offset of its first record; the last record lies before `end_offset`."""
    counts = [len(change) if isinstance(change, PartitionBlock) else 1 for change in changes]
    offset = end_offset - sum(counts)
    assert offset >= 0, (end_offset, len(changes))
    return zip(accumulate(counts, initial=offset), changes, strict=False)


def split_changes(changes: Sequence[Change], records_max: int) -> Iterator[tuple[Change, ...]]:
    """The same changes in parts of at most `records_max` records, blocks cut where needed."""
    assert records_max >= 1, records_max
    part: list[Change] = []
    room = records_max
    for change in changes:
        start, count = 0, record_count((change,))
        while start < count:
            end = min(count, start + room)
            part.append(
                take(change, slice(start, end)) if isinstance(change, PartitionBlock) else change
            )
            room -= end - start
            start = end
            if room == 0:
                yield tuple(part)
                part, room = [], records_max
    if part:
        yield tuple(part)


def decode_changes(batches: bytes) -> Iterator[CommittedBatch]:
    """Every batch of `batches` that holds metadata; control batches are left out.

    Raises `Malformed` for bytes that are no metadata records. Records of a later release are
    `ForeignRecord`s.
    """
    view = memoryview(batches)
    for position, header in headers(batches):
        if header.is_control:
            continue
        yield CommittedBatch(
            changes=decode(view[position : position + header.size_bytes], header),
            base_offset=header.base_offset,
            next_offset=header.next_offset,
            epoch=header.leader_epoch,
            timestamp_ms=header.max_timestamp_ms,
        )


def encode_changes(changes: Iterable[Change], *, timestamp_ms: int, metadata_version: int) -> bytes:
    """One batch, with the record versions of `metadata_version`. Offsets come from the log."""
    return encode(tuple(changes), timestamp_ms=timestamp_ms, metadata_version=metadata_version)
