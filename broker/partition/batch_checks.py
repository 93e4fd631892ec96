"""Has a producer sent exactly one valid batch, and does the topic accept its records?

The header of every batch is checked. Records are looked at only where a topic cannot be judged
without them: keys in a compacted topic, each timestamp where the topic bounds them or where the
header says that one is out of bounds. All other batches stay closed, so that a client whose header
does not say what its records are harms its readers, as far as they believe it.

Source: Kafka's LogValidator, UnifiedLog.analyzeAndValidateRecords and ProduceRequest.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from broker.partition.topic_settings import TopicSettings
from wire.batch import (
    HEADER_BYTES,
    BatchHeader,
    CorruptBatch,
    Record,
    RecordMark,
    is_intact,
    marks_in,
    plain_records,
    read_header,
    records_in,
)
from wire.capabilities import NOTHING_LACKING, Capability, Lacking
from wire.compression import Compression
from wire.errors import ErrorCode
from wire.messages.producing import BatchIndexAndErrorMessage
from wire.primitives import INT64_MAX
from wire.varint import Malformed

__all__ = ["Refused", "check_batch", "check_records"]

_MAGIC_AT = 16
_NO_TIMESTAMP = -1
_MAGICS_BEFORE = (0, 1)
_RECORD_BYTES_MIN = 7  # length, attributes, two deltas, and nothing in key, value and headers
_RECORDS_MAX = 1_000_000  # these take three seconds, in which a broker does nothing else
_SHOWN = 3  # errors of records within the sentence about all of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Nothing was appended."""

    error: ErrorCode
    reason: str | None = None
    record_errors: tuple[BatchIndexAndErrorMessage, ...] = ()


# --- the header ---------------------------------------------------------------------------


def check_batch(
    records: bytes | None, settings: TopicSettings, lacking: Lacking = NOTHING_LACKING
) -> BatchHeader | Refused:
    """The header of the one valid batch that `records` is."""
    if not records:
        return Refused(error=ErrorCode.INVALID_RECORD, reason="a request has one batch a partition")
    header = _whole_batch(records)
    if isinstance(header, Refused):
        return header
    return (
        _check_size(header, settings)
        or _check_checksum(records, header)
        or _check_content(header)
        or _check_compression(header, lacking)
        or header
    )


def _whole_batch(records: bytes) -> BatchHeader | Refused:
    if len(records) >= HEADER_BYTES and records[_MAGIC_AT] in _MAGICS_BEFORE:
        return Refused(
            error=ErrorCode.INVALID_RECORD,
            reason=f"batches of magic {records[_MAGIC_AT]} are not supported, only of 2",
        )
    if len(records) < HEADER_BYTES:
        return Refused(
            error=ErrorCode.INVALID_RECORD,
            reason=f"a batch has at least {HEADER_BYTES} bytes, not {len(records)}",
        )
    try:
        header = read_header(records)
    except CorruptBatch as error:
        return Refused(error=ErrorCode.CORRUPT_MESSAGE, reason=str(error))
    if header.size_bytes > len(records):
        return Refused(error=ErrorCode.INVALID_RECORD, reason="the batch is cut short")
    if header.size_bytes < len(records):
        return Refused(
            error=ErrorCode.INVALID_RECORD, reason="a request has one batch a partition, not more"
        )
    return header


def _check_size(header: BatchHeader, settings: TopicSettings) -> Refused | None:
    if header.size_bytes <= settings.max_message_bytes:
        return None
    return Refused(
        error=ErrorCode.MESSAGE_TOO_LARGE,
        reason=f"{header.size_bytes} bytes are more than max.message.bytes,"
        f" {settings.max_message_bytes}",
    )


def _check_checksum(records: bytes, header: BatchHeader) -> Refused | None:
    if is_intact(records, 0, header):
        return None
    return Refused(error=ErrorCode.CORRUPT_MESSAGE, reason="the checksum does not hold")


def _check_content(header: BatchHeader) -> Refused | None:
    if header.is_control:
        return Refused(error=ErrorCode.INVALID_RECORD, reason="clients write no control batches")
    if header.is_transactional and header.producer_id < 0:
        return Refused(
            error=ErrorCode.INVALID_RECORD, reason="a transactional batch without a producer id"
        )
    if header.record_count < 1 or header.record_count != header.last_offset_delta + 1:
        return Refused(
            error=ErrorCode.INVALID_RECORD,
            reason=f"{header.record_count} records with a last delta of {header.last_offset_delta}",
        )
    if header.base_offset != 0:
        return Refused(
            error=ErrorCode.INVALID_RECORD,
            reason=f"the first offset of a new batch is 0, not {header.base_offset}",
        )
    if header.producer_id >= 0 and (header.base_sequence < 0 or header.producer_epoch < 0):
        return Refused(
            error=ErrorCode.INVALID_RECORD, reason="a producer id without epoch and sequence"
        )
    return None


def _check_compression(header: BatchHeader, lacking: Lacking) -> Refused | None:
    try:
        compression = header.compression
    except CorruptBatch as error:
        return Refused(error=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, reason=str(error))
    if compression is Compression.ZSTD and Capability.SENDS_ZSTD in lacking:
        return Refused(
            error=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            reason="zstd needs a later version of Produce (KIP-110)",
        )
    room = header.size_bytes - HEADER_BYTES
    if compression is Compression.NONE and header.record_count * _RECORD_BYTES_MIN > room:
        return Refused(
            error=ErrorCode.INVALID_RECORD,
            reason=f"{room} bytes cannot hold {header.record_count} records",
        )
    return None


# --- the records ----------------------------------------------------------------------------


def _needs_records(header: BatchHeader, settings: TopicSettings, now_ms: int) -> bool:
    """Is the header too little to judge the batch by?"""
    if settings.is_compacted:
        return True
    if settings.is_log_append_time:
        return header.is_log_append_time
    return (
        settings.timestamp_before_max_ms <= now_ms
        or header.max_timestamp_ms > now_ms + settings.timestamp_after_max_ms
    )


def check_records(
    records: bytes,
    header: BatchHeader,
    settings: TopicSettings,
    *,
    partition: str,
    now_ms: int,
) -> BatchHeader | Refused:
    """The header, with the largest timestamp that the records have if they were looked at.

    `partition` is the name in messages.
    """
    if not _needs_records(header, settings, now_ms):
        return header
    if header.record_count > _RECORDS_MAX:
        return Refused(
            error=ErrorCode.MESSAGE_TOO_LARGE,
            reason=f"{header.record_count} records are more than can be looked at in one batch of"
            f" this topic, {_RECORDS_MAX}",
        )
    try:
        plain = bytes(plain_records(records, header))
        marks = list(marks_in(plain, header))
        if header.is_log_append_time and settings.is_log_append_time:
            untimely = dict(_stamped_by_client(plain, header))
        else:
            untimely = dict(_out_of_range(marks, settings, now_ms))
    except Malformed as error:
        return Refused(error=ErrorCode.INVALID_RECORD, reason=str(error))
    keyless = _keyless(marks, partition) if settings.is_compacted else {}
    errors = untimely | keyless
    if not errors:
        return header._replace(max_timestamp_ms=max(mark.timestamp_ms for mark in marks))
    listed = tuple(
        BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=errors[index])
        for index in sorted(errors)
    )
    if untimely.keys() - keyless.keys():
        return Refused(
            error=ErrorCode.INVALID_TIMESTAMP,
            reason="One or more records have been rejected due to invalid timestamp",
            record_errors=listed,
        )
    return Refused(error=ErrorCode.INVALID_RECORD, reason=_in_words(listed), record_errors=listed)


def _keyless(marks: Iterable[RecordMark], partition: str) -> dict[int, str]:
    """Compaction keeps the last record of each key: one without a key could never be kept."""
    message = f"Compacted topic cannot accept message without key in topic partition {partition}"
    return {index: message for index, mark in enumerate(marks) if not mark.has_key}


def _out_of_range(
    marks: Iterable[RecordMark], settings: TopicSettings, now_ms: int
) -> Iterator[tuple[int, str]]:
    """Index and message of records whose timestamps the topic refuses."""
    if settings.is_log_append_time:
        return  # whatever the client said is replaced
    first_ms = now_ms - settings.timestamp_before_max_ms
    last_ms = min(now_ms + settings.timestamp_after_max_ms, INT64_MAX)
    for index, (timestamp_ms, _) in enumerate(marks):
        if timestamp_ms != _NO_TIMESTAMP and not first_ms <= timestamp_ms <= last_ms:
            yield (
                index,
                f"Timestamp {timestamp_ms} of message with offset {index} is out of range. The"
                f" timestamp should be within [{first_ms}, {last_ms}]",
            )


def _stamped_by_client(plain: bytes, header: BatchHeader) -> Iterator[tuple[int, str]]:
    for index, record in enumerate(records_in(plain, header)):
        yield (
            index,
            f"Invalid timestamp type in message {_described(record)}. Producer should not set"
            " timestamp type to LogAppendTime.",
        )


def _described(record: Record) -> str:
    """As Kafka names a record."""
    return (
        f"DefaultRecord(offset={record.offset}, timestamp={record.timestamp_ms},"
        f" key={len(record.key or b'')} bytes, value={len(record.value or b'')} bytes)"
    )


def _in_words(errors: tuple[BatchIndexAndErrorMessage, ...]) -> str:
    """Kafka's sentence, with Kafka's way of writing a list."""
    shown = ", ".join(
        f"RecordError(batchIndex={error.batch_index}, message='{error.batch_index_error_message}')"
        for error in errors[:_SHOWN]
    )
    return (
        f"One or more records have been rejected due to {len(errors)} record errors in total, and"
        f" only showing the first three errors at most: [{shown}]"
    )
