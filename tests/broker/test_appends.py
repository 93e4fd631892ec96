"""Which batches a leader takes."""

import pytest

from broker.appends import Refused, check_batch, stamped
from broker.topic_settings import TopicSettings
from tests.broker.brokers import batch_of
from wire.batch import (
    BatchHeader,
    Record,
    build_batch,
    read_header,
    records_of,
    verify,
    write_header,
)
from wire.errors import ErrorCode

NOW = 1_000_000
SETTINGS = TopicSettings()


def check(
    records: bytes | None, *, settings: TopicSettings = SETTINGS, api_version: int = 9
) -> ErrorCode:
    found = check_batch(records, settings, api_version=api_version, now_ms=NOW)
    return found.error if isinstance(found, Refused) else ErrorCode.NONE


def changed(batch: bytes, position: int, value: bytes) -> bytes:
    return batch[:position] + value + batch[position + len(value) :]


def resealed(batch: bytes, **fields: int) -> bytes:
    """A batch with other header fields and a valid checksum."""
    buffer = bytearray(batch)
    write_header(buffer, read_header(batch)._replace(**fields))
    return bytes(buffer)


def test_a_valid_batch_is_taken_with_its_header() -> None:
    found = check_batch(batch_of(b"a", b"b"), SETTINGS, api_version=9, now_ms=NOW)
    assert isinstance(found, BatchHeader)
    assert found.record_count == 2


@pytest.mark.parametrize(
    ("records", "error"),
    [
        (None, ErrorCode.INVALID_RECORD),
        (b"", ErrorCode.INVALID_RECORD),
        (b"short", ErrorCode.CORRUPT_MESSAGE),
        (batch_of(b"a") + batch_of(b"b"), ErrorCode.INVALID_RECORD),
        (batch_of(b"a")[:-1], ErrorCode.CORRUPT_MESSAGE),
        (changed(batch_of(b"a"), 16, b"\x01"), ErrorCode.INVALID_RECORD),
        (changed(batch_of(b"a"), 65, b"\x7f"), ErrorCode.CORRUPT_MESSAGE),
        (resealed(batch_of(b"a"), attributes=0x20), ErrorCode.INVALID_RECORD),
        (resealed(batch_of(b"a"), attributes=0x10), ErrorCode.INVALID_TXN_STATE),
        (resealed(batch_of(b"a"), attributes=0x07), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (resealed(batch_of(b"a"), attributes=0x08), ErrorCode.INVALID_TIMESTAMP),
        (resealed(batch_of(b"a"), record_count=2), ErrorCode.INVALID_RECORD),
        (
            resealed(batch_of(b"a"), record_count=2**31 - 1, last_offset_delta=2**31 - 2),
            ErrorCode.INVALID_RECORD,
        ),
        (resealed(batch_of(b"a"), producer_id=5), ErrorCode.INVALID_RECORD),
    ],
)
def test_what_is_not_one_valid_batch_is_refused(records: bytes | None, error: ErrorCode) -> None:
    assert check(records) is error


def test_compressed_records_pass_through_unread() -> None:
    assert check(resealed(batch_of(b"not really lz4"), attributes=3)) is ErrorCode.NONE


def test_zstd_needs_version_seven() -> None:
    batch = resealed(batch_of(b"a"), attributes=4)
    assert check(batch, api_version=6) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert check(batch, api_version=7) is ErrorCode.NONE


def test_a_batch_larger_than_the_topic_allows_is_refused() -> None:
    batch = batch_of(b"a" * 100)
    exact = TopicSettings(max_message_bytes=len(batch))
    smaller = TopicSettings(max_message_bytes=len(batch) - 1)
    assert check(batch, settings=exact) is ErrorCode.NONE
    assert check(batch, settings=smaller) is ErrorCode.MESSAGE_TOO_LARGE


def test_timestamps_far_from_now_are_refused() -> None:
    settings = TopicSettings(timestamp_after_max_ms=10, timestamp_before_max_ms=20)
    for timestamp_ms, error in (
        (NOW + 10, ErrorCode.NONE),
        (NOW + 11, ErrorCode.INVALID_TIMESTAMP),
        (NOW - 20, ErrorCode.NONE),
        (NOW - 21, ErrorCode.INVALID_TIMESTAMP),
    ):
        batch = batch_of(b"a", timestamp_ms=timestamp_ms)
        assert check(batch, settings=settings) is error, timestamp_ms


def test_log_append_time_replaces_every_timestamp_and_keeps_the_checksum() -> None:
    batch = build_batch([Record(value=b"a"), Record(value=b"b", timestamp_ms=7)], timestamp_ms=5)

    records, header = stamped(batch, read_header(batch), NOW)

    assert verify(records) == (header,)
    assert {record.timestamp_ms for record in records_of(records)} == {NOW}
