"""Metadata records in words: one line a record, as the demo prints them."""

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from uuid import UUID

from wire import batch, metadata_records
from wire.control_records import decode_control
from wire.primitives import uuid_text

__all__ = ["describe_record", "last_records"]


def describe_record(record: object) -> str:
    """`PartitionChange partition_id=0 leader=2`: fields that say nothing are left out."""
    name = type(record).__name__.removesuffix("Record")
    shown = []
    for field in fields(record):  # type: ignore[arg-type]  # every record is a dataclass
        value = getattr(record, field.name)
        if value is not None and value != field.default:
            shown.append(f"{field.name}={_text(value)}")
    return " ".join([name, *shown])


def _text(value: object) -> str:
    match value:
        case UUID():
            return uuid_text(value)
        case tuple():
            return "[" + ",".join(_text(element) for element in value) + "]"
        case int() | str() | bool() | None:
            return str(value)
        case _:
            return f"({describe_record(value)})"


def _lines(log: bytes) -> Iterator[str]:
    for position, header in batch.headers(log):
        content = log[position : position + header.size_bytes]
        for record in batch.records_of(content):
            if header.is_control:
                control = decode_control(record)
                text = "unknown control record" if control is None else describe_record(control)
            else:
                assert record.value is not None, record
                text = describe_record(metadata_records.decode_record(record.value))
            yield f"{record.offset:>6}  epoch {header.leader_epoch}  {text}"


def last_records(data: Path, count: int) -> list[str]:
    """The last records of the metadata log in a data directory, NoOps left out, oldest first."""
    segments = sorted((data / "__cluster_metadata-0").glob("*.log"))
    lines = [line for segment in segments for line in _lines(segment.read_bytes())]
    return [line for line in lines if not line.endswith("  NoOp")][-count:]
