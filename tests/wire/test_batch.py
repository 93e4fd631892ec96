"""Record batches: layout, round trips, damage."""

import gzip
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.batch import (
    BATCH_BYTES_MAX,
    HEADER_BYTES,
    BatchHeader,
    Compression,
    CorruptBatch,
    Record,
    assign,
    build_batch,
    data_batch,
    encode_value,
    headers,
    is_intact,
    marks_in,
    plain_records,
    read_header,
    read_record,
    read_value,
    records_of,
    repacked,
    verify,
    write_header,
)
from wire.primitives import INT32_MAX
from wire.varint import Malformed

NOW_MS = 1_700_000_000_000

# A control batch as Kafka wrote it: leader change, offset 0, epoch 1.
LEADER_CHANGE = bytes.fromhex(
    "00000000000000000000004f00000001021154eaf90020000000000000018bcfe568000000018bcfe56800"
    "ffffffffffffffffffffffffffff000000013a00000008000000022600000000000102000000010002000000"
    "01000000"
)

optional_bytes = st.none() | st.binary(max_size=200)
records = st.lists(
    st.builds(
        Record,
        key=optional_bytes,
        value=optional_bytes,
        headers=st.lists(st.tuples(st.text(max_size=5), optional_bytes), max_size=3).map(tuple),
        timestamp_ms=st.integers(0, 2**62),
    ),
    min_size=1,
    max_size=6,
)
batches = records.map(lambda some: build_batch(some, timestamp_ms=NOW_MS))


def compressed(values: Sequence[bytes], codec: Compression, body: bytes) -> bytes:
    header = read_header(data_batch(values, timestamp_ms=NOW_MS))
    batch = bytearray(HEADER_BYTES) + body
    write_header(batch, header._replace(attributes=int(codec)))
    return bytes(batch)


def with_field(batch: bytes, offset: int, layout: str, value: int) -> bytes:
    changed = bytearray(batch)
    struct.pack_into(layout, changed, offset, value)
    return bytes(changed)


def test_kafkas_own_batch_is_read_and_written_alike() -> None:
    (header,) = verify(LEADER_CHANGE)
    assert header.is_control
    assert (header.base_offset, header.leader_epoch, header.next_offset) == (0, 1, 1)
    (record,) = records_of(LEADER_CHANGE)
    assert record.key == bytes.fromhex("00000002")
    rebuilt = build_batch([record], timestamp_ms=NOW_MS, leader_epoch=1, is_control=True)
    assert rebuilt == LEADER_CHANGE


@given(records, st.integers(0, 2**40), st.booleans())
def test_records_round_trip(written: list[Record], base_offset: int, transactional: bool) -> None:
    batch = build_batch(
        written,
        timestamp_ms=NOW_MS,
        base_offset=base_offset,
        producer_id=7,
        producer_epoch=3,
        base_sequence=11,
        is_transactional=transactional,
    )
    (header,) = verify(batch)
    assert header.is_transactional is transactional
    assert not header.is_control
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, 11)
    assert header.max_timestamp_ms == max(record.timestamp_ms for record in written)
    expected = [record._replace(offset=base_offset + delta) for delta, record in enumerate(written)]
    assert list(records_of(batch)) == expected


@given(st.lists(st.binary(max_size=100), min_size=1, max_size=80))
def test_data_batch_is_build_batch_of_plain_values(values: list[bytes]) -> None:
    plain = build_batch([Record(value=value) for value in values], timestamp_ms=NOW_MS)
    assert data_batch(values, timestamp_ms=NOW_MS) == plain


@pytest.mark.parametrize("container", [bytes, bytearray, memoryview])
def test_every_kind_of_buffer_is_read(container: type) -> None:
    batch = container(data_batch([b"a", b"b"], timestamp_ms=NOW_MS))
    assert [record.value for record in records_of(batch)] == [b"a", b"b"]
    assert len(verify(batch)) == 1
    assert read_header(assign(batch, base_offset=5, leader_epoch=2)).last_offset == 6


def test_record_without_timestamp_takes_the_batchs() -> None:
    batch = build_batch([Record(value=b"a"), Record(timestamp_ms=90)], timestamp_ms=100)
    assert [record.timestamp_ms for record in records_of(batch)] == [100, 90]
    assert read_header(batch).max_timestamp_ms == 100


def test_log_append_time_overrides_the_records() -> None:
    batch = bytearray(build_batch([Record(timestamp_ms=90)], timestamp_ms=100))
    write_header(batch, read_header(batch)._replace(attributes=8, max_timestamp_ms=777))
    assert [record.timestamp_ms for record in records_of(batch)] == [777]


@given(st.lists(batches, max_size=4), st.integers(0, 2**50), st.integers(0, INT32_MAX))
def test_assign_changes_offsets_and_epoch_only(
    parts: list[bytes], base_offset: int, epoch: int
) -> None:
    assigned = assign(b"".join(parts), base_offset=base_offset, leader_epoch=epoch)
    found = verify(assigned)  # the checksums still hold
    expected_offset = base_offset
    for header, part in zip(found, parts, strict=True):
        before = read_header(part)
        assert header == before._replace(base_offset=expected_offset, leader_epoch=epoch)
        expected_offset = header.next_offset
    assert [r.value for p in parts for r in records_of(p)] == [
        record.value
        for position, header in headers(assigned)
        for record in records_of(assigned[position : position + header.size_bytes])
    ]


def test_assign_keeps_the_gaps_of_compaction() -> None:
    gappy = bytearray(data_batch([b"a"], timestamp_ms=NOW_MS))
    write_header(gappy, read_header(gappy)._replace(last_offset_delta=9))
    assigned = assign(bytes(gappy) * 2, base_offset=100, leader_epoch=0)
    assert [header.base_offset for _, header in headers(assigned)] == [100, 110]


@given(st.lists(batches, min_size=1, max_size=3), st.data())
def test_headers_stop_before_a_torn_batch(parts: list[bytes], data: st.DataObject) -> None:
    log = b"".join(parts)
    end = data.draw(st.integers(0, len(log)))
    whole = [position for position, _ in headers(log)]
    ends = [*whole[1:], len(log)]
    found = [position for position, _ in headers(log[:end])]
    assert found == [p for p, batch_end in zip(whole, ends, strict=True) if batch_end <= end]


@pytest.mark.parametrize("zeros", [1, 17, HEADER_BYTES - 1, HEADER_BYTES, 4096])
def test_zeros_of_a_preallocated_file_are_the_end(zeros: int) -> None:
    batch = data_batch([b"a"], timestamp_ms=NOW_MS)
    assert [position for position, _ in headers(batch * 2 + bytes(zeros))] == [0, len(batch)]
    assert list(headers(bytes(zeros))) == []


@pytest.mark.parametrize("length", [-1, 0, 48, BATCH_BYTES_MAX])
def test_impossible_length_is_corrupt(length: int) -> None:
    batch = with_field(data_batch([b"a"], timestamp_ms=NOW_MS), 8, ">i", length)
    with pytest.raises(CorruptBatch, match="batch length"):
        list(headers(batch))


@pytest.mark.parametrize("magic", [0, 1, 3, -1])
def test_other_magic_is_corrupt(magic: int) -> None:
    batch = with_field(data_batch([b"a"], timestamp_ms=NOW_MS), 16, ">b", magic)
    with pytest.raises(CorruptBatch, match="magic"):
        list(headers(batch))


@pytest.mark.parametrize(("offset", "layout"), [(0, ">q"), (23, ">i"), (57, ">i")])
def test_negative_offsets_and_counts_are_corrupt(offset: int, layout: str) -> None:
    batch = with_field(data_batch([b"a"], timestamp_ms=NOW_MS), offset, layout, -1)
    with pytest.raises(CorruptBatch, match="negative"):
        read_header(batch)


def test_every_flipped_bit_behind_the_epoch_is_detected() -> None:
    batch = data_batch([b"some value"], timestamp_ms=NOW_MS)
    for bit in range(16 * 8, len(batch) * 8):
        damaged = bytearray(batch)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptBatch):
            verify(damaged)


@given(batches)
def test_verify_refuses_a_batch_cut_anywhere(batch: bytes) -> None:
    for end in range(1, len(batch)):
        with pytest.raises(CorruptBatch):
            verify(batch[:end])
    with pytest.raises(CorruptBatch, match="behind the last"):
        verify(batch + b"\0")


@given(batches, st.data())
def test_damaged_records_raise_nothing_but_corrupt_batch(batch: bytes, data: st.DataObject) -> None:
    """Below a checksum that holds, too: a peer may have written nonsense."""
    damaged = bytearray(batch)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(HEADER_BYTES, len(batch) - 1))] = data.draw(
            st.integers(0, 255)
        )
    with suppress(CorruptBatch):
        list(records_of(damaged))


@given(batches)
def test_records_of_a_shortened_body_raise_corrupt_batch(batch: bytes) -> None:
    for end in range(HEADER_BYTES, len(batch)):
        shortened = with_field(batch[:end], 8, ">i", end - 12)
        with pytest.raises(CorruptBatch):
            list(records_of(shortened))
        with pytest.raises(CorruptBatch):
            list(records_of(batch[:end]))


def test_bytes_behind_the_last_record_are_corrupt() -> None:
    batch = data_batch([b"a"], timestamp_ms=NOW_MS) + b"\0"
    batch = with_field(batch, 8, ">i", len(batch) - 12)
    with pytest.raises(CorruptBatch, match="behind the last record"):
        list(records_of(batch))


def test_gzip_records_are_read() -> None:
    values = [b"a" * 100, b"b"]
    plain = data_batch(values, timestamp_ms=NOW_MS)
    batch = compressed(values, Compression.GZIP, gzip.compress(plain[HEADER_BYTES:]))
    assert verify(batch)[0].compression is Compression.GZIP
    assert [record.value for record in records_of(batch)] == values


@pytest.mark.parametrize(
    "body",
    [b"", b"not gzip", gzip.compress(b"x" * 100, mtime=0)[:-4]],
    ids=["empty", "foreign", "cut short"],
)
def test_broken_gzip_is_corrupt(body: bytes) -> None:
    with pytest.raises(CorruptBatch, match="gzip"):
        list(records_of(compressed([b"a"], Compression.GZIP, body)))


@pytest.mark.parametrize("codec", [Compression.SNAPPY, Compression.LZ4, Compression.ZSTD])
def test_compressed_records_need_not_be_whole_for_offsets_to_be_assigned(
    codec: Compression,
) -> None:
    batch = compressed([b"a", b"b"], codec, b"opaque")
    assigned = assign(batch, base_offset=10, leader_epoch=4)
    assert verify(assigned)[0].last_offset == 11
    with pytest.raises(CorruptBatch, match=codec.name.lower()):
        list(records_of(assigned))


@pytest.mark.parametrize("attributes", [0, 8])
def test_marks_are_those_of_the_records(attributes: int) -> None:
    records = [
        Record(key=b"k" * size, value=b"v" * size, timestamp_ms=NOW_MS + size) for size in range(99)
    ]
    batch = bytearray(build_batch([*records, Record(value=b"v")], timestamp_ms=NOW_MS + 7))
    write_header(batch, read_header(batch)._replace(attributes=attributes))
    header = read_header(batch)
    marks = list(marks_in(bytes(batch[HEADER_BYTES:]), header))
    assert marks == [(each.timestamp_ms, each.key is not None) for each in records_of(batch)]


def values(body: bytes, count: int, read: Callable[..., Any]) -> list[bytes | None] | str:
    """As `read` has them, up to where the bytes make no sense."""
    found: list[bytes | None] = []
    position = 0
    try:
        for _ in range(count):
            record, position = read(body, position, BatchHeader(base_timestamp_ms=NOW_MS))
            found.append(record.value if isinstance(record, Record) else record)
    except CorruptBatch as error:
        return f"{len(found)} records, then {error}"
    return found


@given(batches, st.data())
def test_values_are_those_of_the_records(batch: bytes, data: st.DataObject) -> None:
    """Damaged ones, too."""
    count, body = read_header(batch).record_count, bytearray(batch[HEADER_BYTES:])
    for _ in range(data.draw(st.integers(0, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    body = body[: data.draw(st.integers(0, len(body)))]
    assert values(bytes(body), count, read_value) == values(bytes(body), count, read_record)


@pytest.mark.parametrize("at", range(8))
def test_a_value_among_other_things_is_found(at: int) -> None:
    """A byte that is not as in a record with a value only: attributes, timestamp, key, headers."""
    record = encode_value(b"vw", 0)
    for byte in range(256):
        changed = bytearray(record)
        changed[at] = byte
        body = bytes(changed) + bytes(300)
        assert values(body, 1, read_value) == values(body, 1, read_record), changed


def test_strange_bytes_have_no_marks() -> None:
    header = BatchHeader(record_count=1)
    record = encode_value(b"v", 0)
    for end in range(len(record)):
        with pytest.raises(Malformed):
            list(marks_in(record[:end], header))
    for strange in (record + b"x", b"\x00", b"\x04\0\0", b"\x06\0\0\0", b"\xff" * 20):
        with pytest.raises(Malformed):
            list(marks_in(strange, header))


@pytest.mark.parametrize("codec", Compression)
def test_a_repacked_batch_differs_in_its_compression_only(codec: Compression) -> None:
    plain = build_batch(
        [Record(key=b"k", value=b"v" * 100), Record(timestamp_ms=NOW_MS + 5)],
        timestamp_ms=NOW_MS,
        producer_id=7,
        producer_epoch=1,
        base_sequence=3,
        is_transactional=True,
    )
    header = read_header(plain)

    batch = bytes(repacked(header, plain[HEADER_BYTES:], codec, level=3))

    (found,) = verify(batch)
    assert found.compression is codec
    assert list(records_of(batch)) == list(records_of(plain))
    kept = {"attributes": header.attributes, "batch_length": header.batch_length, "crc": header.crc}
    assert found._replace(**kept) == header
    again = repacked(found, plain_records(batch, found), Compression.NONE, level=0)
    assert bytes(again) == plain


def test_unknown_codec_is_corrupt() -> None:
    batch = with_field(data_batch([b"a"], timestamp_ms=NOW_MS), 21, ">h", 5)
    with pytest.raises(CorruptBatch):
        list(records_of(batch))


@pytest.mark.parametrize(
    ("base", "delta", "last"),
    [(-1, 5, -1), (0, 0, 0), (10, 5, 15), (INT32_MAX, 0, INT32_MAX), (INT32_MAX, 1, 0)],
)
def test_last_sequence_wraps_to_zero(base: int, delta: int, last: int) -> None:
    assert BatchHeader(base_sequence=base, last_offset_delta=delta).last_sequence == last


def test_intactness_is_told_for_one_batch_among_many() -> None:
    first, second = (data_batch([value], timestamp_ms=NOW_MS) for value in (b"a", b"b"))
    damaged = bytearray(first + second)
    damaged[-1] ^= 1
    told = [is_intact(damaged, position, header) for position, header in headers(damaged)]
    assert told == [True, False]
