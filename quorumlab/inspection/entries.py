"""The records of metadata batches, decoded as far as this version knows them.

What it does not know is an `Unknown` with its bytes and the reason, never an error: a later Kafka
may have written it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from quorumlab.inspection.batches import Batch
from wire.batch import (
    HEADER_BYTES,
    CorruptBatch,
    Record,
    read_record,
    records_of,
)
from wire.control_records import ControlRecord, decode_control
from wire.metadata_records import MetadataRecord, decode_record
from wire.record_json import json_of, type_name
from wire.varint import Malformed, read_uvarint, read_varint

__all__ = ["Content", "Entry", "Unknown", "entries", "entries_at"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A record that cannot be told. `key` is its api key or control type, -1 if not even that."""

    key: int
    version: int
    value: bytes
    reason: str


Content = MetadataRecord | ControlRecord | Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One record, and where it lies."""

    offset: int
    epoch: int
    timestamp_ms: int
    version: int  # of the record's format
    content: Content
    is_control: bool = False
    batch: Batch = field(repr=False)

    @property
    def type(self) -> str:
        """Kafka's name of it: PARTITION_RECORD, or LeaderChange for a control record."""
        if isinstance(self.content, Unknown):
            return "UNKNOWN"
        return type_name(type(self.content))

    def data(self) -> dict[str, Any]:
        """Its fields by Kafka's names, ready for JSON."""
        if isinstance(self.content, Unknown):
            unknown = self.content
            return {
                "key": unknown.key,
                "reason": unknown.reason,
                "value": unknown.value.hex(),
            }
        return json_of(self.content, self.version)


def entries(batch: Batch) -> Iterator[Entry]:
    header = batch.header
    try:
        for record in records_of(batch.content):
            yield _entry(batch, record)
    except CorruptBatch as error:
        unknown = Unknown(key=-1, version=-1, value=batch.content, reason=str(error))
        yield Entry(
            offset=header.base_offset,
            epoch=header.leader_epoch,
            timestamp_ms=header.base_timestamp_ms,
            version=-1,
            content=unknown,
            batch=batch,
        )


def entries_at(batch: Batch, places: Sequence[int]) -> Iterator[Entry]:
    """Some records of an uncompressed batch, by their ascending places in it.

    The others are passed by unread. Raises CorruptBatch or Malformed where records are none.
    """
    position, place = HEADER_BYTES, 0
    for wanted in places:
        for _ in range(place, wanted):
            length, start = read_varint(batch.content, position)
            position = start + length
        record, position = read_record(batch.content, position, batch.header)
        place = wanted + 1
        yield _entry(batch, record)


def _entry(batch: Batch, record: Record) -> Entry:
    header = batch.header
    version, content = _control(record) if header.is_control else _data(record)
    return Entry(
        offset=record.offset,
        epoch=header.leader_epoch,
        timestamp_ms=record.timestamp_ms,
        version=version,
        content=content,
        is_control=header.is_control,
        batch=batch,
    )


def _data(record: Record) -> tuple[int, Content]:
    value = record.value
    if value is None:
        return -1, Unknown(key=-1, version=-1, value=b"", reason="a record without a value")
    key = version = -1
    try:
        _, position = read_uvarint(value, 0)
        key, position = read_uvarint(value, position)
        version, _ = read_uvarint(value, position)
        return version, decode_record(value)
    except Malformed as error:
        return version, Unknown(key=key, version=version, value=value, reason=str(error))


def _control(record: Record) -> tuple[int, Content]:
    value = record.value or b""
    key = int.from_bytes((record.key or b"")[2:4] or b"\xff\xff", signed=True)
    try:
        content = decode_control(record)
    except Malformed as error:
        return -1, Unknown(key=key, version=-1, value=value, reason=str(error))
    if content is None:
        reason = f"a control record of unknown type {key}"
        return -1, Unknown(key=key, version=-1, value=value, reason=reason)
    return content.version, content
