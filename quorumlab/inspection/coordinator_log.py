"""The records of a coordinator's partition, as lines: what each says is told by its kind's module.

One that cannot be told is shown with its bytes: a later Kafka may have written it.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from quorumlab.inspection.batches import Batch
from quorumlab.inspection.partition_log import Line
from wire.batch import CorruptBatch, Record, records_of
from wire.varint import Malformed

__all__ = ["Told", "coordinator_lines"]

Told = tuple[str, Mapping[str, Any]]  # the type of the record, and its fields


def coordinator_lines(batch: Batch, tell: Callable[[Record], Told | None]) -> Iterator[Line]:
    """`tell` returns None for a kind that it does not know. It may raise Malformed."""
    try:
        for record in records_of(batch.content):
            yield _line(batch, record, tell)
    except (CorruptBatch, Malformed) as error:
        unread = Record(value=batch.content, offset=batch.header.base_offset)
        yield _unknown(batch, unread, str(error))


def _line(batch: Batch, record: Record, tell: Callable[[Record], Told | None]) -> Line:
    try:
        told = tell(record)
    except Malformed as error:
        return _unknown(batch, record, str(error))
    if told is None:
        return _unknown(batch, record, "a key of a version that is not known")
    return _as_line(batch, record, *told)


def _unknown(batch: Batch, record: Record, reason: str) -> Line:
    key, value = (None if each is None else each.hex() for each in (record.key, record.value))
    return _as_line(batch, record, "UNKNOWN", {"key": key, "value": value, "reason": reason})


def _as_line(batch: Batch, record: Record, type_: str, data: Mapping[str, Any]) -> Line:
    return Line(
        offset=record.offset,
        epoch=batch.header.leader_epoch,
        timestamp_ms=record.timestamp_ms,
        type=type_,
        data=dict(data),
    )
