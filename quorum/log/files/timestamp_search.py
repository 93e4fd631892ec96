"""The first record of a batch that is young enough: what ListOffsets by timestamp asks for.

Source: Kafka's FileRecords.searchForTimestamp.
"""

from dataclasses import dataclass

from wire.batch import BatchHeader, CorruptBatch, records_of

__all__ = ["FoundTimestamp", "first_record_since"]


@dataclass(frozen=True, slots=True)
class FoundTimestamp:
    offset: int
    timestamp_ms: int
    leader_epoch: int


def first_record_since(
    header: BatchHeader, batch: memoryview, timestamp_ms: int, start_offset: int
) -> FoundTimestamp | None:
    """Inside one batch whose largest timestamp is young enough; None if that lies before the start.

    Where the records do not say, because a client wrote something else than its header claims, the
    batch answers as a whole: that sends a consumer to an earlier record at worst, never past one.
    """
    if not header.record_count:
        return None  # compaction has left nothing of it
    try:
        for record in records_of(batch):
            if record.timestamp_ms < timestamp_ms or record.offset < start_offset:
                continue
            if header.base_offset <= record.offset <= header.last_offset:
                found_ms = min(record.timestamp_ms, header.max_timestamp_ms)
                return FoundTimestamp(record.offset, found_ms, header.leader_epoch)
    except CorruptBatch:
        pass
    else:
        if start_offset > header.base_offset:
            return None
    offset = max(start_offset, header.base_offset)
    return FoundTimestamp(offset, header.max_timestamp_ms, header.leader_epoch)
