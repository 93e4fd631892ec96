"""Partition records as columns: a block stands for its records, row by row.

A block holds the common shapes: up to 8 replicas, no reassignment, no eligible leader replicas.
What does not fit (`fits`) stays a single record.

A list of a row lies in a matrix of 8 columns beside its length: `isr[row, : isr_counts[row]]`.
What is behind is padding, which writers need not set and readers must not look at.

Blocks are values: nobody changes the columns of a block that others have seen. How rows look on
the wire is decided in `wire.partition_columns`.

Source: KIP-631's PartitionRecord and PartitionChangeRecord.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar, assert_never
from uuid import UUID

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
from wire.record_rows import Column, Columns, Rows, Shape

__all__ = [
    "ISR_UNCHANGED",
    "Int32s",
    "Int8s",
    "NewPartitions",
    "PartitionBlock",
    "PartitionChanges",
    "REPLICAS_MAX",
    "TOPIC_ID",
    "Uuids",
    "as_block",
    "block_of_runs",
    "columns_of",
    "joined",
    "shape_keys",
    "shape_of",
    "take",
    "uuid_column",
]

REPLICAS_MAX = 8  # in a row; a partition with more is rare, and stays a single record
ISR_UNCHANGED = -1  # of PartitionChanges.isr_counts
TOPIC_ID = np.dtype("V16")

Uuids = NDArray[np.void]  # 16 bytes each
Int8s = NDArray[np.int8]
Int32s = NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartitionChanges:
    """Changes of ISR, leader and recovery state, as PartitionChangeRecord says them."""

    topic_ids: Uuids
    partition_ids: Int32s
    isr: Int32s  # (rows, REPLICAS_MAX)
    isr_counts: Int8s  # members of the ISR, or ISR_UNCHANGED
    leaders: Int32s  # a broker, -1 none, or LEADER_UNCHANGED
    recovery_states: Int8s  # 0 recovered, 1 recovering, or RECOVERY_UNCHANGED

    def __post_init__(self) -> None:
        _check(self)

    def __len__(self) -> int:
        return len(self.partition_ids)

    @staticmethod
    def unchanged(topic_ids: Uuids, partition_ids: Int32s) -> "PartitionChanges":
        """A block that changes nothing yet: for its maker to fill in what does change."""
        count = len(partition_ids)
        return PartitionChanges(
            topic_ids=topic_ids,
            partition_ids=partition_ids,
            isr=np.full((count, REPLICAS_MAX), -1, np.int32),
            isr_counts=np.full(count, ISR_UNCHANGED, np.int8),
            leaders=np.full(count, LEADER_UNCHANGED, np.int32),
            recovery_states=np.full(count, RECOVERY_UNCHANGED, np.int8),
        )

    @staticmethod
    def fits(record: PartitionChangeRecord) -> bool:
        """Says the record no more than a row can?"""
        others = (
            record.replicas,
            record.removing_replicas,
            record.adding_replicas,
            record.directories,
            record.eligible_leader_replicas,
            record.last_known_elr,
        )
        return others == (None,) * len(others) and len(record.isr or ()) <= REPLICAS_MAX

    @staticmethod
    def from_records(records: Sequence[PartitionChangeRecord]) -> "PartitionChanges":
        """Every record must fit."""
        assert all(map(PartitionChanges.fits, records)), "a record that does not fit"
        isr, isr_counts = _int32_matrix([record.isr for record in records])
        return PartitionChanges(
            topic_ids=uuid_column(record.topic_id for record in records),
            partition_ids=_int32s(record.partition_id for record in records),
            isr=isr,
            isr_counts=isr_counts,
            leaders=_int32s(record.leader for record in records),
            recovery_states=np.array([r.leader_recovery_state for r in records], np.int8),
        )

    def records(self) -> tuple[PartitionChangeRecord, ...]:
        columns = zip(
            _uuids(self.topic_ids),
            self.partition_ids.tolist(),
            _lists(self.isr, self.isr_counts),
            self.leaders.tolist(),
            self.recovery_states.tolist(),
            strict=True,
        )
        return tuple(
            PartitionChangeRecord(
                topic_id=topic_id,
                partition_id=partition_id,
                isr=isr,
                leader=leader,
                leader_recovery_state=recovery_state,
            )
            for topic_id, partition_id, isr, leader, recovery_state in columns
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NewPartitions:
    """Whole partitions, as PartitionRecord says them: new ones, or those of a snapshot."""

    topic_ids: Uuids
    partition_ids: Int32s
    replicas: Int32s  # (rows, REPLICAS_MAX)
    replica_counts: Int8s
    isr: Int32s  # (rows, REPLICAS_MAX)
    isr_counts: Int8s
    leaders: Int32s  # -1 none
    leader_epochs: Int32s
    partition_epochs: Int32s
    directories: Uuids  # (rows, REPLICAS_MAX), parallel to replicas
    directory_counts: Int8s  # 0 where the record has none

    def __post_init__(self) -> None:
        _check(self)

    def __len__(self) -> int:
        return len(self.partition_ids)

    @staticmethod
    def fits(record: PartitionRecord) -> bool:
        """Says the record no more than a row can?"""
        others = (
            record.removing_replicas,
            record.adding_replicas,
            record.leader_recovery_state,
            record.eligible_leader_replicas,
            record.last_known_elr,
        )
        longest = max(len(record.replicas), len(record.isr), len(record.directories))
        return others == ((), (), 0, None, None) and longest <= REPLICAS_MAX

    @staticmethod
    def from_records(records: Sequence[PartitionRecord]) -> "NewPartitions":
        """Every record must fit."""
        assert all(map(NewPartitions.fits, records)), "a record that does not fit"
        replicas, replica_counts = _int32_matrix([record.replicas for record in records])
        isr, isr_counts = _int32_matrix([record.isr for record in records])
        directories = np.zeros((len(records), REPLICAS_MAX), TOPIC_ID)
        for row, record in enumerate(records):
            directories[row, : len(record.directories)] = uuid_column(record.directories)
        return NewPartitions(
            topic_ids=uuid_column(record.topic_id for record in records),
            partition_ids=_int32s(record.partition_id for record in records),
            replicas=replicas,
            replica_counts=replica_counts,
            isr=isr,
            isr_counts=isr_counts,
            leaders=_int32s(record.leader for record in records),
            leader_epochs=_int32s(record.leader_epoch for record in records),
            partition_epochs=_int32s(record.partition_epoch for record in records),
            directories=directories,
            directory_counts=np.array([len(r.directories) for r in records], np.int8),
        )

    def records(self) -> tuple[PartitionRecord, ...]:
        columns = zip(
            _uuids(self.topic_ids),
            self.partition_ids.tolist(),
            _lists(self.replicas, self.replica_counts),
            _lists(self.isr, self.isr_counts),
            self.leaders.tolist(),
            self.leader_epochs.tolist(),
            self.partition_epochs.tolist(),
            _lists(self.directories, self.directory_counts),
            strict=True,
        )
        return tuple(
            PartitionRecord(
                topic_id=topic_id,
                partition_id=partition_id,
                replicas=replicas or (),
                isr=isr or (),
                leader=leader,
                leader_epoch=leader_epoch,
                partition_epoch=partition_epoch,
                directories=tuple(UUID(bytes=directory) for directory in directories or ()),
            )
            for (
                topic_id,
                partition_id,
                replicas,
                isr,
                leader,
                leader_epoch,
                partition_epoch,
                directories,
            ) in columns
        )


PartitionBlock = PartitionChanges | NewPartitions
_Block = TypeVar("_Block", bound=PartitionBlock)


def take(block: _Block, rows: slice | NDArray[np.intp]) -> _Block:
    """Some rows of a block, in the order of `rows`."""
    return type(block)(**{field.name: getattr(block, field.name)[rows] for field in fields(block)})


def joined(blocks: Sequence[_Block]) -> _Block:
    """The rows of at least one block, behind one another."""
    if len(blocks) == 1:
        return blocks[0]
    return type(blocks[0])(
        **{
            field.name: np.concatenate([getattr(block, field.name) for block in blocks])
            for field in fields(blocks[0])
        }
    )


def uuid_column(values: Iterable[UUID]) -> Uuids:
    return np.frombuffer(b"".join(value.bytes for value in values), TOPIC_ID)


def _check(block: PartitionBlock) -> None:
    """One length, and the layout that the vectorised code relies on."""
    rows = len(block.partition_ids)
    for field in fields(block):
        column = getattr(block, field.name)
        is_matrix = field.name in ("isr", "replicas", "directories")
        expected = (rows, REPLICAS_MAX) if is_matrix else (rows,)
        assert column.shape == expected, (field.name, column.shape, expected)


def _int32s(values: Iterable[int]) -> Int32s:
    return np.fromiter(values, np.int32)


def _int32_matrix(lists: Sequence[Sequence[int] | None]) -> tuple[Int32s, Int8s]:
    matrix = np.full((len(lists), REPLICAS_MAX), -1, np.int32)
    counts = np.full(len(lists), ISR_UNCHANGED, np.int8)
    for row, values in enumerate(lists):
        if values is not None:
            matrix[row, : len(values)] = values
            counts[row] = len(values)
    return matrix, counts


def _lists(matrix: NDArray[Any], counts: Int8s) -> list[tuple[Any, ...] | None]:
    return [
        None if count < 0 else tuple(values[:count])
        for values, count in zip(matrix.tolist(), counts.tolist(), strict=True)
    ]


def _uuids(column: Uuids) -> list[UUID]:
    return [UUID(bytes=value) for value in column.tolist()]


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
