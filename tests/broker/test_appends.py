"""Which batches a leader takes."""

import pytest

from broker.partition.appends import kept_form
from broker.partition.batch_checks import Refused, check_batch, check_records
from broker.partition.topic_settings import TopicSettings
from quorum.core.log_settings import LogSettings
from tests.broker.brokers import batch_of
from wire.batch import (
    HEADER_BYTES,
    BatchHeader,
    Record,
    assign,
    build_batch,
    plain_records,
    read_header,
    records_of,
    repacked,
    verify,
    write_header,
)
from wire.capabilities import lacking
from wire.compression import Compression
from wire.errors import ErrorCode
from wire.messages.producing import ProduceRequest
from wire.primitives import INT64_MAX

NOW = 1_000_000
SETTINGS = TopicSettings()


def check(
    records: bytes | None, *, settings: TopicSettings = SETTINGS, api_version: int = 9
) -> ErrorCode:
    found = check_batch(records, settings, lacking(ProduceRequest, api_version))
    return found.error if isinstance(found, Refused) else ErrorCode.NONE


def kept(records: bytes, settings: TopicSettings) -> bytes | Refused:
    """The batch as the topic keeps it, or why it does not."""
    header = check_batch(records, settings)
    if isinstance(header, Refused):
        return header
    checked = check_records(records, header, settings, partition="t-0", now_ms=NOW)
    if isinstance(checked, Refused):
        return checked
    form = kept_form(records, header, checked, settings, NOW)
    return form if isinstance(form, Refused) else form[0]


def refusal(records: bytes, settings: TopicSettings) -> Refused:
    found = kept(records, settings)
    assert isinstance(found, Refused)
    return found


def taken(records: bytes, settings: TopicSettings) -> bytes:
    found = kept(records, settings)
    assert isinstance(found, bytes), found
    return found


def places(refused: Refused) -> list[int]:
    return [error.batch_index for error in refused.record_errors]


def changed(batch: bytes, position: int, value: bytes) -> bytes:
    return batch[:position] + value + batch[position + len(value) :]


def resealed(batch: bytes, **fields: int) -> bytes:
    """A batch with other header fields and a valid checksum."""
    buffer = bytearray(batch)
    write_header(buffer, read_header(batch)._replace(**fields))
    return bytes(buffer)


def test_a_valid_batch_is_taken_with_its_header() -> None:
    found = check_batch(batch_of(b"a", b"b"), SETTINGS)
    assert isinstance(found, BatchHeader)
    assert found.record_count == 2


@pytest.mark.parametrize(
    ("records", "error"),
    [
        (None, ErrorCode.INVALID_RECORD),
        (b"", ErrorCode.INVALID_RECORD),
        (b"short", ErrorCode.INVALID_RECORD),
        (batch_of(b"a") + batch_of(b"b"), ErrorCode.INVALID_RECORD),
        (batch_of(b"a")[:-1], ErrorCode.INVALID_RECORD),
        (changed(batch_of(b"a"), 16, b"\x01"), ErrorCode.INVALID_RECORD),
        (changed(batch_of(b"a"), 16, b"\x03"), ErrorCode.CORRUPT_MESSAGE),
        (assign(batch_of(b"a"), base_offset=7, leader_epoch=0), ErrorCode.INVALID_RECORD),
        (changed(batch_of(b"a"), 65, b"\x7f"), ErrorCode.CORRUPT_MESSAGE),
        (resealed(batch_of(b"a"), attributes=0x20), ErrorCode.INVALID_RECORD),
        (resealed(batch_of(b"a"), attributes=0x10), ErrorCode.INVALID_RECORD),
        (resealed(batch_of(b"a"), attributes=0x07), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
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


def test_a_batch_larger_than_a_segment_is_refused() -> None:
    batch = batch_of(b"a" * 100)
    exact = TopicSettings(log=LogSettings(segment_bytes=len(batch)))
    smaller = TopicSettings(log=LogSettings(segment_bytes=len(batch) - 1))
    assert taken(batch, exact) == batch
    assert refusal(batch, smaller).error is ErrorCode.RECORD_LIST_TOO_LARGE


# --- records --------------------------------------------------------------------------------

KEYED, KEYLESS = Record(key=b"", value=b"v"), Record(value=b"v")
COMPACTED = TopicSettings(is_compacted=True)


def records_batch(*records: Record, timestamp_ms: int = NOW) -> bytes:
    return build_batch(records, timestamp_ms=timestamp_ms)


def test_a_compacted_topic_takes_records_with_keys_only() -> None:
    """Apache Kafka 4.3.1's answer to the same batch, word for word."""
    message = "Compacted topic cannot accept message without key in topic partition t-0"
    refused = refusal(records_batch(KEYED, KEYLESS, KEYED, KEYLESS), COMPACTED)
    assert refused.error is ErrorCode.INVALID_RECORD
    assert places(refused) == [1, 3]
    assert {error.batch_index_error_message for error in refused.record_errors} == {message}
    assert refused.reason == (
        "One or more records have been rejected due to 2 record errors in total, and only showing"
        f" the first three errors at most: [RecordError(batchIndex=1, message='{message}'),"
        f" RecordError(batchIndex=3, message='{message}')]"
    )
    assert taken(records_batch(KEYED), COMPACTED) == records_batch(KEYED)


def test_the_sentence_shows_three_records_and_the_list_all() -> None:
    refused = refusal(records_batch(*[KEYLESS] * 5), COMPACTED)
    assert places(refused) == [0, 1, 2, 3, 4]
    assert refused.reason is not None
    assert refused.reason.count("RecordError") == 3


@pytest.mark.parametrize("codec", Compression)
def test_keys_are_looked_for_in_compressed_batches(codec: Compression) -> None:
    plain = records_batch(KEYED, KEYLESS)
    batch = bytes(repacked(read_header(plain), plain[HEADER_BYTES:], codec, level=1))
    assert places(refusal(batch, COMPACTED)) == [1]
    assert isinstance(taken(batch, SETTINGS), bytes)


@pytest.mark.parametrize(
    "batch",
    [
        resealed(batch_of(b"not really lz4"), attributes=3),
        resealed(batch_of(b"a", b"b"), record_count=1, last_offset_delta=0),
        resealed(batch_of(b"a" * 50), record_count=2, last_offset_delta=1),
    ],
    ids=["not compressed", "too many", "too few"],
)
def test_records_that_are_looked_at_are_what_the_header_says(batch: bytes) -> None:
    assert refusal(batch, COMPACTED).error is ErrorCode.INVALID_RECORD
    assert taken(batch, SETTINGS) == batch


def test_more_records_than_can_be_looked_at_are_refused() -> None:
    batch = repacked(read_header(batch_of(b"")), bytes(1 << 20), Compression.GZIP, level=1)
    many = resealed(bytes(batch), record_count=1_000_001, last_offset_delta=1_000_000)
    assert refusal(many, COMPACTED).error is ErrorCode.MESSAGE_TOO_LARGE
    assert taken(many, SETTINGS) == many


def test_timestamps_far_from_now_are_refused() -> None:
    settings = TopicSettings(timestamp_after_max_ms=10, timestamp_before_max_ms=20)
    for timestamp_ms, error in (
        (NOW + 10, ErrorCode.NONE),
        (NOW + 11, ErrorCode.INVALID_TIMESTAMP),
        (NOW - 20, ErrorCode.NONE),
        (NOW - 21, ErrorCode.INVALID_TIMESTAMP),
        (-1, ErrorCode.NONE),  # no timestamp
    ):
        found = kept(batch_of(b"a", timestamp_ms=timestamp_ms), settings)
        assert (found.error if isinstance(found, Refused) else ErrorCode.NONE) is error


def test_each_timestamp_out_of_range_is_named() -> None:
    """Also where the first record is in time, or the header tells a smaller largest one."""
    settings = TopicSettings(timestamp_after_max_ms=10, timestamp_before_max_ms=20)
    batch = records_batch(
        KEYED, Record(timestamp_ms=NOW - 21), Record(timestamp_ms=NOW + 11), KEYED
    )
    for lie_ms in (NOW + 11, NOW):
        refused = refusal(resealed(batch, max_timestamp_ms=lie_ms), settings)
        assert refused.error is ErrorCode.INVALID_TIMESTAMP
        assert refused.reason == "One or more records have been rejected due to invalid timestamp"
        assert [
            (error.batch_index, error.batch_index_error_message) for error in refused.record_errors
        ] == [
            (
                index,
                f"Timestamp {timestamp_ms} of message with offset {index} is out of range."
                f" The timestamp should be within [{NOW - 20}, {NOW + 10}]",
            )
            for index, timestamp_ms in ((1, NOW - 21), (2, NOW + 11))
        ]


def test_a_key_that_is_missing_hides_a_wrong_timestamp_of_the_record() -> None:
    settings = TopicSettings(is_compacted=True, timestamp_after_max_ms=10)
    late = NOW + 11
    refused = refusal(records_batch(Record(timestamp_ms=late)), settings)
    assert (refused.error, places(refused)) == (ErrorCode.INVALID_RECORD, [0])
    both = records_batch(Record(timestamp_ms=late), Record(key=b"k", timestamp_ms=late))
    refused = refusal(both, settings)
    assert (refused.error, places(refused)) == (ErrorCode.INVALID_TIMESTAMP, [0, 1])


def test_a_largest_timestamp_that_no_record_has_is_corrected() -> None:
    batch = resealed(batch_of(b"a", timestamp_ms=NOW), max_timestamp_ms=NOW + 10**9)
    assert taken(batch, SETTINGS) == batch_of(b"a", timestamp_ms=NOW)


def test_the_type_of_timestamps_is_not_the_clients_to_choose() -> None:
    """As in Kafka: cleared where the topic has CreateTime, refused where it has the same type."""
    batch = resealed(batch_of(b"a", timestamp_ms=NOW), attributes=0x08)
    assert taken(batch, SETTINGS) == batch_of(b"a", timestamp_ms=NOW)
    refused = refusal(batch, TopicSettings(is_log_append_time=True))
    assert refused.error is ErrorCode.INVALID_TIMESTAMP
    (error,) = refused.record_errors
    assert error.batch_index_error_message == (
        f"Invalid timestamp type in message DefaultRecord(offset=0, timestamp={NOW}, key=0 bytes,"
        " value=1 bytes). Producer should not set timestamp type to LogAppendTime."
    )


def test_log_append_time_replaces_every_timestamp_and_keeps_the_checksum() -> None:
    batch = build_batch([Record(value=b"a"), Record(value=b"b", timestamp_ms=7)], timestamp_ms=5)

    records = taken(batch, TopicSettings(is_log_append_time=True))

    (header,) = verify(records)
    assert (header.base_timestamp_ms, header.max_timestamp_ms) == (5, NOW)
    assert {record.timestamp_ms for record in records_of(records)} == {NOW}


# --- compression ----------------------------------------------------------------------------


@pytest.mark.parametrize("sent", Compression)
@pytest.mark.parametrize("wanted", [None, *Compression])
@pytest.mark.parametrize("is_log_append_time", [False, True])
def test_a_topic_keeps_batches_in_its_own_compression(
    sent: Compression, wanted: Compression | None, is_log_append_time: bool
) -> None:
    plain = build_batch(
        [Record(key=b"k", value=b"v" * 90), Record(timestamp_ms=NOW + 2), KEYED],
        timestamp_ms=NOW,
        producer_id=7,
        producer_epoch=1,
        base_sequence=3,
    )
    batch = bytes(repacked(read_header(plain), plain[HEADER_BYTES:], sent, level=1))
    settings = TopicSettings(
        compression=wanted, compression_level=1, is_log_append_time=is_log_append_time
    )

    (found,) = verify(stored := taken(batch, settings))

    assert found.compression is (sent if wanted is None else wanted)
    assert plain_records(stored, found) == plain[HEADER_BYTES:]
    header = read_header(plain)
    assert found.max_timestamp_ms == (NOW if is_log_append_time else NOW + 2)
    assert found.is_log_append_time == is_log_append_time
    assert found[-4:] == header[-4:], "producer, sequence, count"
    assert found.base_timestamp_ms == header.base_timestamp_ms
    if wanted in (None, sent) and not is_log_append_time:
        assert stored == batch


def test_a_batch_of_the_topics_codec_is_not_opened() -> None:
    batch = resealed(batch_of(b"not really gzip"), attributes=1)
    assert taken(batch, TopicSettings(compression=Compression.GZIP)) == batch
    refused = refusal(batch, TopicSettings(compression=Compression.LZ4))
    assert refused.error is ErrorCode.INVALID_RECORD


def test_the_largest_batch_is_meant_in_the_topics_compression_too() -> None:
    plain = batch_of(b"a" * 1000)
    batch = bytes(repacked(read_header(plain), plain[HEADER_BYTES:], Compression.GZIP, level=9))
    exact = TopicSettings(compression=Compression.NONE, max_message_bytes=len(plain))
    smaller = TopicSettings(compression=Compression.NONE, max_message_bytes=len(plain) - 1)
    assert taken(batch, exact) == plain
    assert refusal(batch, smaller).error is ErrorCode.MESSAGE_TOO_LARGE


def test_what_no_reader_of_batches_takes_is_refused_in_the_topics_compression(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A hundred megabytes of zeros come in three kilobytes; here all is smaller."""
    plain = batch_of(bytes(3000))
    header = read_header(plain)
    batch = bytes(repacked(header, plain_records(plain, header), Compression.ZSTD, level=3))
    for owner in ("wire.batch", "broker.partition.appends"):
        monkeypatch.setattr(f"{owner}.BATCH_BYTES_MAX", len(plain) - 1)
    for bytes_max in (1000, 1 << 30):
        open_ = TopicSettings(compression=Compression.NONE, max_message_bytes=bytes_max)
        assert refusal(batch, open_).error is ErrorCode.MESSAGE_TOO_LARGE


def test_a_timestamp_that_no_header_holds_is_refused() -> None:
    """However far from now a topic takes them."""
    record = Record(key=b"k", timestamp_ms=1)
    batch = resealed(records_batch(record, timestamp_ms=0), base_timestamp_ms=INT64_MAX)
    anything = TopicSettings(is_compacted=True, timestamp_after_max_ms=INT64_MAX)
    assert refusal(batch, anything).error is ErrorCode.INVALID_TIMESTAMP
