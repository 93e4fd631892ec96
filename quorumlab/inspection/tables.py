"""A state as tables, for people: features, brokers, controllers, topics as Kafka's tools print
them, and what is configured."""

from collections.abc import Iterator, Mapping
from typing import Any

from quorumlab.inspection.tree import Node
from quorumlab.output import aligned, one_line, topic_lines

__all__ = ["table_lines"]

_SEPARATOR = "  "


def table_lines(tree: Node) -> Iterator[str]:
    """Prints a `tree_of` without its empty parts."""
    parts = (_features(tree), _brokers(tree), _controllers(tree), _topics(tree), _configs(tree))
    for number, part in enumerate(filter(None, map(list, parts))):
        if number:
            yield ""
        yield from part


def _features(tree: Node) -> Iterator[str]:
    rows = [{"feature": name, "level": level} for name, level in tree["features"].items()]
    return _table(rows)


def _brokers(tree: Node) -> Iterator[str]:
    rows = [
        {
            "broker": node_id,
            "state": _state(broker),
            "epoch": broker["epoch"],
            "rack": broker["rack"] or "-",
            "listeners": ",".join(broker["listeners"]),
        }
        for node_id, broker in tree["brokers"].items()
    ]
    return _table(rows)


def _state(broker: Mapping[str, Any]) -> str:
    words = ["fenced" if broker["fenced"] else "active"]
    words += ["shutting down"] * broker["in_controlled_shutdown"]
    return ", ".join(words)


def _controllers(tree: Node) -> Iterator[str]:
    rows = [
        {"controller": node_id, "listeners": ",".join(controller["listeners"])}
        for node_id, controller in tree["controllers"].items()
    ]
    return _table(rows)


def _topics(tree: Node) -> Iterator[str]:
    for name, topic in tree["topics"].items():
        rows = [
            {
                **partition,
                "partition": index,
                "elr": partition.get("eligible_leader_replicas", ()),
                "last_known_elr": partition.get("last_known_elr", ()),
            }
            for index, partition in topic["partitions"].items()
        ]
        described = {
            "topic": name,
            "topic_id": topic["id"],
            "partition_count": len(rows),
            "replication_factor": len(rows[0]["replicas"]) if rows else 0,
            "configs": {key: one_line(value) for key, value in topic["configs"].items()},
            "partitions": rows,
        }
        yield from topic_lines(described)


def _configs(tree: Node) -> Iterator[str]:
    """Prints what is configured, but for topics: theirs stands beside them."""
    rows = [
        {"config of": f"{kind} {resource}", "name": name, "value": one_line(value)}
        for kind, resources in tree["configs"].items()
        for resource, values in resources.items()
        for name, value in values.items()
        if kind != "topic"
    ]
    return _table(rows)


def _table(rows: list[dict[str, Any]]) -> Iterator[str]:
    if rows:
        cells = [[name.upper() for name in rows[0]]]
        cells += [[str(value) for value in row.values()] for row in rows]
        for line in aligned(cells, _SEPARATOR):
            yield line.rstrip()
