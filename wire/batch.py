"""Record batches of magic 2: the unit of replication, of atomicity and of checksums.

    offset  bytes  field
         0      8  base_offset          assigned by the leader
         8      4  batch_length         of everything behind this field
        12      4  leader_epoch         assigned by the leader
        16      1  magic                2
        17      4  crc                  CRC-32C of everything from byte 21 on
        21      2  attributes           see BatchHeader
        23      4  last_offset_delta
        27      8  base_timestamp_ms
        35      8  max_timestamp_ms
        43      8  producer_id          -1: none
        51      2  producer_epoch       -1: none
        53      4  base_sequence        -1: none
        57      4  record_count
        61      .  records              compressed as a whole, if at all

What the leader assigns lies outside the checksum, so it is rewritten without touching a record.
A reader of batches needs headers only: compressed records pass through unread, and only
`plain_records` opens them. Readers accept foreign bytes: they raise `CorruptBatch`, nothing else.

Source: KIP-98, "Message format"; Kafka's DefaultRecordBatch and DefaultRecord.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from crc32c import crc32c

from wire.compression import Compression, compress, decompress
from wire.primitives import INT32_MAX
from wire.varint import Buffer, Malformed, read_varint, varint

__all__ = [
    "BATCH_BYTES_MAX",
    "HEADER_BYTES",
    "BatchHeader",
    "Compression",
    "CorruptBatch",
    "Record",
    "RecordMark",
    "assign",
    "build_batch",
    "data_batch",
    "encode_value",
    "headers",
    "intact_headers",
    "is_intact",
    "marks_in",
    "placed",
    "plain_records",
    "read_header",
    "read_record",
    "read_value",
    "records_in",
    "records_of",
    "repacked",
    "verify",
    "write_header",
]

_HEADER = struct.Struct(">qiibIhiqqqhii")
_BEFORE_CRC = struct.Struct(">qii")  # base_offset, batch_length, leader_epoch

HEADER_BYTES = _HEADER.size
_LENGTH_EXCLUDES = 12  # base_offset and batch_length itself
_MAGIC_AT = 16
_CHECKED_FROM = 21
_MAGIC = 2
BATCH_BYTES_MAX = 100 << 20  # Kafka's socket.request.max.bytes: no larger one can arrive

_COMPRESSION_MASK = 0b0000_0111
_LOG_APPEND_TIME = 0b0000_1000
_TRANSACTIONAL = 0b0001_0000
_CONTROL = 0b0010_0000
_DELETE_HORIZON = 0b0100_0000
_NULL = 0x01  # the length of what is null: -1


class CorruptBatch(Malformed):
    """The bytes are no intact record batch."""


class BatchHeader(NamedTuple):
    """The fixed part, in the order of the wire; a tuple, since the data path makes many.

    Bits of `attributes`: 0-2 compression, 3 log append time, 4 transactional, 5 control batch,
    6 the base timestamp is when tombstones may go (KIP-534).
    """

    base_offset: int = 0
    batch_length: int = 0
    leader_epoch: int = 0
    magic: int = _MAGIC
    crc: int = 0
    attributes: int = 0
    last_offset_delta: int = 0
    base_timestamp_ms: int = -1
    max_timestamp_ms: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    record_count: int = 0

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def size_bytes(self) -> int:
        return self.batch_length + _LENGTH_EXCLUDES

    @property
    def last_sequence(self) -> int:
        """Sequences wrap from the largest int32 to 0; -1 if the batch has none."""
        if self.base_sequence < 0:
            return self.base_sequence
        return (self.base_sequence + self.last_offset_delta) & INT32_MAX

    @property
    def compression(self) -> Compression:
        if not self.attributes & _COMPRESSION_MASK:
            return Compression.NONE
        try:
            return Compression(self.attributes & _COMPRESSION_MASK)
        except ValueError as error:
            raise CorruptBatch(f"{error}, in the batch at offset {self.base_offset}") from error

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & _LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & _CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        return self.base_timestamp_ms if self.attributes & _DELETE_HORIZON else None


class Record(NamedTuple):
    """One record. A writer sets neither offset nor, usually, timestamp: -1 is the batch's own."""

    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = -1
    offset: int = -1


class RecordMark(NamedTuple):
    timestamp_ms: int
    has_key: bool


_new_header = tuple.__new__  # of a named tuple: what its `_make` does, in one call


# --- reading headers ------------------------------------------------------------------------


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`. The batch need not be whole, and its checksum is not looked at."""
    if len(buffer) - position < HEADER_BYTES:
        raise CorruptBatch(f"a header has {HEADER_BYTES} bytes, not {len(buffer) - position}")
    header = _new_header(BatchHeader, _HEADER.unpack_from(buffer, position))
    if header.magic != _MAGIC:
        raise CorruptBatch(f"magic {header.magic} at byte {position}: only {_MAGIC} is supported")
    if not HEADER_BYTES <= header.batch_length + _LENGTH_EXCLUDES <= BATCH_BYTES_MAX:
        raise CorruptBatch(f"batch length {header.batch_length} at byte {position}")
    if header.base_offset < 0 or header.last_offset_delta < 0 or header.record_count < 0:
        raise CorruptBatch(f"negative offset or count at byte {position}: {header}")
    return header


def headers(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of every whole batch, from the start of `buffer`.

    Ends without complaint at a batch that is cut short, and at zeros (a preallocated file). So
    the valid end is the last position + `size_bytes`. A header that cannot be one raises.
    """
    size = len(buffer)
    if HEADER_BYTES <= size <= BATCH_BYTES_MAX and buffer[_MAGIC_AT] == _MAGIC:
        header = _new_header(BatchHeader, _HEADER.unpack_from(buffer))
        is_sound = min(header.base_offset, header.last_offset_delta, header.record_count) >= 0
        if is_sound and header.batch_length + _LENGTH_EXCLUDES == size:
            return iter(((0, header),))  # one batch, as a commit is, mostly
    return _headers(buffer)


def _headers(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    position, length = 0, len(buffer)
    while length - position >= HEADER_BYTES:
        if buffer[position + _MAGIC_AT] == 0 and not any(
            buffer[position : position + HEADER_BYTES]
        ):
            return
        header = read_header(buffer, position)
        end = position + header.batch_length + _LENGTH_EXCLUDES
        if end > length:
            return
        yield position, header
        position = end


def is_intact(buffer: Buffer, position: int, header: BatchHeader) -> bool:
    """Does the checksum of the whole batch at `position` hold?"""
    view = memoryview(buffer)[position + _CHECKED_FROM : position + header.size_bytes]
    return bool(crc32c(view) == header.crc)


def intact_headers(buffer: Buffer) -> tuple[list[BatchHeader], int]:
    """The headers of the whole batches from the start of `buffer`, and where these end.

    Raises unless all are intact.
    """
    view = memoryview(buffer)
    found = []
    end = 0
    for position, header in headers(buffer):
        end = position + header.batch_length + _LENGTH_EXCLUDES
        if crc32c(view[position + _CHECKED_FROM : end]) != header.crc:
            raise CorruptBatch(f"checksum of the batch at offset {header.base_offset}")
        found.append(header)
    return found, end


def verify(buffer: Buffer) -> tuple[BatchHeader, ...]:
    """The headers of all batches; raises unless `buffer` is whole, intact batches and no more."""
    found, end = intact_headers(buffer)
    if end != len(buffer):
        raise CorruptBatch(f"{len(buffer) - end} bytes behind the last whole batch")
    return tuple(found)


# --- writing --------------------------------------------------------------------------------


def assign(batches: Buffer, *, base_offset: int, leader_epoch: int) -> bytes:
    """`batches` with consecutive offsets from `base_offset`, in `leader_epoch`.

    Records and checksums stay as they are. Gaps inside a batch (compaction) are kept.
    """
    return placed(batches, base_offset=base_offset, leader_epoch=leader_epoch)[0]


def placed(
    batches: Buffer, *, base_offset: int, leader_epoch: int
) -> tuple[bytes, list[BatchHeader]]:
    """Returns what `assign` gives, and the headers in it."""
    view = memoryview(batches)
    parts: list[Buffer] = []
    found: list[BatchHeader] = []
    end = 0
    for position, header in headers(batches):
        end = position + header.batch_length + _LENGTH_EXCLUDES
        start = (base_offset, header.batch_length, leader_epoch)
        parts += _BEFORE_CRC.pack(*start), view[position + _BEFORE_CRC.size : end]
        found.append(_new_header(BatchHeader, (*start, *header[len(start) :])))
        base_offset += header.last_offset_delta + 1
    if end != len(view):
        raise CorruptBatch(f"{len(view) - end} bytes behind the last whole batch")
    return b"".join(parts), found


def write_header(batch: bytearray | memoryview, header: BatchHeader) -> None:
    """Complete a batch in place: records are in, the first 61 bytes are not.

    `batch_length` and `crc` are computed, whatever `header` says.
    """
    length = len(batch) - _LENGTH_EXCLUDES
    _HEADER.pack_into(batch, 0, header.base_offset, length, *header[2:])
    crc = crc32c(memoryview(batch)[_CHECKED_FROM:])
    struct.pack_into(">I", batch, _CHECKED_FROM - 4, crc)


def repacked(
    header: BatchHeader, plain: Buffer, compression: Compression, *, level: int
) -> bytearray:
    """The batch of `header` with these records, compressed by another codec; the rest stays."""
    batch = bytearray(HEADER_BYTES)
    batch += compress(plain, compression, level)
    attributes = (header.attributes & ~_COMPRESSION_MASK) | compression
    write_header(batch, header._replace(attributes=attributes))
    return batch


def build_batch(
    records: Sequence[Record],
    *,
    timestamp_ms: int,
    base_offset: int = 0,
    leader_epoch: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_control: bool = False,
    is_transactional: bool = False,
) -> bytes:
    """An uncompressed batch of `records`, which get consecutive offsets.

    `timestamp_ms` is the base timestamp, and that of records that have none of their own.
    """
    assert records, "a batch has at least one record"
    timestamps = [r.timestamp_ms if r.timestamp_ms >= 0 else timestamp_ms for r in records]
    encoded = (
        _encode_record(record, delta, timestamp - timestamp_ms)
        for delta, (record, timestamp) in enumerate(zip(records, timestamps, strict=True))
    )
    header = BatchHeader(
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=(_CONTROL if is_control else 0) | (_TRANSACTIONAL if is_transactional else 0),
        last_offset_delta=len(records) - 1,
        base_timestamp_ms=timestamp_ms,
        max_timestamp_ms=max(timestamps),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(records),
    )
    return _seal(encoded, header)


def data_batch(values: Sequence[bytes], *, timestamp_ms: int) -> bytes:
    """A batch as the metadata log has them: null keys, no headers, one timestamp."""
    assert values, "a batch has at least one record"
    header = BatchHeader(
        last_offset_delta=len(values) - 1,
        base_timestamp_ms=timestamp_ms,
        max_timestamp_ms=timestamp_ms,
        record_count=len(values),
    )
    return _seal((encode_value(value, delta) for delta, value in enumerate(values)), header)


def _seal(encoded: Iterable[bytes], header: BatchHeader) -> bytes:
    batch = bytearray(HEADER_BYTES)
    for record in encoded:
        batch += record
    write_header(batch, header)
    return bytes(batch)


def encode_value(value: bytes, offset_delta: int) -> bytes:
    """A record as `data_batch` has it: at the batch's timestamp, with a value only."""
    body = b"\0\0%b\x01%b%b\0" % (varint(offset_delta), varint(len(value)), value)
    return varint(len(body)) + body


def _encode_record(record: Record, offset_delta: int, timestamp_delta: int) -> bytes:
    parts = [b"\0", varint(timestamp_delta), varint(offset_delta)]
    parts += (_encode_bytes(record.key), _encode_bytes(record.value), varint(len(record.headers)))
    for name, value in record.headers:
        parts += (_encode_bytes(name.encode()), _encode_bytes(value))
    body = b"".join(parts)
    return varint(len(body)) + body


def _encode_bytes(value: bytes | None) -> bytes:
    return varint(-1) if value is None else varint(len(value)) + value


# --- reading records ------------------------------------------------------------------------


def records_of(batch: Buffer) -> Iterator[Record]:
    """The records of the one batch that `batch` holds or begins with."""
    header = read_header(batch)
    return records_in(plain_records(batch, header), header)


def plain_records(batch: Buffer, header: BatchHeader) -> Buffer:
    """Opens what is behind the header of the batch that `batch` begins with."""
    if header.size_bytes > len(batch):
        raise CorruptBatch(f"{len(batch)} of the {header.size_bytes} bytes of a batch")
    body = memoryview(batch)[HEADER_BYTES : header.size_bytes]
    try:
        return decompress(body, header.compression)
    except CorruptBatch:
        raise
    except Malformed as error:
        raise CorruptBatch(f"{error}, in the batch at offset {header.base_offset}") from error


def records_in(body: Buffer, header: BatchHeader) -> Iterator[Record]:
    """The records of a batch that has been opened: as many as its header says, and no more."""
    position = 0
    for _ in range(header.record_count):
        record, position = read_record(body, position, header)
        yield record
    if position != len(body):
        raise CorruptBatch(f"{len(body) - position} bytes behind the last record")


def marks_in(body: bytes, header: BatchHeader) -> Iterator[RecordMark]:
    """Reads only what is judged of each record of an opened batch, three times as fast as all."""
    position = 0
    for _ in range(header.record_count):
        length, start = read_varint(body, position)
        position = start + length
        if not start < position <= len(body):
            raise CorruptBatch(f"a record of {length} bytes in {len(body) - start}")
        timestamp_delta, at = read_varint(body, start + 1)  # behind the attributes
        _, at = read_varint(body, at)
        if at >= position:
            raise CorruptBatch(f"a record of {length} bytes ends before its key")
        timestamp_ms = header.base_timestamp_ms + timestamp_delta
        if header.is_log_append_time:
            timestamp_ms = header.max_timestamp_ms
        yield RecordMark(timestamp_ms, body[at] != _NULL)
    if position != len(body):
        raise CorruptBatch(f"{len(body) - position} bytes behind the last record")


def read_record(body: Buffer, position: int, header: BatchHeader) -> tuple[Record, int]:
    """The record at `position` of uncompressed bytes, and the position behind it."""
    try:
        length, start = read_varint(body, position)
        end = start + length
        if not start < end <= len(body):
            raise CorruptBatch(f"a record of {length} bytes in {len(body) - start}")
        return _decode_record(bytes(body[start:end]), header), end
    except (Malformed, UnicodeDecodeError) as error:
        raise CorruptBatch(f"{error}, in the batch at offset {header.base_offset}") from error


def read_value(body: bytes, position: int, header: BatchHeader) -> tuple[bytes | None, int]:
    """The value of the record at `position`, and the position behind it, as `read_record` has them.

    Where a record is as `encode_value` writes it, nothing else in it is looked at.
    """
    try:
        length, start = read_varint(body, position)
        _, at = read_varint(body, start + 2)
        size, first = read_varint(body, at + 1)
    except Malformed:
        pass  # `read_record` says what is wrong with it
    else:
        end = first + size + 1
        is_whole = size >= 0 and end == start + length <= len(body)
        has_nothing_else = is_whole and not body[end - 1] and body[at] == _NULL
        if has_nothing_else and body[start : start + 2] == b"\0\0":
            return body[first : end - 1], end
    record, end = read_record(body, position, header)
    return record.value, end


def _decode_record(body: bytes, header: BatchHeader) -> Record:
    """The record that fills `body`. Its first byte, attributes, is unused."""
    timestamp_delta, position = read_varint(body, 1)
    offset_delta, position = read_varint(body, position)
    key, position = _decode_bytes(body, position)
    value, position = _decode_bytes(body, position)
    count, position = read_varint(body, position)
    record_headers: tuple[tuple[str, bytes | None], ...] = ()
    if count:
        record_headers, position = _decode_headers(body, position, count)
    if position != len(body):
        raise CorruptBatch(f"{len(body) - position} bytes behind the headers of a record")
    timestamp_ms = header.base_timestamp_ms + timestamp_delta
    if header.is_log_append_time:
        timestamp_ms = header.max_timestamp_ms
    return Record(key, value, record_headers, timestamp_ms, header.base_offset + offset_delta)


def _decode_headers(
    body: bytes, position: int, count: int
) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    if not 0 <= count <= len(body) - position:
        raise CorruptBatch(f"{count} record headers in {len(body) - position} bytes")
    found = []
    for _ in range(count):
        name, position = _decode_bytes(body, position)
        if name is None:
            raise CorruptBatch("a record header without a name")
        value, position = _decode_bytes(body, position)
        found.append((name.decode(), value))
    return tuple(found), position


def _decode_bytes(body: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = read_varint(body, position)
    if length < 0:
        return None, position
    end = position + length
    if end > len(body):
        raise CorruptBatch(f"{length} bytes of which {len(body) - position} are there")
    return body[position:end], end
