"""Requests about topics, their partitions and where these lie."""

from typing import Any

from tests.differential.drawing import INT32_MAX, ODD_NAMES, Draw

__all__ = ["REQUESTS"]


def metadata(draw: Draw) -> dict[str, Any]:
    def topic() -> dict[str, Any]:
        name = draw.topic()
        if draw.version >= 12 and draw.chance(50):
            return {"name": None, "topic_id": draw.topic_id(name)}
        return {"name": name}

    topics = draw.some(topic)
    return {
        "topics": draw.nullable(topics) if draw.version else topics,
        "allow_auto_topic_creation": draw.mostly(False, True),
        "include_cluster_authorized_operations": draw.pick(True, False),
        "include_topic_authorized_operations": draw.pick(True, False),
    }


def create_topics(draw: Draw) -> dict[str, Any]:
    def topic() -> dict[str, Any]:
        is_manual = draw.chance(25)
        return {
            "name": draw.passing(),
            "num_partitions": -1 if is_manual else draw.mostly(1, 2, 0, -1, -2),
            "replication_factor": -1 if is_manual else draw.mostly(1, 0, -1, 2, -2),
            "assignments": _assignments(draw) if is_manual or draw.chance(5) else [],
            "configs": _configs(draw) if draw.chance(30) else [],
        }

    return {
        "topics": draw.some(topic, 2),
        "timeout_ms": draw.timeout(),
        "validate_only": draw.mostly(False, True),
    }


def _assignments(draw: Draw) -> list[dict[str, Any]]:
    return draw.pick(
        [{"partition_index": 0, "broker_ids": [1]}],
        [{"partition_index": 0, "broker_ids": [1]}, {"partition_index": 1, "broker_ids": [1]}],
        [{"partition_index": 1, "broker_ids": [1]}],
        [{"partition_index": 0, "broker_ids": []}],
        [{"partition_index": 0, "broker_ids": [1, 1]}],
        [{"partition_index": 0, "broker_ids": [7]}],
        [{"partition_index": -1, "broker_ids": [1]}],
    )


def _configs(draw: Draw) -> list[dict[str, Any]]:
    return draw.pick(
        [{"name": "retention.ms", "value": "100000"}],
        [{"name": "retention.ms", "value": "soon"}],
        [{"name": "retention.ms", "value": None}],
        [{"name": "no.such.key", "value": "1"}],
        [{"name": "cleanup.policy", "value": "compact,delete"}],
        [{"name": "cleanup.policy", "value": "shred"}],
        [{"name": "min.insync.replicas", "value": "0"}],
        [{"name": "segment.bytes", "value": "10"}],
        [{"name": "", "value": "1"}],
    )


def delete_topics(draw: Draw) -> dict[str, Any]:
    def topic() -> dict[str, Any]:
        name = draw.mostly(draw.pick("t0", "t1", "t2", "t3"), *ODD_NAMES)
        if draw.chance(40):
            return {"name": None, "topic_id": draw.topic_id(name)}
        return {"name": name}

    names = draw.some(lambda: draw.mostly(draw.pick("t0", "t1", "t2", "t3"), *ODD_NAMES), 2)
    return {"topics": draw.some(topic, 2), "topic_names": names, "timeout_ms": draw.timeout()}


def create_partitions(draw: Draw) -> dict[str, Any]:
    def topic() -> dict[str, Any]:
        assigned = draw.pick([{"broker_ids": [1]}], [{"broker_ids": [7]}], [{"broker_ids": []}], [])
        return {
            "name": draw.mostly(draw.passing(), "beta"),
            "count": draw.mostly(2, 1, 3, 0, -1),
            "assignments": draw.mostly(None, assigned),
        }

    return {
        "topics": draw.some(topic, 2),
        "timeout_ms": draw.timeout(),
        "validate_only": draw.pick(True, False),
    }


def elect_leaders(draw: Draw) -> dict[str, Any]:
    def topic() -> dict[str, Any]:
        return {"topic": draw.topic(), "partitions": draw.some(draw.partition, 2)}

    return {
        "election_type": draw.mostly(0, 1, 2, -1),
        "topic_partitions": draw.nullable(draw.some(topic, 2)),
        "timeout_ms": draw.timeout(),
    }


def alter_partition_reassignments(draw: Draw) -> dict[str, Any]:
    def partition() -> dict[str, Any]:
        replicas = draw.mostly([1], None, [], [7], [1, 1], [1, 7], [-1])
        return {"partition_index": draw.partition(), "replicas": replicas}

    return {
        "timeout_ms": draw.timeout(),
        "allow_replication_factor_change": draw.mostly(True, False),
        "topics": draw.some(
            lambda: {"name": draw.topic(), "partitions": draw.some(partition, 2)}, 2
        ),
    }


def list_partition_reassignments(draw: Draw) -> dict[str, Any]:
    def topic() -> dict[str, Any]:
        return {"name": draw.topic(), "partition_indexes": draw.some(draw.partition, 2)}

    return {"timeout_ms": draw.timeout(), "topics": draw.nullable(draw.some(topic, 2))}


def describe_topic_partitions(draw: Draw) -> dict[str, Any]:
    cursor = {"topic_name": draw.topic(), "partition_index": draw.mostly(0, 1, -1, 9)}
    return {
        "topics": [{"name": name} for name in draw.some(draw.topic)],
        "response_partition_limit": draw.mostly(2000, 1, 2, 0, -1, INT32_MAX),
        "cursor": draw.mostly(None, cursor),
    }


def alter_replica_log_dirs(draw: Draw) -> dict[str, Any]:
    def topic() -> dict[str, Any]:
        return {"name": draw.topic(), "partitions": draw.some(draw.partition, 2)}

    def directory() -> dict[str, Any]:
        path = draw.mostly(draw.known.log_dir, "/nowhere", "data", "")
        return {"path": path, "topics": draw.some(topic, 2)}

    return {"dirs": draw.some(directory, 2)}


def describe_log_dirs(draw: Draw) -> dict[str, Any]:
    def topic() -> dict[str, Any]:
        return {"topic": draw.topic(), "partitions": draw.some(draw.partition, 2)}

    return {"topics": draw.nullable(draw.some(topic, 2))}


REQUESTS = {
    "metadata": metadata,
    "create_topics": create_topics,
    "delete_topics": delete_topics,
    "create_partitions": create_partitions,
    "elect_leaders": elect_leaders,
    "alter_partition_reassignments": alter_partition_reassignments,
    "list_partition_reassignments": list_partition_reassignments,
    "describe_topic_partitions": describe_topic_partitions,
    "alter_replica_log_dirs": alter_replica_log_dirs,
    "describe_log_dirs": describe_log_dirs,
}
