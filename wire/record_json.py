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

import numpy as np
from numpy.typing import NDArray

from wire.control_records import ControlRecord, Voters
from wire.message import Message, fields_of
from wire.metadata_records import LEADER_UNCHANGED, RECOVERY_UNCHANGED, MetadataRecord
from wire.partition_columns import NewPartitions, PartitionBlock, PartitionChanges
from wire.primitives import uuid_text
from wire.record_schema import shown_fields

__all__ = ["DIRECTORIES_SINCE", "field_names", "json_name", "json_of", "json_of_rows", "type_name"]

DIRECTORIES_SINCE = 1  # the version of PartitionRecord

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
    """Whatever any record may have at its top."""
    types = (*get_args(MetadataRecord), *get_args(ControlRecord))
    return frozenset(json_name(name) for each in types for name in fields_of(each))


def json_of(record: Any, version: int) -> dict[str, Any]:
    """What the record says on the wire in `version`."""
    found = {}
    for name, is_tagged, default in shown_fields(record.__class__, version):
        value = getattr(record, name)
        if not is_tagged or value != default:
            found[json_name(name)] = _value(value, version)
    return found


def json_of_rows(
    block: PartitionBlock, version: int, id_text: Callable[[bytes], str]
) -> Iterator[dict[str, Any]]:
    """As `json_of` has the records of a block; `id_text` puts ids into words."""
    match block:
        case PartitionChanges():
            return _json_of_changes(block, id_text)
        case NewPartitions():
            return _json_of_partitions(block, version, id_text)


def _json_of_changes(
    block: PartitionChanges, id_text: Callable[[bytes], str]
) -> Iterator[dict[str, Any]]:
    columns = zip(
        block.partition_ids.tolist(),
        map(id_text, block.topic_ids.tolist()),
        block.isr.tolist(),
        block.isr_counts.tolist(),
        block.leaders.tolist(),
        block.recovery_states.tolist(),
        strict=True,
    )
    for index, topic_id, isr, isr_count, leader, state in columns:
        data: dict[str, Any] = {"partitionId": index, "topicId": topic_id}
        if isr_count >= 0:
            data["isr"] = isr[:isr_count]
        if leader != LEADER_UNCHANGED:
            data["leader"] = leader
        if state != RECOVERY_UNCHANGED:
            data["leaderRecoveryState"] = state
        yield data


def _json_of_partitions(
    block: NewPartitions, version: int, id_text: Callable[[bytes], str]
) -> Iterator[dict[str, Any]]:
    columns = zip(
        block.partition_ids.tolist(),
        map(id_text, block.topic_ids.tolist()),
        _lists(block.replicas, block.replica_counts),
        _lists(block.isr, block.isr_counts),
        block.leaders.tolist(),
        block.leader_epochs.tolist(),
        block.partition_epochs.tolist(),
        _lists(block.directories, block.directory_counts),
        strict=True,
    )
    for index, topic_id, replicas, isr, leader, leader_epoch, partition_epoch, ids in columns:
        data = {
            "partitionId": index,
            "topicId": topic_id,
            "replicas": replicas,
            "isr": isr,
            "removingReplicas": [],
            "addingReplicas": [],
            "leader": leader,
            "leaderEpoch": leader_epoch,
            "partitionEpoch": partition_epoch,
        }
        if version >= DIRECTORIES_SINCE:
            data["directories"] = list(map(id_text, ids))
        yield data


def _lists(matrix: NDArray[Any], counts: NDArray[np.int8]) -> Iterator[list[Any]]:
    for values, count in zip(matrix.tolist(), counts.tolist(), strict=True):
        yield values[:count]


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
