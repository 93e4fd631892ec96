"""Requests and responses in the canonical form that cores speak: one module a family of APIs.

A canonical message has the fields of the newest version served, durations in milliseconds with the
suffix `_ms`, plain ints, and ZERO_UUID where a uuid is absent. `wire.canonical` maps every
version of the protocol to and from it.
"""

from collections.abc import Mapping

# The APIs in each module. `endpoints` holds the structs that several families share.
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "acls": ("describe_acls", "create_acls", "delete_acls"),
    "client_quotas": ("describe_client_quotas", "alter_client_quotas"),
    "configs": (
        "describe_configs",
        "alter_configs",
        "incremental_alter_configs",
        "list_config_resources",
    ),
    "consumer_groups": ("consumer_group_heartbeat", "consumer_group_describe"),
    "features": ("api_versions", "update_features"),
    "fetching": ("fetch", "fetch_snapshot", "list_offsets", "offset_for_leader_epoch"),
    "group_offsets": ("offset_commit", "offset_fetch", "offset_delete"),
    "groups": (
        "find_coordinator",
        "join_group",
        "sync_group",
        "heartbeat",
        "leave_group",
        "describe_groups",
        "list_groups",
        "delete_groups",
    ),
    "log_dirs": ("alter_replica_log_dirs", "describe_log_dirs", "assign_replicas_to_dirs"),
    "metadata": ("metadata", "describe_cluster", "describe_topic_partitions"),
    "partitions": (
        "alter_partition",
        "elect_leaders",
        "alter_partition_reassignments",
        "list_partition_reassignments",
    ),
    "producing": ("produce", "init_producer_id", "allocate_producer_ids"),
    "quorum_epochs": ("vote", "begin_quorum_epoch", "end_quorum_epoch"),
    "registration": (
        "broker_registration",
        "controller_registration",
        "broker_heartbeat",
        "unregister_broker",
        "envelope",
    ),
    "sasl": ("sasl_handshake", "sasl_authenticate"),
    "scram_users": ("describe_user_scram_credentials", "alter_user_scram_credentials"),
    "topics": ("create_topics", "create_partitions", "delete_topics", "delete_records"),
    "transactions": (
        "add_partitions_to_txn",
        "add_offsets_to_txn",
        "end_txn",
        "write_txn_markers",
        "txn_offset_commit",
        "describe_producers",
        "describe_transactions",
        "list_transactions",
    ),
    "voters": ("describe_quorum", "add_raft_voter", "remove_raft_voter", "update_raft_voter"),
}
