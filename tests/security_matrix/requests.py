"""One valid request of each API, that leaves the cluster as it was: the same for everybody."""

from random import Random
from typing import Any, TypeVar
from uuid import UUID

from tests.differential.drawing import Draw, Known
from tests.differential.exchanging import GENERATORS

__all__ = ["request"]

T = TypeVar("T")

_GROUP = "idle"
_MEMBER = {"member_id": "stranger", "group_instance_id": None, "reason": None}
# A producer of a transactional id that nobody has used: nothing is going on that could be changed.
_PRODUCER = {"transactional_id": "tx", "producer_id": 987_654, "producer_epoch": 0}
_PLACES = [{"name": "alpha", "partitions": [0]}, {"name": "beta", "partitions": [0]}]
_TOPICS_OF_OFFSETS = [{"name": "alpha", "topic_id": UUID(int=0), "partition_indexes": [0]}]
# What is more, or other, than the usual: rights are given on these names.
_CHANGES: dict[str, dict[str, Any]] = {
    "fetch": {"max_wait_ms": 0, "session_epoch": -1},
    "list_offsets": {"replica_id": -1},
    "offset_for_leader_epoch": {"replica_id": -2},
    "metadata": {
        "topics": [{"name": "alpha"}, {"name": "beta"}],
        "allow_auto_topic_creation": False,
        "include_cluster_authorized_operations": True,
        "include_topic_authorized_operations": True,
    },
    "find_coordinator": {"key": _GROUP, "coordinator_keys": [_GROUP]},
    "join_group": {"group_id": _GROUP, "member_id": "stranger"},
    "heartbeat": {"group_id": _GROUP, "member_id": "stranger"},
    "leave_group": {"group_id": _GROUP, "member_id": "stranger", "members": [_MEMBER]},
    "sync_group": {"group_id": _GROUP, "member_id": "stranger"},
    "offset_commit": {"group_id": _GROUP, "generation_id_or_member_epoch": -1, "member_id": ""},
    "offset_fetch": {
        "topics": _TOPICS_OF_OFFSETS,
        "groups": [
            {"group_id": _GROUP, "member_id": None, "member_epoch": -1,
             "topics": _TOPICS_OF_OFFSETS}
        ],
        "require_stable": False,
    },
    "offset_delete": {"topics": [{"name": "alpha", "partitions": [{"partition_index": 77}]}]},
    "describe_groups": {"groups": [_GROUP], "include_authorized_operations": True},
    "delete_groups": {"groups_names": ["unseen"]},
    "create_topics": {
        "topics": [
            {"name": "t1", "num_partitions": 1, "replication_factor": 1,
             "assignments": [], "configs": []}
        ],
        "validate_only": True,
    },
    "delete_topics": {"topics": [{"name": "t1"}], "topic_names": ["t1"]},
    "create_partitions": {
        "topics": [{"name": "alpha", "count": 9, "assignments": None}],
        "validate_only": True,
    },
    "delete_records": {
        "topics": [{"name": "alpha", "partitions": [{"partition_index": 0, "offset": 0}]}]
    },
    "init_producer_id": {"transactional_id": None, "producer_id": -1, "producer_epoch": -1},
    "add_partitions_to_txn": {
        **{f"v3_and_below_{name}": value for name, value in _PRODUCER.items()},
        "v3_and_below_topics": _PLACES[:1],
        "transactions": [_PRODUCER | {"verify_only": True, "topics": _PLACES}],
    },
    "add_offsets_to_txn": _PRODUCER | {"group_id": _GROUP},
    "end_txn": _PRODUCER,
    "write_txn_markers": {
        "markers": [
            {"producer_id": 987_654, "producer_epoch": 0, "transaction_result": False,
             "topics": [{"name": "alpha", "partition_indexes": [77]}], "coordinator_epoch": 0}
        ]
    },
    "txn_offset_commit": _PRODUCER | {
        "group_id": _GROUP, "generation_id": -1, "member_id": "",
        "topics": [
            {"name": topic["name"],
             "partitions": [{"partition_index": 77, "committed_offset": 1,
                             "committed_metadata": None}]}
            for topic in _PLACES
        ],
    },
    "describe_producers": {
        "topics": [{"name": name, "partition_indexes": [0]} for name in ("alpha", "beta", "a b")]
    },
    "describe_transactions": {"transactional_ids": ["tx", "x1"]},
    "list_transactions": {"duration_filter": -1},
    "describe_configs": {
        "resources": [
            {"resource_type": 2, "resource_name": "alpha", "configuration_keys": ["retention.ms"]}
        ],
        "include_documentation": False,
    },
    "alter_configs": {
        "resources": [
            {"resource_type": 2, "resource_name": "alpha",
             "configs": [{"name": "retention.ms", "value": "100000"}]}
        ],
        "validate_only": True,
    },
    "incremental_alter_configs": {
        "resources": [
            {"resource_type": 2, "resource_name": "alpha",
             "configs": [{"name": "retention.ms", "config_operation": 0, "value": "100000"}]}
        ],
        "validate_only": True,
    },
    "elect_leaders": {"topic_partitions": [{"topic": "alpha", "partitions": [0]}]},
    "list_partition_reassignments": {"topics": None},
    "alter_client_quotas": {
        "entries": [
            {"entity": [{"entity_type": "user", "entity_name": "u9"}],
             "ops": [{"key": "producer_byte_rate", "value": 1e9, "remove": False}]}
        ],
        "validate_only": True,
    },
    "alter_user_scram_credentials": {
        "deletions": [{"name": "missing", "mechanism": 1}], "upsertions": [],
    },
    "describe_acls": {
        "resource_type_filter": 2, "resource_name_filter": "alpha", "pattern_type_filter": 3,
        "principal_filter": "User:a", "host_filter": None, "operation": 1, "permission_type": 1,
    },
    "create_acls": {
        "creations": [
            {"resource_type": 2, "resource_name": "elsewhere", "resource_pattern_type": 3,
             "principal": "User:a", "host": "*", "operation": 3, "permission_type": 3}
        ]
    },
    "delete_acls": {
        "filters": [
            {"resource_type_filter": 2, "resource_name_filter": "never", "pattern_type_filter": 3,
             "principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}
        ]
    },
    "describe_cluster": {"include_cluster_authorized_operations": True},
    "update_features": {
        "feature_updates": [
            {"feature": "nonsense", "max_version_level": 1, "upgrade_type": 1,
             "allow_downgrade": False}
        ],
        "validate_only": False,
    },
    "unregister_broker": {"broker_id": 77},
    "vote": {"voter_id": 1},
    "fetch_snapshot": {"replica_id": 77},
    "controller_registration": {"controller_id": 77},
    "update_raft_voter": {"voter_id": 77},
    "broker_heartbeat": {"broker_id": 1, "broker_epoch": -1, "want_shut_down": False},
    "broker_registration": {"broker_id": 1, "cluster_id": "another"},
    "allocate_producer_ids": {"broker_id": 1, "broker_epoch": -1},
    "alter_partition": {"broker_id": 1, "broker_epoch": -1},
    "assign_replicas_to_dirs": {"broker_id": 1, "broker_epoch": -1},
    "describe_topic_partitions": {"topics": [{"name": "alpha"}, {"name": "beta"}], "cursor": None},
}  # fmt: skip


class Usual(Draw):
    """Always the usual value."""

    def pick(self, *options: T) -> T:
        return options[0]

    def chance(self, percent: int) -> bool:
        return False

    def mostly(self, usual: T, *odd: Any) -> Any:
        return usual

    def some(self, make: Any, most: int = 3, *, twice: int = 3) -> list[Any]:
        return [make()]


_OF_A_REPLICA = {"replica_id": 77, "replica_state": {"replica_id": 77, "replica_epoch": -1}}


def request(api: str, version: int, listener: str, known: Known) -> dict[str, Any]:
    body = GENERATORS[api](Usual(Random(0), known, version=version, listener=listener))
    if (api, listener) == ("fetch", "controller"):
        body |= _OF_A_REPLICA
    if api == "describe_cluster":
        body["endpoint_type"] = 1 if listener == "broker" else 2
    return body | _CHANGES.get(api, {})
