"""Requests about transactions.

No transaction may time out within a run, for the sides would not end it at the same moment: the
time-outs that are accepted are the longest. Markers are written by hand only for producers without
a transactional id, and never with a coordinator's later epoch: it would fence the real one.

Kafka never answers a broker that asks for no transaction, nor markers of which one is for no
partition, or for one partition twice: none of these is asked, since each would take as long as an
answer may, and in the last case Kafka's log has one marker and ours two. A marker of an epoch
that is none comes alone, for Kafka writes what stands before it in a request that it then fails.
"""

from collections.abc import Callable
from typing import Any

from tests.differential.drawing import INT32_MAX, INT64_MAX, TRANSACTIONAL_IDS, Draw

__all__ = ["REQUESTS"]


def _not_none(
    draw: Draw, make: Callable[[], dict[str, Any]], most: int = 3, *, twice: int = 3
) -> Any:
    return draw.some(make, most, twice=twice) or [make()]


def _topics(draw: Draw) -> Any:
    return draw.some(lambda: {"name": draw.topic(), "partitions": draw.some(draw.partition, 2)}, 2)


def _of_producer(draw: Draw) -> dict[str, Any]:
    """Who asks, mostly as its coordinator knows it."""
    name = draw.transactional_id()
    known = draw.transaction(name)
    return {
        "transactional_id": name,
        "producer_id": draw.mostly(known.producer, -1, 987_654, draw.producer_id()),
        "producer_epoch": draw.mostly(
            known.epoch, known.epoch, known.epoch - 1, known.epoch + 1, -1, 32_767
        ),
    }


def add_partitions_to_txn(draw: Draw) -> dict[str, Any]:
    def transaction() -> dict[str, Any]:
        return {
            **_of_producer(draw),
            "verify_only": draw.pick(True, False),
            "topics": _topics(draw),
        }

    if draw.version >= 4:
        return {"transactions": _not_none(draw, transaction)}
    one = transaction()
    return {f"v3_and_below_{name}": value for name, value in one.items()}


def add_offsets_to_txn(draw: Draw) -> dict[str, Any]:
    return {**_of_producer(draw), "group_id": draw.group()}


def end_txn(draw: Draw) -> dict[str, Any]:
    return {**_of_producer(draw), "committed": draw.pick(True, False)}


def write_txn_markers(draw: Draw) -> dict[str, Any]:
    def topic() -> dict[str, Any]:
        partitions = draw.some(draw.partition, 2, twice=0) or [0]
        return {"name": draw.topic(), "partition_indexes": partitions}

    def marker() -> dict[str, Any]:
        return {
            "producer_id": draw.mostly(987_654, draw.producer_id()),
            "producer_epoch": draw.mostly(0, 1, 5, -1),
            "transaction_result": draw.pick(True, False),
            "topics": _not_none(draw, topic, 2, twice=0),
            "coordinator_epoch": draw.mostly(0, -1),
            "transaction_version": draw.mostly(2, 0, 1),
        }

    markers = draw.some(marker, 2, twice=0)
    broken = [each for each in markers if each["producer_epoch"] < 0]
    return {"markers": broken[:1] or markers}


def txn_offset_commit(draw: Draw) -> dict[str, Any]:
    def partition() -> dict[str, Any]:
        return {
            "partition_index": draw.partition(),
            "committed_offset": draw.mostly(3, 0, -1, INT64_MAX),
            "committed_leader_epoch": draw.mostly(-1, 0, 5),
            "committed_metadata": draw.mostly("m", None, "", "x" * 4097),
        }

    group = draw.group()
    is_simple = draw.chance(60)
    return {
        **_of_producer(draw),
        "group_id": draw.pick("idle", "g3") if is_simple else group,
        "generation_id": -1 if is_simple else draw.generation(group),
        "member_id": "" if is_simple else draw.member(group),
        "group_instance_id": None,
        "topics": draw.some(
            lambda: {"name": draw.topic(), "partitions": draw.some(partition, 2)}, 2
        ),
    }


def describe_producers(draw: Draw) -> dict[str, Any]:
    def topic() -> dict[str, Any]:
        return {"name": draw.topic(), "partition_indexes": draw.some(draw.partition, 2)}

    return {"topics": draw.some(topic)}


def describe_transactions(draw: Draw) -> dict[str, Any]:
    return {"transactional_ids": draw.some(draw.transactional_id)}


def list_transactions(draw: Draw) -> dict[str, Any]:
    return {
        "state_filters": draw.mostly(
            [], ["Ongoing"], ["Empty", "CompleteAbort"], ["ongoing"], ["nonsense", "Dead"], [""]
        ),
        "producer_id_filters": draw.mostly([], [draw.producer_id()], [987_654, -1]),
        "duration_filter": draw.mostly(-1, 0, INT32_MAX, INT64_MAX, -5),
        "transactional_id_pattern": draw.mostly(None, "x.*", "x[01]", "", "nothing", "["),
    }


def init_producer_id(draw: Draw) -> dict[str, Any]:
    """With a transactional id or without; a producer that comes again says who it was.

    With the right id it names the right epoch, or none: for a wrong one Kafka aborts what is open,
    and ours does not, so that both would have another state from then on.
    """
    name = draw.mostly(draw.pick(None, *TRANSACTIONAL_IDS), None, "")
    known = draw.transaction(name or "")
    again = draw.chance(40)
    timeout_ms = draw.mostly(900_000, 0, -1, 900_001, INT32_MAX)
    producer = draw.mostly(known.producer, draw.producer_id()) if again else -1
    epoch = draw.mostly(known.epoch, -1, 0, 5) if again else -1
    return {
        "transactional_id": name,
        "transaction_timeout_ms": timeout_ms,
        "producer_id": producer,
        "producer_epoch": known.epoch if producer is known.producer and epoch >= 0 else epoch,
    }


REQUESTS = {
    "add_offsets_to_txn": add_offsets_to_txn,
    "add_partitions_to_txn": add_partitions_to_txn,
    "describe_producers": describe_producers,
    "describe_transactions": describe_transactions,
    "end_txn": end_txn,
    "init_producer_id": init_producer_id,
    "list_transactions": list_transactions,
    "txn_offset_commit": txn_offset_commit,
    "write_txn_markers": write_txn_markers,
}
