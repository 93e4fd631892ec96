"""Records and the state at the end as Parquet files, for Spark and pandas.

    records.parquet      offset, epoch, timestamp_ms, type, version, topic, partition, broker, data
    brokers.parquet      one row a registered broker
    topics.parquet       one row a topic
    partitions.parquet   one row a partition: leader, epochs, replicas, ISR ...
    configs.parquet      resource, name, value

`data` is the record as JSON with Kafka's names. What is not known is null.
"""

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from quorumlab.inspection.batches import Complaints, Damage
from quorumlab.inspection.entries import TopicNames
from quorumlab.inspection.states import Moment, replay
from quorumlab.inspection.stream import target_entries
from quorumlab.inspection.target import Target
from quorumlab.inspection.tree import Node, tree_of

__all__ = ["RECORDS", "export", "is_own"]

RECORDS = "records.parquet"
_ROWS_AT_ONCE = 50_000
_IDS = pa.list_(pa.int32())

_RECORDS = pa.schema(
    [
        ("offset", pa.int64()),
        ("epoch", pa.int32()),
        ("timestamp_ms", pa.int64()),
        ("type", pa.string()),
        ("version", pa.int16()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("broker", pa.int32()),
        ("data", pa.string()),
    ]
)
_BROKERS = pa.schema(
    [
        ("id", pa.int32()),
        ("epoch", pa.int64()),
        ("incarnation_id", pa.string()),
        ("rack", pa.string()),
        ("listeners", pa.list_(pa.string())),
        ("fenced", pa.bool_()),
        ("in_controlled_shutdown", pa.bool_()),
        ("log_dirs", pa.list_(pa.string())),
    ]
)
_TOPICS = pa.schema([("name", pa.string()), ("id", pa.string()), ("partitions", pa.int32())])
_PARTITIONS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("leader", pa.int32()),
        ("leader_epoch", pa.int32()),
        ("partition_epoch", pa.int32()),
        ("replicas", _IDS),
        ("isr", _IDS),
        ("adding_replicas", _IDS),
        ("removing_replicas", _IDS),
        ("eligible_leader_replicas", _IDS),
        ("last_known_elr", _IDS),
        ("recovering", pa.bool_()),
        ("directories", pa.list_(pa.string())),
    ]
)
_CONFIGS = pa.schema(
    [
        ("type", pa.string()),
        ("resource", pa.string()),
        ("name", pa.string()),
        ("value", pa.string()),
    ]
)

Row = dict[str, Any]


def export(target: Target, directory: Path) -> tuple[dict[str, int], Complaints]:
    """Rows written, by file, and what was damaged. `directory` is made if it is not there."""
    directory.mkdir(parents=True, exist_ok=True)
    problems = Complaints()
    rows = {"records": _write(directory, "records", _RECORDS, _records(target, problems))}
    tree = tree_of(replay(target, Moment()).image)
    for name, schema, found in (
        ("brokers", _BROKERS, _brokers(tree)),
        ("topics", _TOPICS, _topics(tree)),
        ("partitions", _PARTITIONS, _partitions(tree)),
        ("configs", _CONFIGS, _configs(tree)),
    ):
        rows[name] = _write(directory, name, schema, found)
    return rows, problems


def is_own(table: Path) -> bool:
    """Whether it holds records as this module writes them."""
    try:
        return bool(pq.read_schema(table).equals(_RECORDS))
    except (OSError, pa.ArrowInvalid):
        return False


def _write(directory: Path, name: str, schema: pa.Schema, rows: Iterable[Row]) -> int:
    """Piece by piece, so that a log of any size takes the same memory."""
    count, rest = 0, iter(rows)
    with pq.ParquetWriter(directory / f"{name}.parquet", schema) as writer:
        while piece := list(islice(rest, _ROWS_AT_ONCE)):
            writer.write_table(pa.Table.from_pylist(piece, schema))
            count += len(piece)
    return count


def _records(target: Target, problems: Complaints) -> Iterator[Row]:
    names = TopicNames()
    for found in target_entries(target):
        if isinstance(found, Damage):
            problems.add(found)
            continue
        names.learn(found)
        facts = names.facts(found)
        yield {
            "offset": found.offset,
            "epoch": found.epoch,
            "timestamp_ms": found.timestamp_ms,
            "type": found.type,
            "version": found.version,
            "topic": facts["topic"],
            "partition": facts["partition"],
            "broker": facts["broker"],
            "data": json.dumps(found.data(), separators=(",", ":")),
        }


def _brokers(tree: Node) -> Iterator[Row]:
    for node_id, broker in tree["brokers"].items():
        yield {"id": int(node_id), **broker}


def _topics(tree: Node) -> Iterator[Row]:
    for name, topic in tree["topics"].items():
        yield {"name": name, "id": topic["id"], "partitions": len(topic["partitions"])}


def _partitions(tree: Node) -> Iterator[Row]:
    for name, topic in tree["topics"].items():
        for index, partition in topic["partitions"].items():
            yield {"topic": name, "partition": int(index), **_empty_lists(), **partition}


def _empty_lists() -> Row:
    return {field.name: [] for field in _PARTITIONS if pa.types.is_list(field.type)}


def _configs(tree: Node) -> Iterator[Row]:
    for kind, resources in tree["configs"].items():
        for resource, values in resources.items():
            for name, value in values.items():
                yield {"type": kind, "resource": resource, "name": name, "value": value}
