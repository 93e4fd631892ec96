"""Who asks, and the one right (or the few) that each API needs.

An API of `wire.api_table` that has no row here fails the test of this table.

Source: Kafka's documentation, "Protocol primitives and ACLs"; KIP-11, KIP-290, KIP-430, KIP-500.
"""

from dataclasses import dataclass

__all__ = [
    "ABLE",
    "ADMIN",
    "ANONYMOUS",
    "NOBODY",
    "OWN_NODE",
    "PEOPLE",
    "RIGHTS",
    "WRONG_NODE",
    "able",
]

ANONYMOUS = "anonymous"  # on a listener that asks for nothing
NOBODY = "nobody"  # is known, and has no right
ABLE = "able"  # has what the API needs, and nothing else: a user for each API
ADMIN = "admin"  # a super user
OWN_NODE = "node-1"  # the node's own credentials
WRONG_NODE = "node-2"  # those of another node, which may act on the cluster, too
PEOPLE = (ANONYMOUS, NOBODY, ABLE, ADMIN, OWN_NODE, WRONG_NODE)

TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = range(2, 6)
READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION = range(3, 10)
DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = range(10, 13)


@dataclass(frozen=True, slots=True)
class Right:
    operation: int
    kind: int = CLUSTER
    name: str = "kafka-cluster"


def able(api: str) -> str:
    """The user who may ask this API, and nothing else."""
    return f"{ABLE}-{api}"


def _on(operation: int, kind: int, name: str) -> tuple[Right]:
    return (Right(operation, kind, name),)


_BETWEEN_NODES = (
    "vote", "begin_quorum_epoch", "end_quorum_epoch", "alter_partition", "envelope",
    "fetch_snapshot", "broker_registration", "broker_heartbeat", "allocate_producer_ids",
    "controller_registration", "assign_replicas_to_dirs", "update_raft_voter",
)  # fmt: skip

RIGHTS: dict[str, tuple[Right, ...]] = {
    "produce": _on(WRITE, TOPIC, "alpha"),
    "fetch": (Right(READ, TOPIC, "alpha"), Right(CLUSTER_ACTION)),
    "list_offsets": _on(DESCRIBE, TOPIC, "alpha"),
    "metadata": _on(DESCRIBE, TOPIC, "alpha"),
    "offset_commit": (Right(READ, GROUP, "idle"), Right(READ, TOPIC, "alpha")),
    "offset_fetch": (Right(DESCRIBE, GROUP, "idle"), Right(DESCRIBE, TOPIC, "alpha")),
    "find_coordinator": _on(DESCRIBE, GROUP, "idle"),
    "join_group": _on(READ, GROUP, "idle"),
    "heartbeat": _on(READ, GROUP, "idle"),
    "leave_group": _on(READ, GROUP, "idle"),
    "sync_group": _on(READ, GROUP, "idle"),
    "describe_groups": _on(DESCRIBE, GROUP, "idle"),
    "consumer_group_heartbeat": (Right(READ, GROUP, "idle"), Right(DESCRIBE, TOPIC, "alpha")),
    "consumer_group_describe": _on(DESCRIBE, GROUP, "idle"),
    "list_groups": _on(DESCRIBE, GROUP, "idle"),
    "delete_groups": _on(DELETE, GROUP, "unseen"),
    "offset_delete": (Right(DELETE, GROUP, "idle"), Right(READ, TOPIC, "alpha")),
    "api_versions": (),
    "create_topics": (Right(CREATE, TOPIC, "t1"), Right(DESCRIBE_CONFIGS, TOPIC, "t1")),
    "delete_topics": _on(DELETE, TOPIC, "t1"),
    "delete_records": _on(DELETE, TOPIC, "alpha"),
    "init_producer_id": (Right(IDEMPOTENT_WRITE),),
    "offset_for_leader_epoch": _on(DESCRIBE, TOPIC, "alpha"),
    "describe_acls": (Right(DESCRIBE),),
    "create_acls": (Right(ALTER),),
    "delete_acls": (Right(ALTER),),
    "describe_configs": _on(DESCRIBE_CONFIGS, TOPIC, "alpha"),
    "alter_configs": _on(ALTER_CONFIGS, TOPIC, "alpha"),
    "incremental_alter_configs": _on(ALTER_CONFIGS, TOPIC, "alpha"),
    "alter_replica_log_dirs": (Right(ALTER),),
    "describe_log_dirs": (Right(DESCRIBE),),
    "create_partitions": _on(ALTER, TOPIC, "alpha"),
    "elect_leaders": (Right(ALTER),),
    "alter_partition_reassignments": (Right(ALTER),),
    "list_partition_reassignments": (Right(DESCRIBE),),
    "describe_client_quotas": (Right(DESCRIBE_CONFIGS),),
    "alter_client_quotas": (Right(ALTER_CONFIGS),),
    "describe_user_scram_credentials": (Right(DESCRIBE),),
    "alter_user_scram_credentials": (Right(ALTER),),
    "describe_quorum": (Right(DESCRIBE),),
    "update_features": (Right(ALTER),),
    "describe_cluster": (Right(DESCRIBE), Right(ALTER)),  # to be told of controllers, ALTER
    "unregister_broker": (Right(ALTER),),
    "list_config_resources": (Right(DESCRIBE_CONFIGS),),
    "describe_topic_partitions": _on(DESCRIBE, TOPIC, "alpha"),
    "add_raft_voter": (Right(ALTER),),
    "remove_raft_voter": (Right(ALTER),),
    "sasl_handshake": (),
    "sasl_authenticate": (),
    "add_partitions_to_txn": (
        Right(WRITE, TRANSACTIONAL_ID, "tx"),
        Right(WRITE, TOPIC, "alpha"),
        Right(CLUSTER_ACTION),  # from version 4 on
    ),
    "add_offsets_to_txn": (Right(WRITE, TRANSACTIONAL_ID, "tx"), Right(READ, GROUP, "idle")),
    "end_txn": _on(WRITE, TRANSACTIONAL_ID, "tx"),
    "write_txn_markers": (Right(CLUSTER_ACTION),),
    "txn_offset_commit": (
        Right(WRITE, TRANSACTIONAL_ID, "tx"),
        Right(READ, GROUP, "idle"),
        Right(READ, TOPIC, "alpha"),
    ),
    "describe_producers": _on(READ, TOPIC, "alpha"),
    "describe_transactions": _on(DESCRIBE, TRANSACTIONAL_ID, "tx"),
    "list_transactions": _on(DESCRIBE, TRANSACTIONAL_ID, "x0"),
    **dict.fromkeys(_BETWEEN_NODES, (Right(CLUSTER_ACTION),)),
}
