"""These rules say what a producer may append to a partition, and when its batch is acknowledged.

A batch has to be valid (batch_checks.py), the next of its producer (idempotence.py), and part of
its transaction if it has one (transactional.py). It is brought into the form in which it is kept,
and appended. With acks=all it is acknowledged when enough replicas have it; producing.py does the
waiting.

A batch is kept as it came, but for offsets, wherever the topic lets it. A topic whose
compression.type names a codec has all its batches in that codec; LogAppendTime replaces timestamps.

Source: KIP-98, KIP-679; Kafka's ReplicaManager.appendRecords, LogValidator, UnifiedLog.append.
"""

from dataclasses import dataclass

from broker.partition import isr
from broker.partition.batch_checks import Refused, check_batch, check_records
from broker.partition.idempotence import (
    Duplicate,
    InSequence,
    OutOfSequence,
    base_offset,
    check_sequence,
)
from broker.partition.partition import Partition
from broker.partition.topic_settings import TopicSettings
from broker.partition.transactional import Guard, check_beginning, check_verified
from wire.batch import (
    BATCH_BYTES_MAX,
    BatchHeader,
    CorruptBatch,
    plain_records,
    read_header,
    repacked,
    write_header,
)
from wire.capabilities import Lacking
from wire.errors import ErrorCode

__all__ = [
    "ACKS",
    "Appended",
    "Taken",
    "kept_form",
    "required_replicas_error",
    "stamped",
    "take",
    "wait_result",
]

ACKS = (0, 1, -1)
_LOG_APPEND_TIME = 0b1000


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
    records: bytes | None,
    *,
    acks: int,
    now_ms: int,
    lacking: Lacking,
    guard: Guard | None = None,
) -> Taken:
    """Validate a client's batch and append it, unless it is invalid or in the log already.

    `guard` is the one under which its transaction has been verified.
    """
    if acks == -1:
        error = required_replicas_error(partition)
        if error is not ErrorCode.NONE:
            return Refused(
                error=error,
                reason=f"{len(partition.led.isr.members)} in sync: fewer than min.insync.replicas",
            )
    settings = partition.settings
    header = check_batch(records, settings, lacking)
    if isinstance(header, Refused):
        return header
    assert records is not None
    checked = check_records(records, header, settings, partition=partition.name, now_ms=now_ms)
    if isinstance(checked, Refused):
        return checked
    match _check_producer(partition, header, guard):
        case InSequence():
            kept = kept_form(records, header, checked, settings, now_ms)
            if isinstance(kept, Refused):
                return kept
            return _append(partition, *kept)
        case Duplicate(batch=batch):
            return Appended(
                base_offset=base_offset(batch),
                last_offset=batch.last_offset,
                log_append_time_ms=(batch.timestamp_ms if settings.is_log_append_time else -1),
                is_duplicate=True,
            )
        case Refused() as refused:
            return refused


def _check_producer(
    partition: Partition, header: BatchHeader, guard: Guard | None
) -> InSequence | Duplicate | Refused:
    entry = partition.open_log.producers.entry(header.producer_id)
    verdict = check_sequence(entry, header)
    if isinstance(verdict, Duplicate):
        return verdict
    is_transactional, current = header.is_transactional, None
    if is_transactional:
        current = partition.led.guards.of(header.producer_id)
        unverified = check_verified(entry, header, current=current, shown=guard)
        if unverified is not None:
            return unverified
    if isinstance(verdict, OutOfSequence):
        return Refused(error=verdict.error, reason=verdict.reason)
    if not is_transactional and (entry is None or not entry.transactions):
        return verdict
    return check_beginning(entry, header, current) or verdict


def _append(partition: Partition, records: bytes, header: BatchHeader) -> Appended:
    first = partition.append(records, header)
    is_stamped = partition.settings.is_log_append_time
    return Appended(
        base_offset=first,
        last_offset=first + header.last_offset_delta,
        log_append_time_ms=header.max_timestamp_ms if is_stamped else -1,
    )


def kept_form(
    records: bytes,
    header: BatchHeader,
    checked: BatchHeader,
    settings: TopicSettings,
    now_ms: int,
) -> tuple[bytes, BatchHeader] | Refused:
    """The batch as it goes into the log, but for its offsets.

    `header` is that of `records`; `checked` is what it should have been.
    """
    wanted = stamped(checked, settings, now_ms)
    codec = settings.compression
    if codec is not None and codec is not header.compression:
        try:
            plain = plain_records(records, header)
        except CorruptBatch as error:
            return Refused(error=ErrorCode.INVALID_RECORD, reason=str(error))
        batch = repacked(wanted, plain, codec, level=settings.compression_level)
    elif wanted == header:
        return _misfit(header.size_bytes, settings) or (records, header)
    else:
        batch = bytearray(records)
        write_header(batch, wanted)
    return _misfit(len(batch), settings) or (bytes(batch), read_header(batch))


def stamped(header: BatchHeader, settings: TopicSettings, now_ms: int) -> BatchHeader:
    """The header with the topic's type of timestamps, which is not the client's to choose.

    Readers take the largest timestamp of a batch with LogAppendTime for each of its records, so
    the records themselves stay as they are.
    """
    if settings.is_log_append_time:
        attributes = header.attributes | _LOG_APPEND_TIME
        return header._replace(attributes=attributes, max_timestamp_ms=now_ms)
    if header.is_log_append_time:
        return header._replace(attributes=header.attributes & ~_LOG_APPEND_TIME)
    return header


def _misfit(size_bytes: int, settings: TopicSettings) -> Refused | None:
    """A batch lies within one segment, and is no larger in the topic's codec than it may be.

    No topic may have one that no reader of batches takes.
    """
    bytes_max = min(settings.max_message_bytes, BATCH_BYTES_MAX)
    if size_bytes > bytes_max:
        return Refused(
            error=ErrorCode.MESSAGE_TOO_LARGE,
            reason=f"{size_bytes} bytes with the topic's compression.type are more than"
            f" max.message.bytes, {bytes_max}",
        )
    if size_bytes > settings.log.segment_bytes:
        return Refused(
            error=ErrorCode.RECORD_LIST_TOO_LARGE,
            reason=f"{size_bytes} bytes are more than segment.bytes, {settings.log.segment_bytes}",
        )
    return None


def required_replicas_error(partition: Partition) -> ErrorCode:
    """Are there enough replicas in sync, by the committed ISR, to take a batch for acks=all?"""
    if isr.has_enough_replicas(len(partition.led.isr.members), partition.min_isr):
        return ErrorCode.NONE
    return ErrorCode.NOT_ENOUGH_REPLICAS


def wait_result(partition: Partition) -> ErrorCode:
    """The high watermark has passed a waiting batch: was it replicated widely enough?"""
    members = isr.maximal_isr(partition.led.isr)
    if isr.has_enough_replicas(len(members), partition.min_isr):
        return ErrorCode.NONE
    return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
