"""How the rows of a partition block look on the wire.

Two rows have one shape if the same lists have the same lengths and the same tagged fields are
there; their bytes then differ in columns only. A shape has a key, by which rows are grouped, a
layout for `wire.record_rows`, and is read back from the rows of a matching run.

Source: KIP-631's PartitionRecord and PartitionChangeRecord, versions 0 to 2.
"""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from wire.metadata_records import (
    LEADER_UNCHANGED,
    RECOVERY_UNCHANGED,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    record_frame,
)
from wire.partition_columns import (
    ISR_UNCHANGED,
    REPLICAS_MAX,
    NewPartitions,
    PartitionBlock,
    PartitionChanges,
)
from wire.record_rows import Column, Columns, Rows, Shape

__all__ = ["as_block", "block_of_runs", "columns_of", "shape_keys", "shape_of"]

_PARTITION: Shape = (Column("partition_ids", ">i4"), Column("topic_ids", "V16"))
_LEADER_AND_EPOCHS: Shape = (
    Column("leaders", ">i4"),
    Column("leader_epochs", ">i4"),
    Column("partition_epochs", ">i4"),
)
_NO_REASSIGNMENT = b"\x01\x01"  # removing and adding replicas: two empty arrays
_NO_TAGS = b"\x00"
_DIRECTORIES_SINCE = 1  # version of PartitionRecord
_COUNT_BITS = 4  # enough for 0 to REPLICAS_MAX


def as_block(record: MetadataRecord) -> PartitionBlock | None:
    """A block of the one record, or None if no row can say it."""
    if isinstance(record, PartitionChangeRecord) and PartitionChanges.fits(record):
        return PartitionChanges.from_records((record,))
    if isinstance(record, PartitionRecord) and NewPartitions.fits(record):
        return NewPartitions.from_records((record,))
    return None


def shape_keys(block: PartitionBlock) -> NDArray[np.int16]:
    """One number a row: equal numbers are equal shapes."""
    match block:
        case PartitionChanges():
            keys = (block.isr_counts - ISR_UNCHANGED).astype(np.int16)
            keys[block.leaders != LEADER_UNCHANGED] |= 1 << _COUNT_BITS
            keys[block.recovery_states != RECOVERY_UNCHANGED] |= 2 << _COUNT_BITS
            return keys
        case NewPartitions():
            keys = block.replica_counts.astype(np.int16) << 2 * _COUNT_BITS
            keys |= block.isr_counts.astype(np.int16) << _COUNT_BITS
            return keys | block.directory_counts
        case other:
            assert_never(other)


def shape_of(block: PartitionBlock, row: int, version: int) -> Shape:
    """The value of a row, written in `version` of its record."""
    match block:
        case PartitionChanges():
            return _shape_of_change(block, row, version)
        case NewPartitions():
            return _shape_of_partition(block, row, version)
        case other:
            assert_never(other)


def _shape_of_change(block: PartitionChanges, row: int, version: int) -> Shape:
    tagged: list[Shape] = []  # tag, size, value
    if (count := int(block.isr_counts[row])) != ISR_UNCHANGED:
        tagged.append((bytes((0, 1 + 4 * count)), *_array("isr", ">i4", count)))
    if block.leaders[row] != LEADER_UNCHANGED:
        tagged.append((bytes((1, 4)), Column("leaders", ">i4")))
    if block.recovery_states[row] != RECOVERY_UNCHANGED:
        tagged.append((bytes((5, 1)), Column("recovery_states", "i1")))
    frame = record_frame(PartitionChangeRecord, version)
    pieces: Shape = (frame, *_PARTITION, bytes((len(tagged),)))
    for field in tagged:
        pieces += field
    return pieces


def _shape_of_partition(block: NewPartitions, row: int, version: int) -> Shape:
    directory_count = int(block.directory_counts[row])
    directories: Shape = ()
    if version >= _DIRECTORIES_SINCE:
        directories = _array("directories", "V16", directory_count)
    elif directory_count:
        raise ValueError(f"PartitionRecord version {version} has no directories")
    return (
        record_frame(PartitionRecord, version),
        *_PARTITION,
        *_array("replicas", ">i4", int(block.replica_counts[row])),
        *_array("isr", ">i4", int(block.isr_counts[row])),
        _NO_REASSIGNMENT,
        *_LEADER_AND_EPOCHS,
        *directories,
        _NO_TAGS,
    )


def _array(name: str, item: str, count: int) -> Shape:
    assert 0 <= count <= REPLICAS_MAX, (name, count)
    length = bytes((count + 1,))
    return (length, Column(name, item, count)) if count else (length,)


def columns_of(block: PartitionBlock, rows: slice) -> Columns:
    """The values of rows of one shape, by the names that `shape_of` uses, and others."""
    return {field.name: getattr(block, field.name)[rows] for field in fields(block)}


def block_of_runs(runs: Sequence[tuple[Rows, PartitionBlock]]) -> PartitionBlock:
    """Rows of the wire in columns: runs of one kind, each with a block of its first record.

    What is no column of a run is the same in all its rows.
    """
    kind = type(runs[0][1])
    return kind(**{field.name: _column(field.name, runs) for field in fields(kind)})


def _column(name: str, runs: Sequence[tuple[Rows, PartitionBlock]]) -> NDArray[Any]:
    """Written once, whatever the runs: a failure's blocks are larger than the caches."""
    first = getattr(runs[0][1], name)
    column = np.zeros((sum(len(rows) for rows, _ in runs), *first.shape[1:]), first.dtype)
    end = 0
    for rows, like in runs:
        start, end = end, end + len(rows)
        if name not in (rows.dtype.names or ()):
            column[start:end] = getattr(like, name)
        elif column.ndim == 1:
            column[start:end] = rows[name]
        else:
            column[start:end, : rows[name].shape[1]] = rows[name]
    return column
