"""Records and the state at the end as Parquet files, for Spark and pandas.

`data` is the record as JSON with Kafka's names. What is not known is null.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
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
_TYPES = {
    "bool": pa.bool_(),
    "ids": pa.list_(pa.int32()),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "string": pa.string(),
    "strings": pa.list_(pa.string()),
}


def _schema(text: str) -> pa.Schema:
    pairs = (each.split() for each in text.split(", "))
    return pa.schema([(name, _TYPES[kind]) for name, kind in pairs])


_RECORDS = _schema(
    "offset int64, epoch int32, timestamp_ms int64, type string, version int16, "
    "topic string, partition int32, broker int32, data string"
)
_BROKERS = _schema(
    "id int32, epoch int64, incarnation_id string, rack string, listeners strings, "
    "fenced bool, in_controlled_shutdown bool, log_dirs strings"
)
_TOPICS = _schema("name string, id string, partitions int32")
_PARTITIONS = _schema(
    "topic string, partition int32, leader int32, leader_epoch int32, "
    "partition_epoch int32, replicas ids, isr ids, adding_replicas ids, "
    "removing_replicas ids, eligible_leader_replicas ids, last_known_elr ids, "
    "recovering bool, directories strings"
)
_CONFIGS = _schema("type string, resource string, name string, value string")

Row = dict[str, Any]


def export(target: Target, directory: Path) -> tuple[dict[str, int], Complaints]:
    """Rows written, by file, and what was damaged. `directory` is made if it is not there."""
    directory.mkdir(parents=True, exist_ok=True)
    problems = Complaints()
    rows = {"records": _write(directory, "records", _RECORDS, _records(target, problems))}
    tree = tree_of(replay(target, Moment()).image)
    brokers = ({"id": int(node_id), **broker} for node_id, broker in tree["brokers"].items())
    topics = (
        {"name": name, "id": topic["id"], "partitions": len(topic["partitions"])}
        for name, topic in tree["topics"].items()
    )
    tables: Sequence[tuple[str, pa.Schema, Iterable[Row]]] = (
        ("brokers", _BROKERS, brokers),
        ("topics", _TOPICS, topics),
        ("partitions", _PARTITIONS, _partitions(tree)),
        ("configs", _CONFIGS, _configs(tree)),
    )
    return rows | {each[0]: _write(directory, *each) for each in tables}, problems


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


def _partitions(tree: Node) -> Iterator[Row]:
    empty: Row = {field.name: [] for field in _PARTITIONS if pa.types.is_list(field.type)}
    for name, topic in tree["topics"].items():
        for index, partition in topic["partitions"].items():
            yield {"topic": name, "partition": int(index), **empty, **partition}


def _configs(tree: Node) -> Iterator[Row]:
    for kind, resources in tree["configs"].items():
        for resource, values in resources.items():
            for name, value in values.items():
                yield {"type": kind, "resource": resource, "name": name, "value": value}
