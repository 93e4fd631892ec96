"""Requests about consumer groups."""

from typing import Any

from tests.differential.drawing import INT32_MAX, INT64_MAX, Draw

__all__ = ["REQUESTS"]


def find_coordinator(draw: Draw) -> dict[str, Any]:
    of_transaction = draw.chance(30)
    named = draw.transactional_id if of_transaction else draw.group
    return {
        "key": named(),
        "key_type": draw.mostly(int(of_transaction), 2, 3, -1),
        "coordinator_keys": draw.some(named),
    }


def join_group(draw: Draw) -> dict[str, Any]:
    """Who joins waits until the others have joined again, a tenth of a second at most.

    Version 0 has no time-out of its own for that, and waits for a session: it is only refused.
    """
    group = draw.group()
    is_old = draw.version == 0
    return {
        "group_id": "" if is_old else group,
        "session_timeout_ms": draw.mostly(60_000, 0, -1, INT32_MAX),
        "rebalance_timeout_ms": 100,
        "member_id": "stranger" if is_old else draw.member(group),
        "group_instance_id": None,
        "protocol_type": draw.mostly("consumer", "", "connect"),
        "protocols": draw.mostly(
            [{"name": "range", "metadata": b"m"}],
            [],
            [{"name": "range", "metadata": b""}, {"name": "sticky", "metadata": b"s"}],
            [{"name": "other", "metadata": b"o"}],
            [{"name": "", "metadata": b""}],
        ),
        "reason": draw.nullable("because"),
    }


def heartbeat(draw: Draw) -> dict[str, Any]:
    group = draw.group()
    return {
        "group_id": group,
        "generation_id": draw.generation(group),
        "member_id": draw.member(group),
        "group_instance_id": None,
    }


def leave_group(draw: Draw) -> dict[str, Any]:
    group = draw.group()

    def member() -> dict[str, Any]:
        instance = draw.mostly(None, None, None, "nobody")
        return {"member_id": draw.member(group), "group_instance_id": instance, "reason": None}

    return {"group_id": group, "member_id": draw.member(group), "members": draw.some(member)}


def sync_group(draw: Draw) -> dict[str, Any]:
    group = draw.group()
    return {
        "group_id": group,
        "generation_id": draw.generation(group),
        "member_id": draw.member(group),
        "group_instance_id": None,
        "protocol_type": draw.mostly("consumer", None, "connect"),
        "protocol_name": draw.mostly("range", None, "sticky"),
        "assignments": draw.some(lambda: {"member_id": draw.member(group), "assignment": b"a"}, 2),
    }


def offset_commit(draw: Draw) -> dict[str, Any]:
    group = draw.group()

    def partition() -> dict[str, Any]:
        return {
            "partition_index": draw.partition(),
            "committed_offset": draw.mostly(3, 0, -1, INT64_MAX),
            "committed_leader_epoch": draw.mostly(-1, 0, 5),
            "committed_metadata": draw.mostly("m", None, "", "x" * 4097),
        }

    def topic() -> dict[str, Any]:
        name = draw.topic()
        return {
            "name": name,
            "topic_id": draw.topic_id(name),
            "partitions": draw.some(partition, 2),
        }

    is_simple = draw.chance(50)
    return {
        "group_id": draw.pick("idle", "g3") if is_simple else group,
        "generation_id_or_member_epoch": -1 if is_simple else draw.generation(group),
        "member_id": "" if is_simple else draw.member(group),
        "group_instance_id": None,
        "retention_time_ms": -1,
        "topics": draw.some(topic, 2),
    }


def _offset_topics(draw: Draw) -> Any:
    def topic() -> dict[str, Any]:
        name = draw.topic()
        indexes = draw.some(draw.partition, 2)
        return {"name": name, "topic_id": draw.topic_id(name), "partition_indexes": indexes}

    return draw.some(topic, 2)


def offset_fetch(draw: Draw) -> dict[str, Any]:
    def group() -> dict[str, Any]:
        return {
            "group_id": draw.mostly("idle", draw.group()),
            "member_id": None,
            "member_epoch": -1,
            "topics": draw.nullable(_offset_topics(draw)),
        }

    topics = _offset_topics(draw)
    return {
        "group_id": draw.mostly("idle", draw.group()),
        "topics": draw.nullable(topics) if draw.version >= 2 else topics,
        "groups": draw.some(group),
        "require_stable": draw.pick(True, False),
    }


def offset_delete(draw: Draw) -> dict[str, Any]:
    def topic() -> dict[str, Any]:
        partitions = draw.some(lambda: {"partition_index": draw.partition()}, 2)
        return {"name": draw.topic(), "partitions": partitions}

    return {"group_id": draw.mostly("idle", draw.group()), "topics": draw.some(topic, 2)}


def describe_groups(draw: Draw) -> dict[str, Any]:
    return {
        "groups": draw.some(draw.group),
        "include_authorized_operations": draw.pick(True, False),
    }


def list_groups(draw: Draw) -> dict[str, Any]:
    return {
        "states_filter": draw.mostly([], ["Stable"], ["Empty"], ["empty", "DEAD"], ["nonsense"]),
        "types_filter": draw.mostly([], ["classic"], ["Consumer"], ["nonsense"]),
    }


def delete_groups(draw: Draw) -> dict[str, Any]:
    return {"groups_names": draw.some(lambda: draw.mostly("g3", draw.group()))}


def consumer_group_heartbeat(draw: Draw) -> dict[str, Any]:
    """Who joins leaves no member behind: it does not say all that a first heartbeat has to."""
    group = draw.group()
    return {
        "group_id": draw.mostly(group, "c1", ""),
        "member_id": draw.mostly("stranger", ""),
        "member_epoch": draw.pick(1, 5, 0, -1, -2, -3, INT32_MAX),
        "instance_id": draw.mostly(None, "nobody", ""),
        "rack_id": draw.mostly(None, "r", ""),
        "rebalance_timeout_ms": -1,
        "subscribed_topic_names": draw.mostly(None, [], ["alpha"]),
        "subscribed_topic_regex": draw.mostly(None, "a.*"),
        "server_assignor": draw.mostly(None, "range", "uniform", "sticky"),
        "topic_partitions": draw.nullable([]),
    }


def consumer_group_describe(draw: Draw) -> dict[str, Any]:
    return {
        "group_ids": draw.some(draw.group),
        "include_authorized_operations": draw.pick(True, False),
    }


REQUESTS = {
    "find_coordinator": find_coordinator,
    "join_group": join_group,
    "heartbeat": heartbeat,
    "leave_group": leave_group,
    "sync_group": sync_group,
    "offset_commit": offset_commit,
    "offset_fetch": offset_fetch,
    "offset_delete": offset_delete,
    "describe_groups": describe_groups,
    "list_groups": list_groups,
    "consumer_group_heartbeat": consumer_group_heartbeat,
    "consumer_group_describe": consumer_group_describe,
    "delete_groups": delete_groups,
}
