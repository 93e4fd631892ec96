"""The effects on a log that take no waiting, carried out in the driver's thread.

Appends go to the page cache, reads come mostly out of it. What a trim cuts off is not read any
more; its files go in the background.
"""

from typing import assert_never

from quorum.core.effects import (
    Append,
    Configure,
    Durability,
    FindTimestamp,
    Read,
    ReadDone,
    Retain,
    SaveProducers,
    TimestampFound,
    Token,
    Trim,
    Trimmed,
)
from quorum.core.producers import AbortedTransaction
from quorum.log.files.log_queue import LogQueue
from quorum.log.files.segments import SegmentedLog
from wire.batch import headers
from wire.message import replace

__all__ = ["AtOnce", "append", "at_once"]

AtOnce = Append | Read | FindTimestamp | Trim | Retain | Configure | SaveProducers


def at_once(queue: LogQueue, effect: AtOnce) -> ReadDone | TimestampFound | Trimmed | None:
    """What it leads to, if to anything but a sync. Raises `StorageError`."""
    segments = queue.segments
    assert segments is not None, f"{queue.log} is not open: {effect}"
    match effect:
        case Append():
            append(queue, effect)
            return None
        case Read():
            records = segments.read(
                start_offset=effect.start_offset,
                end_offset=effect.end_offset,
                bytes_max=effect.bytes_max,
            )
            aborted = _aborted_in(segments, records) if effect.wants_aborted else ()
            return ReadDone(token=effect.token, log=queue.log, records=records, aborted=aborted)
        case FindTimestamp():
            return _find_timestamp(segments, effect)
        case Trim():
            return _trim(queue, segments, effect.token, effect.start_offset)
        case Retain():
            start_offset = segments.retained_from(
                end_offset=effect.end_offset,
                since_ms=effect.since_ms,
                bytes_max=effect.bytes_max,
            )
            trimmed = _trim(queue, segments, effect.token, start_offset)
            return replace(trimmed, oldest_ms=segments.oldest_ms())
        case Configure():
            segments.configure(effect.settings)
            return None
        case SaveProducers():
            segments.note_producers(effect.producers, end_offset=effect.end_offset)
            return None
        case _:
            assert_never(effect)


def append(queue: LogQueue, effect: Append) -> None:
    assert queue.segments is not None, f"{queue.log} is not open: {effect}"
    if queue.segments.append(effect.records, effect.aborted):
        queue.has_rolled = True
    if effect.durability is Durability.SYNCED:
        queue.want_sync(effect.token)


def _aborted_in(segments: SegmentedLog, records: bytes) -> tuple[AbortedTransaction, ...]:
    found = [header for _, header in headers(records)]
    return segments.aborted_in(found[0].base_offset, found[-1].next_offset) if found else ()


def _trim(queue: LogQueue, segments: SegmentedLog, token: Token, start_offset: int) -> Trimmed:
    before = segments.start_offset
    gone = segments.trim(start_offset)
    queue.doomed += gone
    is_new = queue.has_new_start or segments.start_offset > before
    queue.has_new_start = is_new and segments.starts_inside
    queue.has_rolled = queue.has_rolled or bool(gone)  # the epochs before the records
    return Trimmed(
        token=token,
        log=queue.log,
        start_offset=segments.start_offset,
        size_bytes=segments.size_bytes,
    )


def _find_timestamp(segments: SegmentedLog, effect: FindTimestamp) -> TimestampFound:
    found = segments.find_timestamp(effect.timestamp_ms, end_offset=effect.end_offset)
    return TimestampFound(
        token=effect.token,
        log=effect.log,
        offset=-1 if found is None else found.offset,
        timestamp_ms=-1 if found is None else found.timestamp_ms,
        leader_epoch=-1 if found is None else found.leader_epoch,
    )
