"""Entries as people and scripts want them: one line of text, or one JSON object."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from quorumlab.inspection.entries import Entry
from wire.metadata_records import TopicRecord
from wire.primitives import uuid_text

if TYPE_CHECKING:
    from controller.metadata.image import MetadataImage

__all__ = [
    "TopicNames",
    "as_json",
    "as_text",
    "json_head",
    "json_text",
    "line_head",
    "time_text",
]


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
        """What the record is about; `data` are its fields."""
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


_ENCODER = json.JSONEncoder(separators=(",", ":"))


def as_text(entry: Entry, names: TopicNames) -> str:
    """`    12  1  2026-11-21T06:20:07.615Z  PARTITION_CHANGE_RECORD  orders-0 isr=[1,3]`"""
    data = entry.data()
    words = [_subject(data, names)] if "topicId" in data else []
    words += [f"{name}={_value(value)}" for name, value in data.items()]
    head = line_head(entry.offset, entry.epoch, entry.timestamp_ms, entry.type)
    return f"{head} {' '.join(filter(None, words))}".rstrip()


def line_head(offset: int, epoch: int, timestamp_ms: int, type_: str) -> str:
    """What every line begins with; the offset takes the first eight characters, or more."""
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
