"""Partition records as columns: a block stands for its records, row by row.

A block holds the common shapes: up to 8 replicas, no reassignment, no eligible leader replicas.
A record that does not fit (`fits`) stays a single record.

A list of a row lies in a matrix of 8 columns beside its length: `isr[row, : isr_counts[row]]`.
The rest of the row is padding, which writers need not set and readers must not look at.

Blocks are values: nobody changes the columns of a block that others have seen.

Source: KIP-631's PartitionRecord and PartitionChangeRecord, versions 0 to 2.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain, islice
from typing import Any, ClassVar, Self, TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from wire.message import Message, fields_of
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
    "DIRECTORIES_SINCE",
    "ISR_UNCHANGED",
    "REPLICAS_MAX",
    "TOPIC_ID",
    "Int8s",
    "Int32s",
    "NewPartitions",
    "PartitionBlock",
    "PartitionChanges",
    "Uuids",
    "as_block",
    "block_of_runs",
    "columns_of",
    "joined",
    "rows_of",
    "take",
    "uuid_column",
]

REPLICAS_MAX = 8  # in a row; a partition with more is rare, and stays a single record
ISR_UNCHANGED = -1  # of PartitionChanges.isr_counts
TOPIC_ID = np.dtype("V16")

Uuids = NDArray[np.void]  # 16 bytes each
Int8s = NDArray[np.int8]
Int32s = NDArray[np.int32]


_COUNTS = {"isr": "isr_counts", "replicas": "replica_counts", "directories": "directory_counts"}
_NO_REASSIGNMENT = b"\x01\x01"  # removing and adding replicas: two empty arrays
_NO_TAGS = b"\x00"
DIRECTORIES_SINCE = 1  # version of PartitionRecord
_COUNT_BITS = 4  # enough for 0 to REPLICAS_MAX
_PARTITION: Shape = (Column("partition_ids", ">i4"), Column("topic_ids", "V16"))
_LEADER_AND_EPOCHS: Shape = (
    Column("leaders", ">i4"),
    Column("leader_epochs", ">i4"),
    Column("partition_epochs", ">i4"),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartitionBlock:
    """Columns of one length. Two rows have one shape if the same lists have the same lengths and
    the same tagged fields are there; their bytes then differ in columns only."""

    RECORD: ClassVar[type[PartitionChangeRecord | PartitionRecord]]
    FIELDS: ClassVar[Mapping[str, str]]  # the fields of the record that the columns hold

    topic_ids: Uuids
    partition_ids: Int32s
    isr: Int32s  # (rows, REPLICAS_MAX)
    isr_counts: Int8s
    leaders: Int32s  # a broker, or -1: none

    def __post_init__(self) -> None:
        """The vectorised code relies on the layout."""
        rows = len(self)
        for field in fields(self):
            column = getattr(self, field.name)
            expected = (rows, REPLICAS_MAX) if field.name in _COUNTS else (rows,)
            assert column.shape == expected, (field.name, column.shape, expected)

    def __len__(self) -> int:
        return len(self.partition_ids)

    @classmethod
    def fits(cls, record: Message) -> bool:
        """Says the record no more than a row can?"""
        held = cls.FIELDS.values()
        has_others = any(
            getattr(record, name) != field.default
            for name, field in fields_of(type(record)).items()
            if name not in held
        )
        lists = (getattr(record, cls.FIELDS[name]) for name in _COUNTS if name in cls.FIELDS)
        return not has_others and all(len(each or ()) <= REPLICAS_MAX for each in lists)

    @classmethod
    def from_records(cls, records: Sequence[Message]) -> Self:
        """Every record must fit."""
        assert all(map(cls.fits, records)), "a record that does not fit"
        found: dict[str, Any] = {}
        for name, field in cls.FIELDS.items():
            values = [getattr(record, field) for record in records]
            if name in _COUNTS:
                found[name], found[_COUNTS[name]] = _matrix(values, is_of_ids=name == "directories")
            elif name == "topic_ids":
                found[name] = uuid_column(values)
            else:
                found[name] = np.array(values, np.int8 if name == "recovery_states" else np.int32)
        return cls(**found)

    def records(self) -> tuple[Any, ...]:
        return tuple(self.RECORD(**row) for row in rows_of(self))

    @abstractmethod
    def shape_keys(self) -> NDArray[np.int16]:
        """One number a row, by which rows are grouped: equal numbers are equal shapes."""

    @abstractmethod
    def shape(self, row: int, version: int) -> Shape:
        """The value of a row, written in `version` of its record."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartitionChanges(PartitionBlock):
    """Changes of ISR, leader and recovery state, as PartitionChangeRecord says them.

    `isr_counts` may be ISR_UNCHANGED, and `leaders` LEADER_UNCHANGED.
    """

    RECORD = PartitionChangeRecord
    FIELDS: ClassVar = {
        "partition_ids": "partition_id",
        "topic_ids": "topic_id",
        "isr": "isr",
        "leaders": "leader",
        "recovery_states": "leader_recovery_state",
    }
    recovery_states: Int8s  # 0 recovered, 1 recovering, or RECOVERY_UNCHANGED

    def shape_keys(self) -> NDArray[np.int16]:
        keys = (self.isr_counts - ISR_UNCHANGED).astype(np.int16)
        keys[self.leaders != LEADER_UNCHANGED] |= 1 << _COUNT_BITS
        keys[self.recovery_states != RECOVERY_UNCHANGED] |= 2 << _COUNT_BITS
        return keys

    def shape(self, row: int, version: int) -> Shape:
        tagged: list[Shape] = []  # tag, size, value
        if (count := int(self.isr_counts[row])) != ISR_UNCHANGED:
            tagged.append((bytes((0, 1 + 4 * count)), *_array("isr", ">i4", count)))
        if self.leaders[row] != LEADER_UNCHANGED:
            tagged.append((bytes((1, 4)), Column("leaders", ">i4")))
        if self.recovery_states[row] != RECOVERY_UNCHANGED:
            tagged.append((bytes((5, 1)), Column("recovery_states", "i1")))
        frame = record_frame(PartitionChangeRecord, version)
        return (frame, *_PARTITION, bytes((len(tagged),)), *chain.from_iterable(tagged))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NewPartitions(PartitionBlock):
    """Whole partitions, as PartitionRecord says them: new ones, or those of a snapshot."""

    RECORD = PartitionRecord
    FIELDS: ClassVar = {
        "partition_ids": "partition_id",
        "topic_ids": "topic_id",
        "replicas": "replicas",
        "isr": "isr",
        "leaders": "leader",
        "leader_epochs": "leader_epoch",
        "partition_epochs": "partition_epoch",
        "directories": "directories",
    }
    replicas: Int32s  # (rows, REPLICAS_MAX)
    replica_counts: Int8s
    leader_epochs: Int32s
    partition_epochs: Int32s
    directories: Uuids  # (rows, REPLICAS_MAX), parallel to replicas
    directory_counts: Int8s  # 0 where the record has none

    def shape_keys(self) -> NDArray[np.int16]:
        keys = self.replica_counts.astype(np.int16) << 2 * _COUNT_BITS
        keys |= self.isr_counts.astype(np.int16) << _COUNT_BITS
        return keys | self.directory_counts

    def shape(self, row: int, version: int) -> Shape:
        directory_count = int(self.directory_counts[row])
        directories: Shape = ()
        if version >= DIRECTORIES_SINCE:
            directories = _array("directories", "V16", directory_count)
        elif directory_count:
            raise ValueError(f"PartitionRecord version {version} has no directories")
        return (
            record_frame(PartitionRecord, version),
            *_PARTITION,
            *_array("replicas", ">i4", int(self.replica_counts[row])),
            *_array("isr", ">i4", int(self.isr_counts[row])),
            _NO_REASSIGNMENT,
            *_LEADER_AND_EPOCHS,
            *directories,
            _NO_TAGS,
        )


_Block = TypeVar("_Block", bound=PartitionBlock)


def columns_of(block: PartitionBlock, rows: slice | NDArray[np.intp]) -> Columns:
    return {field.name: getattr(block, field.name)[rows] for field in fields(block)}


def take(block: _Block, rows: slice | NDArray[np.intp]) -> _Block:
    """Some rows of a block, in the order of `rows`."""
    return type(block)(**columns_of(block, rows))


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


def _matrix(
    lists: Sequence[Sequence[Any] | None], *, is_of_ids: bool
) -> tuple[NDArray[Any], Int8s]:
    shape = (len(lists), REPLICAS_MAX)
    matrix = np.zeros(shape, TOPIC_ID) if is_of_ids else np.full(shape, -1, np.int32)
    counts = np.full(len(lists), ISR_UNCHANGED, np.int8)
    for row, values in enumerate(lists):
        if values is not None:
            matrix[row, : len(values)] = uuid_column(values) if is_of_ids else values
            counts[row] = len(values)
    return matrix, counts


def _uuid(value: bytes) -> UUID:
    return UUID(bytes=value)


def rows_of(
    block: PartitionBlock,
    id_of: Callable[[bytes], Any] = _uuid,
    list_of: Callable[[Iterable[Any]], Any] = tuple,
) -> Iterator[dict[str, Any]]:
    """Each row as the fields of its record, with ids and lists in the form that is asked for."""
    columns = block.FIELDS
    values: list[Iterable[Any]] = []
    for name in columns:
        column = getattr(block, name).tolist()
        if name == "topic_ids":
            column = map(id_of, column)
        elif name in _COUNTS:
            if name == "directories":
                column = (map(id_of, each) for each in column)
            counts = getattr(block, _COUNTS[name]).tolist()
            column = (
                None if count < 0 else list_of(islice(each, count))
                for each, count in zip(column, counts, strict=True)
            )
        values.append(column)
    for row in zip(*values, strict=True):
        yield dict(zip(columns.values(), row, strict=True))


# --- on the wire --------------------------------------------------------------------------------


def as_block(record: MetadataRecord) -> PartitionBlock | None:
    """A block of the one record, or None if no row can say it."""
    for kind in (PartitionChanges, NewPartitions):
        if type(record) is kind.RECORD and kind.fits(record):
            return kind.from_records((record,))
    return None


def _array(name: str, item: str, count: int) -> Shape:
    assert 0 <= count <= REPLICAS_MAX, (name, count)
    length = bytes((count + 1,))
    return (length, Column(name, item, count)) if count else (length,)


def block_of_runs(runs: Sequence[tuple[Rows, PartitionBlock]]) -> PartitionBlock:
    """Rows of the wire in columns: runs of one kind, each with a block of its first record.

    What is no column of a run is the same in all its rows.
    """
    kind = type(runs[0][1])
    return kind(**{field.name: _column(field.name, runs) for field in fields(kind)})


def _column(name: str, runs: Sequence[tuple[Rows, PartitionBlock]]) -> NDArray[Any]:
    """Writes the column once, whatever the runs: a failure's blocks are larger than the caches."""
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
