"""Records as JSON, field by field as Apache Kafka's own dump prints them.

Names are Kafka's (`partitionEpoch`), ids are base64 of the URL alphabet, bytes plain base64. A
tagged field that has its default is not on the wire, and not here either.

Source: Kafka's generated JSON converters, which `kafka-dump-log --cluster-metadata-decoder` uses.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, get_args
from uuid import UUID

from wire.control_records import ControlRecord, Voters
from wire.message import Message, fields_of
from wire.metadata_records import RECORD_TYPES
from wire.partition_columns import PartitionBlock, rows_of
from wire.primitives import uuid_text
from wire.record_schema import shown_fields

__all__ = ["field_names", "json_of", "json_of_rows", "type_name"]

_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def type_name(record_type: type) -> str:
    """`PARTITION_CHANGE_RECORD` for a metadata record, `LeaderChange` for a control record."""
    if record_type is Voters:
        return "KRaftVoters"
    is_control = record_type in get_args(ControlRecord)
    return record_type.__name__ if is_control else _in_capitals(record_type.__name__)


@cache
def _in_capitals(name: str) -> str:
    return _WORD.sub("_", name).upper()


@cache
def json_name(field_name: str) -> str:
    """`partitionEpoch` for partition_epoch."""
    first, *rest = field_name.split("_")
    return first.replace("kraft", "kRaft") + "".join(map(str.capitalize, rest))


def field_names() -> frozenset[str]:
    """The fields that any record may have at its top."""
    types = (*RECORD_TYPES, *get_args(ControlRecord))
    return frozenset(json_name(name) for each in types for name in fields_of(each))


def json_of(record: Any, version: int) -> dict[str, Any]:
    """Tells what the record says on the wire in `version`."""
    found = {}
    for name, is_tagged, default in shown_fields(record.__class__, version):
        value = getattr(record, name)
        if not is_tagged or value != default:
            found[json_name(name)] = _value(value, version)
    return found


def json_of_rows(
    block: PartitionBlock, version: int, id_text: Callable[[bytes], str]
) -> Iterator[dict[str, Any]]:
    """Tells the records of a block as `json_of` does; `id_text` puts ids into words."""
    shown = shown_fields(block.RECORD, version)
    for row in rows_of(block, id_text, list):
        values = [(name, row.get(name, default), tag, default) for name, tag, default in shown]
        yield {
            json_name(name): [] if value == () else value
            for name, value, is_tagged, default in values
            if not is_tagged or value != default
        }


def _value(value: Any, version: int) -> Any:
    match value:
        case UUID():
            return uuid_text(value)
        case bytes():
            return b64encode(value).decode()
        case tuple():
            return [_value(item, version) for item in value]
        case Message():
            return json_of(value, version)
        case _:
            return value
