"""The records of metadata batches, decoded and told as a line of text or as JSON.

A record that this version does not know is an `Unknown` with its bytes and the reason, never an
error: a later Kafka may have written it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from quorumlab.inspection.batches import Batch
from wire.batch import HEADER_BYTES, CorruptBatch, Record, read_record, records_of
from wire.control_records import ControlRecord, decode_control
from wire.foreign_records import ForeignRecord, kept_record
from wire.metadata_records import MetadataRecord, TopicRecord
from wire.primitives import uuid_text
from wire.record_json import json_of, type_name
from wire.varint import Malformed, read_uvarint, read_varint

if TYPE_CHECKING:
    from controller.metadata.image import MetadataImage

__all__ = [
    "Entry",
    "TopicNames",
    "Unknown",
    "as_json",
    "as_text",
    "entries",
    "entries_at",
    "fields_text",
    "json_head",
    "json_text",
    "line_head",
    "time_text",
]

_ENCODER = json.JSONEncoder(separators=(",", ":"))


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
        """Returns the fields by Kafka's names, ready for JSON."""
        if isinstance(self.content, Unknown):
            unknown = self.content
            return {"key": unknown.key, "reason": unknown.reason, "value": unknown.value.hex()}
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
        found = kept_record(value)
        if isinstance(found, ForeignRecord):
            return version, Unknown(key=key, version=version, value=value, reason=found.reason)
        return version, found
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


# --- as text and as JSON ---------------------------------------------------------------------


class TopicNames:
    """The names of topics by id, learned from the records that go by."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def learn(self, entry: Entry) -> None:
        if isinstance(entry.content, TopicRecord):
            self._names[uuid_text(entry.content.topic_id)] = entry.content.name

    def learn_topics(self, image: "MetadataImage") -> None:
        for topic in image.topics.by_id.values():
            self._names[uuid_text(topic.id)] = topic.name

    @property
    def known(self) -> list[str]:
        """All names seen so far, those of deleted topics too."""
        return sorted(set(self._names.values()))

    def name_of(self, topic_id: str) -> str | None:
        return self._names.get(topic_id)

    def topic_of(self, entry: Entry, data: Mapping[str, Any]) -> str | None:
        """Returns the topic that a record is about; `data` are its fields."""
        if isinstance(entry.content, TopicRecord):
            return entry.content.name
        if "topicId" in data:
            return self.name_of(data["topicId"])
        name: str | None = data.get("topicName")
        return name

    def facts(self, entry: Entry) -> dict[str, Any]:
        """The fields of the record, and what it is about: topic, partition, broker, time."""
        data = entry.data()
        return {
            **data,
            "offset": entry.offset,
            "epoch": entry.epoch,
            "timestamp": entry.timestamp_ms,
            "type": entry.type,
            "topic": self.topic_of(entry, data),
            "partition": data.get("partitionId"),
            "broker": data.get("brokerId"),
        }


def as_json(entry: Entry, names: TopicNames) -> str:
    data = entry.data()
    topic = names.topic_of(entry, data)
    end = "" if topic is None else f',"topic":{json_text(topic)}'
    return f'{{"offset":{entry.offset}{json_head(entry)}{json_text(data)}{end}}}'


def json_head(entry: Entry) -> str:
    """What lies between the offset and the data, which all records of one type in a batch share."""
    return (
        f',"epoch":{entry.epoch},"timestamp":{entry.timestamp_ms},"type":{json_text(entry.type)},'
        f'"version":{entry.version},"data":'
    )


def json_text(value: object) -> str:
    return _ENCODER.encode(value)


def as_text(entry: Entry, names: TopicNames) -> str:
    """`    12  1  2026-11-21T06:20:07.615Z  PARTITION_CHANGE_RECORD  orders-0 isr=[1,3]`"""
    data = entry.data()
    words = [_subject(data, names)] if "topicId" in data else []
    words.append(fields_text(data))
    head = line_head(entry.offset, entry.epoch, entry.timestamp_ms, entry.type)
    return f"{head} {' '.join(filter(None, words))}".rstrip()


def fields_text(data: Mapping[str, Any]) -> str:
    """`name=value`, one behind the other."""
    return " ".join(f"{name}={_value(value)}" for name, value in data.items())


def line_head(offset: int, epoch: int, timestamp_ms: int, type_: str) -> str:
    """Begins every line; the offset takes the first eight characters, or more."""
    return f"{offset:>8} {epoch:>3}  {time_text(timestamp_ms)}  {type_:<24}"


def _subject(data: dict[str, Any], names: TopicNames) -> str:
    """The topic or partition by name, in place of its id, if the name is known."""
    name = names.name_of(data["topicId"])
    if name is None:
        return ""
    del data["topicId"]
    data.pop("name", None)
    partition = data.pop("partitionId", None)
    return name if partition is None else f"{name}-{partition}"


def _value(value: Any) -> str:
    match value:
        case str() if value and " " not in value and value.isprintable():
            return value
        case list():
            return "[" + ",".join(map(_value, value)) + "]"
        case dict():
            return "(" + " ".join(f"{name}={_value(item)}" for name, item in value.items()) + ")"
        case _:
            return json.dumps(value)


def time_text(timestamp_ms: int) -> str:
    """UTC, to the millisecond; a number that is no time as it is."""
    try:
        at = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
