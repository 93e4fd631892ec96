"""How the rows of a partition block look on the wire.

Two rows have one shape if the same lists have the same lengths and the same tagged fields are
there; their bytes then differ in columns only. A shape has a key, by which rows are grouped, a
layout for `wire.record_rows`, and is read back from the rows of a matching run.

Source: KIP-631's PartitionRecord and PartitionChangeRecord, versions 0 to 2.
"""

from typing import assert_never

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
    TOPIC_ID,
    NewPartitions,
    PartitionBlock,
    PartitionChanges,
)
from wire.record_rows import Column, Columns, Rows, Shape

__all__ = ["as_block", "block_of_rows", "columns_of", "shape_keys", "shape_of"]

_PARTITION: Shape = (Column("partition_id", ">i4"), Column("topic_id", "V16"))
_LEADER_AND_EPOCHS: Shape = (
    Column("leader", ">i4"),
    Column("leader_epoch", ">i4"),
    Column("partition_epoch", ">i4"),
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
        tagged.append((bytes((1, 4)), Column("leader", ">i4")))
    if block.recovery_states[row] != RECOVERY_UNCHANGED:
        tagged.append((bytes((5, 1)), Column("recovery_state", "i1")))
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
    """The values of rows of one shape, by the names that `shape_of` uses, and perhaps others."""
    first = rows.start
    match block:
        case PartitionChanges():
            return {
                "partition_id": block.partition_ids[rows],
                "topic_id": block.topic_ids[rows],
                "isr": block.isr[rows, : max(0, int(block.isr_counts[first]))],
                "leader": block.leaders[rows],
                "recovery_state": block.recovery_states[rows],
            }
        case NewPartitions():
            return {
                "partition_id": block.partition_ids[rows],
                "topic_id": block.topic_ids[rows],
                "replicas": block.replicas[rows, : int(block.replica_counts[first])],
                "isr": block.isr[rows, : int(block.isr_counts[first])],
                "leader": block.leaders[rows],
                "leader_epoch": block.leader_epochs[rows],
                "partition_epoch": block.partition_epochs[rows],
                "directories": block.directories[rows, : int(block.directory_counts[first])],
            }
        case other:
            assert_never(other)


def block_of_rows(rows: Rows, like: PartitionBlock) -> PartitionBlock:
    """Rows of the wire in columns; `like` is a block of the first of them."""
    match like:
        case PartitionChanges():
            return _changes_of_rows(rows, like)
        case NewPartitions():
            return _partitions_of_rows(rows, like)
        case other:
            assert_never(other)


def _changes_of_rows(rows: Rows, like: PartitionChanges) -> PartitionChanges:
    count = len(rows)
    isr_count = int(like.isr_counts[0])
    return PartitionChanges(
        topic_ids=rows["topic_id"].copy(),
        partition_ids=_int32s(rows, "partition_id"),
        isr=_matrix(rows, "isr", isr_count),
        isr_counts=np.full(count, isr_count, np.int8),
        leaders=_int32s(rows, "leader", absent=LEADER_UNCHANGED),
        recovery_states=(
            rows["recovery_state"].copy()
            if like.recovery_states[0] != RECOVERY_UNCHANGED
            else np.full(count, RECOVERY_UNCHANGED, np.int8)
        ),
    )


def _partitions_of_rows(rows: Rows, like: NewPartitions) -> NewPartitions:
    count = len(rows)
    replica_count, isr_count = int(like.replica_counts[0]), int(like.isr_counts[0])
    directory_count = int(like.directory_counts[0])
    directories = np.zeros((count, REPLICAS_MAX), TOPIC_ID)
    if directory_count:
        directories[:, :directory_count] = rows["directories"]
    return NewPartitions(
        topic_ids=rows["topic_id"].copy(),
        partition_ids=_int32s(rows, "partition_id"),
        replicas=_matrix(rows, "replicas", replica_count),
        replica_counts=np.full(count, replica_count, np.int8),
        isr=_matrix(rows, "isr", isr_count),
        isr_counts=np.full(count, isr_count, np.int8),
        leaders=_int32s(rows, "leader"),
        leader_epochs=_int32s(rows, "leader_epoch"),
        partition_epochs=_int32s(rows, "partition_epoch"),
        directories=directories,
        directory_counts=np.full(count, directory_count, np.int8),
    )


def _int32s(rows: Rows, name: str, *, absent: int | None = None) -> NDArray[np.int32]:
    assert rows.dtype.names is not None, rows.dtype
    if name in rows.dtype.names:
        column: NDArray[np.int32] = rows[name].astype(np.int32)
        return column
    assert absent is not None, name
    return np.full(len(rows), absent, np.int32)


def _matrix(rows: Rows, name: str, count: int) -> NDArray[np.int32]:
    matrix = np.full((len(rows), REPLICAS_MAX), -1, np.int32)
    if count > 0:
        matrix[:, :count] = rows[name]
    return matrix
