"""What a producer may append to one partition, and when it may be told.

Decides validity (size, checksum, sequence, timestamps), appends, and judges whether enough replicas
have a batch for acks=all; the waiting is in producing.py. Compressed records pass through unread:
only the header of a batch is looked at, so a codec need not be known here, and a per-record
timestamp is not checked beyond the header's largest. Transactions are refused.

Source: KIP-98, KIP-679; Kafka's ReplicaManager.appendRecords, LogValidator, ProduceRequest.
"""

from dataclasses import dataclass

from broker import isr, leading
from broker.idempotence import Duplicate, InSequence, OutOfSequence, base_offset
from broker.partition import LeaderOf, Partition
from broker.topic_settings import TopicSettings
from wire.batch import (
    HEADER_BYTES,
    BatchHeader,
    Compression,
    CorruptBatch,
    is_intact,
    read_header,
    write_header,
)
from wire.errors import ErrorCode

__all__ = [
    "ACKS",
    "PRODUCE_VERSION_MIN",
    "Appended",
    "Refused",
    "Taken",
    "check_batch",
    "required_replicas_error",
    "stamped",
    "take",
    "wait_result",
]

ACKS = (0, 1, -1)
PRODUCE_VERSION_MIN = 3  # magic 2; 0 to 2 are advertised, since librdkafka asks (KAFKA-18659)
_ZSTD_VERSION_MIN = 7
_MAGIC_AT = 16
_LOG_APPEND_TIME = 0b1000
_RECORD_BYTES_MIN = 7  # length, attributes, two deltas, and nothing in key, value and headers


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Nothing was appended."""

    error: ErrorCode
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """The batch lies at `base_offset`, just now or, for a repetition, since earlier."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int = -1
    is_duplicate: bool = False


Taken = Appended | Refused


def take(
    partition: Partition,
    role: LeaderOf,
    records: bytes | None,
    *,
    acks: int,
    api_version: int,
    now_ms: int,
) -> Taken:
    """Validate a client's batch and append it, unless it is invalid or in the log already."""
    if acks == -1:
        error = required_replicas_error(partition, role)
        if error is not ErrorCode.NONE:
            return Refused(
                error=error,
                reason=f"{len(role.isr.members)} in sync: fewer than min.insync.replicas",
            )
    header = check_batch(records, partition.settings, api_version=api_version, now_ms=now_ms)
    if isinstance(header, Refused):
        return header
    assert records is not None
    match partition.open_log.producers.check(header):
        case InSequence():
            return _append(partition, role, records, header, now_ms)
        case Duplicate(batch=batch):
            return Appended(
                base_offset=base_offset(batch),
                last_offset=batch.last_offset,
                log_append_time_ms=(
                    batch.timestamp_ms if partition.settings.is_log_append_time else -1
                ),
                is_duplicate=True,
            )
        case OutOfSequence(error=error, reason=reason):
            return Refused(error=error, reason=reason)


def _append(
    partition: Partition, role: LeaderOf, records: bytes, header: BatchHeader, now_ms: int
) -> Appended:
    log_append_time_ms = -1
    if partition.settings.is_log_append_time:
        records, header = stamped(records, header, now_ms)
        log_append_time_ms = now_ms
    first = leading.append(partition, role, records, header)
    return Appended(
        base_offset=first,
        last_offset=first + header.last_offset_delta,
        log_append_time_ms=log_append_time_ms,
    )


def stamped(records: bytes, header: BatchHeader, now_ms: int) -> tuple[bytes, BatchHeader]:
    """The batch with message.timestamp.type=LogAppendTime: readers then take its largest
    timestamp for every record, so the records themselves stay as they are."""
    header = header._replace(
        attributes=header.attributes | _LOG_APPEND_TIME, max_timestamp_ms=now_ms
    )
    batch = bytearray(records)
    write_header(batch, header)
    return bytes(batch), read_header(batch)


def required_replicas_error(partition: Partition, role: LeaderOf) -> ErrorCode:
    """Are there enough replicas in sync, by the committed ISR, to take a batch for acks=all?"""
    if isr.has_enough_replicas(len(role.isr.members), leading.min_isr(partition, role)):
        return ErrorCode.NONE
    return ErrorCode.NOT_ENOUGH_REPLICAS


def wait_result(partition: Partition, role: LeaderOf) -> ErrorCode:
    """The high watermark has passed a waiting batch: was it replicated widely enough?"""
    members = isr.maximal_isr(role.isr)
    if isr.has_enough_replicas(len(members), leading.min_isr(partition, role)):
        return ErrorCode.NONE
    return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


# --- validation -----------------------------------------------------------------------------


def check_batch(
    records: bytes | None, settings: TopicSettings, *, api_version: int, now_ms: int
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
        or _check_compression(header, api_version)
        or _check_timestamps(header, settings, now_ms)
        or header
    )


def _whole_batch(records: bytes) -> BatchHeader | Refused:
    if len(records) >= HEADER_BYTES and records[_MAGIC_AT] != 2:
        return Refused(
            error=ErrorCode.INVALID_RECORD,
            reason=f"batches of magic {records[_MAGIC_AT]} are not supported, only of 2",
        )
    try:
        header = read_header(records)
    except CorruptBatch as error:
        return Refused(error=ErrorCode.CORRUPT_MESSAGE, reason=str(error))
    if header.size_bytes > len(records):
        return Refused(error=ErrorCode.CORRUPT_MESSAGE, reason="the batch is cut short")
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
    if header.is_transactional:
        return Refused(
            error=ErrorCode.INVALID_TXN_STATE, reason="transactions are not supported yet"
        )
    if header.record_count < 1 or header.record_count != header.last_offset_delta + 1:
        return Refused(
            error=ErrorCode.INVALID_RECORD,
            reason=f"{header.record_count} records with a last delta of {header.last_offset_delta}",
        )
    if header.producer_id >= 0 and (header.base_sequence < 0 or header.producer_epoch < 0):
        return Refused(
            error=ErrorCode.INVALID_RECORD, reason="a producer id without epoch and sequence"
        )
    return None


def _check_compression(header: BatchHeader, api_version: int) -> Refused | None:
    try:
        compression = header.compression
    except CorruptBatch as error:
        return Refused(error=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, reason=str(error))
    if compression is Compression.ZSTD and 0 <= api_version < _ZSTD_VERSION_MIN:
        return Refused(
            error=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            reason=f"zstd needs Produce version {_ZSTD_VERSION_MIN}, not {api_version} (KIP-110)",
        )
    room = header.size_bytes - HEADER_BYTES
    if compression is Compression.NONE and header.record_count * _RECORD_BYTES_MIN > room:
        return Refused(
            error=ErrorCode.INVALID_RECORD,
            reason=f"{room} bytes cannot hold {header.record_count} records",
        )
    return None


def _check_timestamps(header: BatchHeader, settings: TopicSettings, now_ms: int) -> Refused | None:
    if settings.is_log_append_time:
        return None  # whatever the client said is replaced
    if header.is_log_append_time:
        return Refused(
            error=ErrorCode.INVALID_TIMESTAMP, reason="only the broker sets log append time"
        )
    if header.max_timestamp_ms > now_ms + settings.timestamp_after_max_ms:
        return Refused(
            error=ErrorCode.INVALID_TIMESTAMP,
            reason=f"{header.max_timestamp_ms} is later than message.timestamp.after.max.ms allows",
        )
    if 0 <= header.base_timestamp_ms < now_ms - settings.timestamp_before_max_ms:
        return Refused(
            error=ErrorCode.INVALID_TIMESTAMP,
            reason=f"{header.base_timestamp_ms} is earlier than message.timestamp.before.max.ms"
            " allows",
        )
    return None
