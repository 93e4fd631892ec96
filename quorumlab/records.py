"""Metadata records in words: one line a record, as the demo prints them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from types import MappingProxyType
from uuid import UUID

from wire import batch, metadata_records
from wire.control_records import decode_control
from wire.primitives import uuid_text

__all__ = ["StoredRecord", "describe_record", "stored_records", "topic_names"]

_NO_TOPICS: Mapping[UUID, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """`record` is None for a control record of an unknown type."""

    offset: int
    epoch: int
    timestamp_ms: int  # when it was appended, on the leader's clock
    record: object

    def describe(self, topics: Mapping[UUID, str]) -> str:
        """One line. `topics` gives names to the ids of those that it has."""
        text = "unknown control record"
        if self.record is not None:
            text = describe_record(self.record, topics)
        return f"{self.offset:>6}  epoch {self.epoch}  {text}"


def describe_record(record: object, topics: Mapping[UUID, str] = _NO_TOPICS) -> str:
    """`PartitionChange partition_id=0 leader=2`: fields that say nothing are left out."""
    name = type(record).__name__.removesuffix("Record")
    shown = []
    for field in fields(record):  # type: ignore[arg-type]  # every record is a dataclass
        value = getattr(record, field.name)
        default = None if field.default is MISSING else field.default
        if value not in (None, default, ()):
            shown.append(f"{field.name}={_text(value, topics)}")
    return " ".join([name, *shown])


def topic_names(records: Iterable[StoredRecord]) -> dict[UUID, str]:
    """The names of all topics that were ever created."""
    topics = (stored.record for stored in records)
    return {t.topic_id: t.name for t in topics if isinstance(t, metadata_records.TopicRecord)}


def _text(value: object, topics: Mapping[UUID, str]) -> str:
    match value:
        case UUID():
            return topics.get(value) or uuid_text(value)
        case tuple():
            return "[" + ",".join(_text(element, topics) for element in value) + "]"
        case bytes():
            return value.hex()
        case _ if is_dataclass(value):
            return f"({describe_record(value, topics)})"
        case _:
            return str(value)


def stored_records(data: Path) -> Iterator[StoredRecord]:
    """Every record of the metadata log in a data directory, also while its node runs."""
    for segment in sorted((data / "__cluster_metadata-0").glob("*.log")):
        content = segment.read_bytes()
        for position, header in batch.headers(content):
            for record in batch.records_of(content[position : position + header.size_bytes]):
                yield StoredRecord(
                    offset=record.offset,
                    epoch=header.leader_epoch,
                    timestamp_ms=header.base_timestamp_ms,
                    record=_decoded(record, is_control=header.is_control),
                )


def _decoded(record: batch.Record, *, is_control: bool) -> object:
    if is_control:
        return decode_control(record)
    assert record.value is not None, record
    return metadata_records.decode_record(record.value)
