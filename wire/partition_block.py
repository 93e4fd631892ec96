"""Metadata batches from and to changes: single records, and partition records in blocks.

`encode` writes a block byte for byte as its records, one by one, would be written; `decode` reads
runs of one shape as blocks, and the rest as records, in the order of the log. Both know a few
shapes only (`wire.partition_columns`); the codec of single records serves for all others.

Writers should hand in `grouped(block)`, where the order of rows is free: long runs of one shape
are what makes both ways fast. A decoded block never names a partition twice, so that its rows may
be applied in any order, or at once.

Checksums are not looked at here, see `wire.batch.verify`.

Source: KIP-631 for the records; the columns are ours.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from wire.batch import (
    HEADER_BYTES,
    BatchHeader,
    Compression,
    CorruptBatch,
    encode_value,
    read_header,
    read_value,
    records_of,
    write_header,
)
from wire.foreign_records import kept_record
from wire.metadata_records import (
    DEFAULT_METADATA_VERSION,
    MetadataRecord,
    encode_record,
    record_version,
)
from wire.partition_columns import (
    NewPartitions,
    PartitionBlock,
    PartitionChanges,
    as_block,
    block_of_runs,
    columns_of,
    take,
)
from wire.record_rows import (
    DELTAS_MAX,
    Columns,
    Rows,
    RowTemplate,
    matching_rows,
    row_template,
    widths,
    write_rows,
)
from wire.varint import Buffer, Malformed

__all__ = [
    "TOGETHER",
    "Change",
    "NewPartitions",
    "PartitionBlock",
    "PartitionChanges",
    "counted",
    "decode",
    "encode",
    "grouped",
    "record_count",
]

Change = MetadataRecord | PartitionBlock
_Block = TypeVar("_Block", bound=PartitionBlock)

_RUN_MIN = 16  # rows; below, single records are as fast
TOGETHER = 10_000  # rows of a batch of Kafka's controller: it is read into neighbouring rows
_VERSION_AT = 2  # of a value: frame version, key and version take a byte each
_ODD_1, _ODD_2, _ODD_3 = map(
    np.uint64, (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
)


def grouped(block: _Block) -> _Block:
    """The same rows, each `TOGETHER` of them in the order of their shapes."""
    keys = block.shape_keys()
    order = np.arange(len(block))
    for start in range(0, len(block), TOGETHER):
        part = slice(start, start + TOGETHER)
        order[part] = start + np.argsort(keys[part], kind="stable")
    return take(block, order)


# --- encoding -------------------------------------------------------------------------------


def record_count(changes: Collection[Change]) -> int:
    """How many records the changes take in the log."""
    blocks = [each for each in changes if isinstance(each, PartitionBlock)]
    return len(changes) + sum(map(len, blocks)) - len(blocks)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Rows of one shape and one width of the offset delta."""

    template: RowTemplate
    first_delta: int
    count: int
    columns: Columns

    def __len__(self) -> int:
        return self.count * self.template.size


def encode(
    changes: Sequence[Change],
    *,
    timestamp_ms: int,
    metadata_version: int = DEFAULT_METADATA_VERSION,
) -> bytes:
    """One batch, which is applied whole or not at all. There must be a record to write."""
    pieces: list[bytes | _Run] = []
    count = 0
    for change in changes:
        if isinstance(change, PartitionBlock):
            pieces += _block_pieces(change, count, metadata_version)
            count += len(change)
        else:
            value = encode_record(change, metadata_version=metadata_version)
            pieces.append(encode_value(value, count))
            count += 1
    assert count, "a batch has at least one record"
    batch = bytearray(HEADER_BYTES + sum(map(len, pieces)))
    _fill(batch, pieces)
    header = BatchHeader(
        last_offset_delta=count - 1,
        base_timestamp_ms=timestamp_ms,
        max_timestamp_ms=timestamp_ms,
        record_count=count,
    )
    write_header(batch, header)
    return bytes(batch)


def _fill(batch: bytearray, pieces: list[bytes | _Run]) -> None:
    data = np.frombuffer(batch, np.uint8)
    position = HEADER_BYTES
    for piece in pieces:
        end = position + len(piece)
        if isinstance(piece, _Run):
            write_rows(
                data[position:end],
                piece.template,
                first_delta=piece.first_delta,
                columns=piece.columns,
            )
        else:
            batch[position:end] = piece
        position = end


def _block_pieces(
    block: PartitionBlock, first_delta: int, metadata_version: int
) -> Iterator[bytes | _Run]:
    version = record_version(block.RECORD, metadata_version)
    for start, end, is_run in _runs(block.shape_keys()):
        if not is_run:
            records: Sequence[MetadataRecord] = take(block, slice(start, end)).records()
            for delta, record in enumerate(records, first_delta + start):
                yield encode_value(encode_record(record, version=version), delta)
            continue
        shape = block.shape(start, version)
        for width, low, high in widths(first_delta + start, first_delta + end):
            rows = slice(low - first_delta, high - first_delta)
            yield _Run(
                template=row_template(shape, width),
                first_delta=low,
                count=high - low,
                columns=columns_of(block, rows),
            )


def _runs(keys: NDArray[np.int16]) -> Iterator[tuple[int, int, bool]]:
    """Start and end of each run of one shape (True), and of what lies between runs (False)."""
    edges = np.flatnonzero(keys[1:] != keys[:-1]) + 1
    between = 0
    for start, end in pairwise([0, *edges.tolist(), len(keys)]):
        if end - start >= _RUN_MIN:
            if between < start:
                yield between, start, False
            yield start, end, True
            between = end
    if between < len(keys):
        yield between, len(keys), False


# --- decoding -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Alike:
    """A run of records of one shape."""

    first: MetadataRecord
    like: PartitionBlock  # a block of the first one
    rows: Sequence[Rows]  # for each width of the offset delta

    def __len__(self) -> int:
        return sum(map(len, self.rows))


def decode(batch: Buffer, header: BatchHeader | None = None) -> tuple[Change, ...]:
    """The changes of the one batch that `batch` holds or begins with; none if it is control.

    `header` is that of the batch, where a caller has read it already. Raises CorruptBatch or
    Malformed for bytes that are no batch of records. Those of a later release are kept as they are.
    """
    changes: list[Change] = []
    runs: list[_Alike] = []  # neighbours, of one kind
    for found in _found(batch, header):
        if not isinstance(found, _Alike):
            if runs:
                changes += _settled(runs)
                runs = []
            changes.append(found)
            continue
        if runs and type(found.like) is not type(runs[0].like):
            changes += _settled(runs)
            runs = []
        runs.append(found)
    return (*changes, *_settled(runs)) if runs else tuple(changes)


def counted(batch: Buffer) -> Iterator[tuple[MetadataRecord, int]]:
    """Each record that `decode` has; of a run of one shape the first, and how many they are.

    Makes no columns. Raises as `decode` does.
    """
    for found in _found(batch):
        yield (found.first, len(found)) if isinstance(found, _Alike) else (found, 1)


def _found(batch: Buffer, header: BatchHeader | None = None) -> Iterator[MetadataRecord | _Alike]:
    header = header or read_header(batch)
    if header.is_control:
        return iter(())
    if header.compression is not Compression.NONE:
        return (_record(record.value) for record in records_of(batch))
    size_bytes = header.size_bytes
    if size_bytes > len(batch):
        raise CorruptBatch(f"{len(batch)} of the {size_bytes} bytes of a batch")
    return _found_in(bytes(memoryview(batch)[HEADER_BYTES:size_bytes]), header)


def _found_in(body: bytes, header: BatchHeader) -> Iterator[MetadataRecord | _Alike]:
    position = delta = 0
    try_from = 0  # a search in vain costs as much as ten records: not at each of them
    while (left := header.record_count - delta) > 0:
        value, end = read_value(body, position, header)
        found = _record(value)
        run = None
        if left >= _RUN_MIN and delta >= try_from and _looks_like_run(body, position, end):
            assert value is not None, found
            try_from = delta + _RUN_MIN
            deltas = range(delta, min(header.record_count, DELTAS_MAX))
            run = _run_at(body, position, found, value[_VERSION_AT], deltas)
        if run is None:
            yield found
            delta += 1
        else:
            alike, end = run
            yield alike
            delta += len(alike)
        position = end
    if position != len(body):
        raise CorruptBatch(f"{len(body) - position} bytes behind the last record")


def _record(value: bytes | None) -> MetadataRecord:
    if value is None:
        raise Malformed("a metadata record without a value")
    return kept_record(value)


def _looks_like_run(body: bytes, position: int, end: int) -> bool:
    """Do the next records begin like this one, at distances of its size?"""
    size = end - position
    start = body[position : position + 2]
    return all(body.startswith(start, position + index * size) for index in range(1, _RUN_MIN))


def _run_at(
    body: bytes, position: int, first: MetadataRecord, version: int, deltas: range
) -> tuple[_Alike, int] | None:
    """The rows from `position` on of the shape of the record `first` there, if they are many.

    And where they end. The shape is checked against the bytes: whatever a row cannot say ends the
    run.
    """
    like = as_block(first)
    if like is None:
        return None
    data, shape = np.frombuffer(body, np.uint8), like.shape(0, version)
    rows: list[Rows] = []
    for width, low, high in widths(deltas.start, deltas.stop):
        template = row_template(shape, width)
        count = matching_rows(data[position:], template, first_delta=low, rows_max=high - low)
        end = position + count * template.size
        rows.append(data[position:end].view(template.dtype))
        position = end
        if count < high - low:
            break
    run = _Alike(first=first, like=like, rows=rows)
    return None if len(run) < _RUN_MIN else (run, position)


def _settled(runs: Sequence[_Alike]) -> Sequence[Change]:
    """Runs of one kind as one block, or as records if a partition is named twice."""
    block = block_of_runs([(rows, run.like) for run in runs for rows in run.rows])
    return (block,) if _names_each_once(block) else block.records()


def _names_each_once(block: PartitionBlock) -> bool:
    """May err towards False: hashes may collide, and blocks are then read as records."""
    halves = np.ascontiguousarray(block.topic_ids).view(np.uint64).reshape(-1, 2)
    hashes = halves[:, 0] * _ODD_1 ^ halves[:, 1] * _ODD_2
    hashes = (hashes ^ hashes >> np.uint64(29)) + block.partition_ids.astype(np.uint64) * _ODD_3
    hashes.sort()
    return not (hashes[1:] == hashes[:-1]).any()
