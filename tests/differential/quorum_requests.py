"""Requests that nodes ask of controllers: only those that leave the quorum as it is."""

import struct
from typing import Any

from tests.differential.drawing import INT32_MAX, INT64_MAX, STRANGE_ID, ZERO_ID, Draw

__all__ = ["REQUESTS"]

LOG = "__cluster_metadata"
ENDPOINT = {"name": "CONTROLLER", "host": "localhost", "port": 1}


def _log(draw: Draw) -> Any:
    return draw.mostly(LOG, LOG, "alpha", "")


def vote(draw: Draw) -> dict[str, Any]:
    """In an epoch that is past, or of a cluster or voter that is not there."""
    partition = {
        "partition_index": draw.mostly(0, 1, -1),
        "replica_epoch": draw.mostly(0, -1),
        "replica_id": draw.mostly(1, 2, -1),
        "replica_directory_id": draw.directory(),
        "voter_directory_id": draw.directory(),
        "last_offset_epoch": draw.mostly(0, 1, -1),
        "last_offset": draw.mostly(0, 1, -1),
        "pre_vote": draw.pick(True, False),
    }
    return {
        "cluster_id": draw.cluster_id(),
        "voter_id": draw.mostly(1, 2, -1),
        "topics": draw.mostly([{"topic_name": _log(draw), "partitions": [partition]}], []),
    }


def begin_quorum_epoch(draw: Draw) -> dict[str, Any]:
    partition = {
        "partition_index": draw.mostly(0, 1),
        "voter_directory_id": draw.directory(),
        "leader_id": draw.mostly(1, 2, -1),
        "leader_epoch": draw.mostly(0, -1),
    }
    return {
        "cluster_id": draw.cluster_id(),
        "voter_id": draw.mostly(1, 2, -1),
        "topics": draw.mostly([{"topic_name": _log(draw), "partitions": [partition]}], []),
        "leader_endpoints": draw.mostly([ENDPOINT], []),
    }


def end_quorum_epoch(draw: Draw) -> dict[str, Any]:
    partition = {
        "partition_index": draw.mostly(0, 1),
        "leader_id": draw.mostly(1, 2, -1),
        "leader_epoch": draw.mostly(0, -1),
        "preferred_successors": [2],
        "preferred_candidates": [{"candidate_id": 2, "candidate_directory_id": STRANGE_ID}],
    }
    return {
        "cluster_id": draw.cluster_id(),
        "topics": draw.mostly([{"topic_name": _log(draw), "partitions": [partition]}], []),
        "leader_endpoints": draw.mostly([ENDPOINT], []),
    }


def describe_quorum(draw: Draw) -> dict[str, Any]:
    topic = {"topic_name": _log(draw), "partitions": [{"partition_index": draw.mostly(0, 1, -1)}]}
    return {"topics": draw.mostly([topic], [], [topic, topic])}


def fetch_snapshot(draw: Draw) -> dict[str, Any]:
    """Never of no topic: that ends the process of Kafka's controller."""
    partition = {
        "partition": draw.mostly(0, 1),
        "current_leader_epoch": draw.mostly(1, 0, 5, -1),
        "snapshot_id": {"end_offset": draw.mostly(7, 0, -1, INT64_MAX), "epoch": draw.mostly(0, 9)},
        "position": draw.mostly(0, -1, 10_000),
    }
    return {
        "cluster_id": draw.cluster_id(),
        "replica_id": draw.mostly(2, 1, -1),
        "max_bytes": draw.mostly(1000, 0, -1),
        "topics": [{"name": _log(draw), "partitions": [partition]}],
    }


def alter_partition(draw: Draw) -> dict[str, Any]:
    """Asks in a leader epoch, or for a broker, that does not exist."""

    def partition() -> dict[str, Any]:
        isr = draw.mostly([1], [], [7], [1, 7])
        return {
            "partition_index": draw.partition(),
            "leader_epoch": draw.mostly(0, 7, -1),
            "new_isr": isr,
            "new_isr_with_epochs": [{"broker_id": broker, "broker_epoch": -1} for broker in isr],
            "leader_recovery_state": draw.mostly(0, 1, 9),
            "partition_epoch": draw.mostly(0, 9, -1),
        }

    name = draw.topic()
    topic = {"topic_id": draw.topic_id(name), "partitions": draw.some(partition, 2)}
    return {
        "broker_id": draw.mostly(1, 7, -1),
        "broker_epoch": draw.broker_epoch(),
        "topics": draw.mostly([topic], [], [topic, topic]),
    }


def envelope(draw: Draw) -> dict[str, Any]:
    """A request within it that creates nothing, or is none."""
    name = b"t0"
    body = struct.pack(">i", 1) + struct.pack(">h", len(name)) + name
    body += struct.pack(">ih", 1, 1) + struct.pack(">ii", 0, 0) + struct.pack(">ib", 1000, 1)
    inner = struct.pack(">hhih", 19, 4, 77, -1) + body
    not_forwardable = struct.pack(">hhih", 18, 0, 77, -1)
    principal = b"\x00\x00\x05User\x0aANONYMOUS\x00\x00"
    return {
        "request_data": draw.mostly(inner, b"", inner[:9], not_forwardable, b"\xff" * 12),
        "request_principal": draw.mostly(principal, b"", b"\xff\xff"),
        "client_host_address": draw.mostly(b"\x7f\x00\x00\x01", b"", b"\x01"),
    }


def broker_registration(draw: Draw) -> dict[str, Any]:
    """Registers an impossible broker: another cluster, unknown features, or no directories."""
    wrong = draw.pick("cluster", "features", "incarnation", "directories")
    id_ = {"cluster": 7, "incarnation": 1}.get(wrong, draw.pick(7, 8))
    feature = {
        "name": "metadata.version",
        "min_supported_version": 1,
        "max_supported_version": 6 if wrong == "features" else 25,
    }
    return {
        "broker_id": id_,
        "cluster_id": draw.known.cluster_id if wrong != "cluster" else draw.pick("", "other"),
        "incarnation_id": STRANGE_ID,
        "listeners": [{**ENDPOINT, "name": "PLAINTEXT", "security_protocol": 0}],
        "features": [feature],
        "rack": None,
        "is_migrating_zk_broker": False,
        "log_dirs": [] if wrong == "directories" else [STRANGE_ID],
        "previous_broker_epoch": -1,
    }


def broker_heartbeat(draw: Draw) -> dict[str, Any]:
    is_ours = draw.chance(30)
    return {
        "broker_id": 1 if is_ours else draw.pick(2, 7, -1),
        "broker_epoch": draw.pick(-1, 0, INT64_MAX),
        "current_metadata_offset": draw.mostly(0, -1, INT64_MAX),
        "want_fence": draw.pick(True, False),
        "want_shut_down": draw.pick(True, False),
    }


def allocate_producer_ids(draw: Draw) -> dict[str, Any]:
    return {"broker_id": draw.mostly(1, 7, -1), "broker_epoch": draw.pick(-1, 0, INT64_MAX)}


def controller_registration(draw: Draw) -> dict[str, Any]:
    feature = {"name": "metadata.version", "min_supported_version": 1, "max_supported_version": 6}
    return {
        "controller_id": draw.pick(2, 7, -1),
        "incarnation_id": draw.mostly(STRANGE_ID, ZERO_ID),
        "zk_migration_ready": False,
        "listeners": draw.mostly([{**ENDPOINT, "security_protocol": 0}], []),
        "features": [feature],
    }


def assign_replicas_to_dirs(draw: Draw) -> dict[str, Any]:
    name = draw.topic()
    topic = {
        "topic_id": draw.topic_id(name),
        "partitions": draw.some(lambda: {"partition_index": draw.partition()}, 2),
    }
    directory = {"id_": draw.directory(), "topics": draw.mostly([topic], [])}
    return {
        "broker_id": draw.mostly(1, 7, -1),
        "broker_epoch": draw.broker_epoch(),
        "directories": draw.mostly([directory], []),
    }


def add_raft_voter(draw: Draw) -> dict[str, Any]:
    """Refused: the voters of this quorum are static."""
    return {
        "cluster_id": draw.cluster_id(),
        "timeout_ms": 1000,
        "voter_id": draw.mostly(2, 1, -1, INT32_MAX),
        "voter_directory_id": draw.mostly(STRANGE_ID, ZERO_ID),
        "listeners": draw.mostly([ENDPOINT], [], [{**ENDPOINT, "name": "OTHER"}]),
        "ack_when_committed": draw.pick(True, False),
    }


def remove_raft_voter(draw: Draw) -> dict[str, Any]:
    return {
        "cluster_id": draw.cluster_id(),
        "voter_id": draw.mostly(2, 1, -1),
        "voter_directory_id": draw.mostly(STRANGE_ID, ZERO_ID),
    }


def update_raft_voter(draw: Draw) -> dict[str, Any]:
    return {
        "cluster_id": draw.cluster_id(),
        "current_leader_epoch": draw.mostly(1, 0, 5, -1),
        "voter_id": draw.mostly(2, -1, 7),
        "voter_directory_id": draw.mostly(STRANGE_ID, ZERO_ID),
        "listeners": draw.mostly([ENDPOINT], []),
        "k_raft_version_feature": {
            "min_supported_version": 0,
            "max_supported_version": draw.mostly(1, 0, -1),
        },
    }


REQUESTS = {
    "vote": vote,
    "begin_quorum_epoch": begin_quorum_epoch,
    "end_quorum_epoch": end_quorum_epoch,
    "describe_quorum": describe_quorum,
    "fetch_snapshot": fetch_snapshot,
    "alter_partition": alter_partition,
    "envelope": envelope,
    "broker_registration": broker_registration,
    "broker_heartbeat": broker_heartbeat,
    "allocate_producer_ids": allocate_producer_ids,
    "controller_registration": controller_registration,
    "assign_replicas_to_dirs": assign_replicas_to_dirs,
    "add_raft_voter": add_raft_voter,
    "remove_raft_voter": remove_raft_voter,
    "update_raft_voter": update_raft_voter,
}
