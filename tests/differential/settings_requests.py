"""Requests about configs, quotas, users, ACLs, features and the cluster as such."""

from typing import Any

from tests.differential.drawing import INT32_MAX, Draw

__all__ = ["REQUESTS"]

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
LONG = "x" * 300


def _resource(draw: Draw) -> Any:
    return draw.mostly(
        (TOPIC, draw.mostly(draw.pick("gamma", "beta"), draw.topic())),
        (BROKER, "1"),
        (BROKER, ""),
        (BROKER, "7"),
        (BROKER, "one"),
        (CLIENT_METRICS, "metrics"),
        (CLIENT_METRICS, ""),
        (GROUP, "g0"),
        (GROUP, ""),
        (0, "alpha"),
        (1, "alpha"),
        (99, "alpha"),
    )


TOPIC_VALUES = (
    ("retention.ms", "100000"),
    ("retention.ms", "-1"),
    ("retention.ms", "-2"),
    ("retention.ms", "soon"),
    ("retention.ms", ""),
    ("max.message.bytes", "-1"),
    ("max.message.bytes", "2000000"),
    ("cleanup.policy", "compact"),
    ("cleanup.policy", "compact,delete"),
    ("cleanup.policy", "delete,delete"),
    ("cleanup.policy", ""),
    ("cleanup.policy", "shred"),
    ("compression.type", "gzip"),
    ("compression.type", "best"),
    ("min.insync.replicas", "1"),
    ("min.insync.replicas", "0"),
    ("min.cleanable.dirty.ratio", "0.7"),
    ("min.cleanable.dirty.ratio", "2"),
    ("unclean.leader.election.enable", "maybe"),
    ("unclean.leader.election.enable", "true"),
    ("segment.bytes", "1048575"),
    ("segment.bytes", "99999999999"),
    ("message.timestamp.type", "LogAppendTime"),
    ("message.timestamp.type", "logappendtime"),
    ("preallocate", "false"),
    ("local.retention.ms", "5000"),
    ("follower.replication.throttled.replicas", "0:1"),
    ("follower.replication.throttled.replicas", "all"),
    ("no.such.key", "1"),
    ("", "1"),
)
BROKER_VALUES = (
    ("log.retention.ms", "100000000000"),
    ("log.retention.ms", "soon"),
    ("num.io.threads", "4"),
    ("num.io.threads", "0"),
    ("log.cleaner.threads", "2"),
    ("max.connections", "1000"),
    ("node.id", "3"),
    ("process.roles", "broker"),
    ("no.such.key", "1"),
    ("message.max.bytes", "-5"),
    ("advertised.listeners", "PLAINTEXT://elsewhere:1"),
)
OTHER_VALUES = (
    ("interval.ms", "5000"),
    ("interval.ms", "5"),
    ("metrics", "org.apache.kafka"),
    ("match", "client_id=a"),
    ("match", "nonsense"),
    ("consumer.session.timeout.ms", "50000"),
    ("consumer.session.timeout.ms", "1"),
    ("no.such.key", "1"),
)


def _values(draw: Draw, kind: int) -> tuple[str, str]:
    return draw.pick(*{TOPIC: TOPIC_VALUES, BROKER: BROKER_VALUES}.get(kind, OTHER_VALUES))


def describe_configs(draw: Draw) -> dict[str, Any]:
    def resource() -> dict[str, Any]:
        kind, name = _resource(draw)
        keys = [draw.mostly(_values(draw, kind)[0], "retention.ms") for _ in range(2)]
        return {
            "resource_type": kind,
            "resource_name": name,
            "configuration_keys": draw.pick(None, [], keys, keys[:1]),
        }

    return {
        "resources": draw.some(resource, 2),
        "include_synonyms": draw.pick(True, False),
        "include_documentation": draw.mostly(False, True),
    }


def alter_configs(draw: Draw) -> dict[str, Any]:
    """It takes away what it does not name: topics only, and mostly without doing it."""

    def resource() -> dict[str, Any]:
        kind, name = draw.mostly(
            (TOPIC, "gamma"), (TOPIC, draw.topic()), (BROKER, "7"), (GROUP, "g0"), (0, "x")
        )
        configs = draw.some(lambda: _values(draw, kind))
        return {
            "resource_type": kind,
            "resource_name": name,
            "configs": [{"name": key, "value": draw.nullable(value)} for key, value in configs],
        }

    return {"resources": draw.some(resource, 2), "validate_only": draw.mostly(True, False)}


def incremental_alter_configs(draw: Draw) -> dict[str, Any]:
    def resource() -> dict[str, Any]:
        kind, name = _resource(draw)
        configs = draw.some(lambda: _values(draw, kind))
        return {
            "resource_type": kind,
            "resource_name": name,
            "configs": [
                {
                    "name": key,
                    "config_operation": draw.mostly(0, 1, 1, 2, 2, 3),
                    "value": draw.nullable(value),
                }
                for key, value in configs
            ],
        }

    return {"resources": draw.some(resource, 2), "validate_only": draw.mostly(False, True)}


def list_config_resources(draw: Draw) -> dict[str, Any]:
    return {"resource_types": draw.mostly([], [TOPIC], [BROKER], [CLIENT_METRICS, GROUP], [1], [0])}


# --- quotas and users ------------------------------------------------------------------------


def describe_client_quotas(draw: Draw) -> dict[str, Any]:
    def component() -> dict[str, Any]:
        return {
            "entity_type": draw.mostly(draw.pick("user", "client-id"), "ip", "", "nobody"),
            "match_type": draw.mostly(0, 1, 2, 3, -1),
            "match": draw.mostly("u1", None, ""),
        }

    return {"components": draw.some(component, 2), "strict": draw.pick(True, False)}


def alter_client_quotas(draw: Draw) -> dict[str, Any]:
    def entity() -> dict[str, Any]:
        return {
            "entity_type": draw.mostly(draw.pick("user", "client-id"), "ip", "", "nobody"),
            "entity_name": draw.mostly("u1", None, "", "127.0.0.1", "u2"),
        }

    def change() -> dict[str, Any]:
        return {
            "key": draw.mostly(
                "producer_byte_rate",
                "consumer_byte_rate",
                "request_percentage",
                "connection_creation_rate",
                "controller_mutation_rate",
                "",
                "no_such_rate",
            ),
            "value": draw.mostly(1024.0, 0.0, -1.0, 0.5, 1e18),
            "remove": draw.mostly(False, True),
        }

    def entry() -> dict[str, Any]:
        return {"entity": draw.some(entity, 2), "ops": draw.some(change, 2)}

    return {"entries": draw.some(entry, 2), "validate_only": draw.mostly(False, True)}


def describe_user_scram_credentials(draw: Draw) -> dict[str, Any]:
    users = draw.some(lambda: {"name": draw.mostly("u1", "u2", "nobody", "")})
    return {"users": draw.nullable(users)}


def alter_user_scram_credentials(draw: Draw) -> dict[str, Any]:
    def upsertion() -> dict[str, Any]:
        return {
            "name": draw.mostly("u1", "u2", ""),
            "mechanism": draw.mostly(1, 2, 0, 3, -1),
            "iterations": draw.mostly(4096, 4095, 16384, 16385, 0, -1),
            "salt": draw.mostly(b"salt", b""),
            "salted_password": draw.mostly(b"password", b""),
        }

    deletion = {
        "name": draw.mostly("u2", "nobody", ""),
        "mechanism": draw.mostly(1, 2, 0, 9),
    }
    return {
        "deletions": draw.mostly([], [deletion], [deletion, deletion]),
        "upsertions": draw.some(upsertion, 2),
    }


# --- ACLs ------------------------------------------------------------------------------------


def _acl_filter(draw: Draw, *unknown: int) -> dict[str, Any]:
    return {
        "resource_type_filter": draw.mostly(1, 2, 3, *unknown),
        "resource_name_filter": draw.mostly(None, "alpha", "", "*"),
        "pattern_type_filter": draw.mostly(1, 2, 3, 4, *unknown),
        "principal_filter": draw.mostly(None, "User:a", "", "nonsense"),
        "host_filter": draw.mostly(None, "*", "", "10.0.0.1"),
        "operation": draw.mostly(1, 2, 3, *unknown),
        "permission_type": draw.mostly(1, 2, 3, *unknown),
    }


def describe_acls(draw: Draw) -> dict[str, Any]:
    return _acl_filter(draw, 0, 99)


def create_acls(draw: Draw) -> dict[str, Any]:
    """Codes that nobody knows stand alone: Kafka then does nothing of the rest."""
    unknown = (0, 1, 99) if draw.chance(40) else ()

    def creation() -> dict[str, Any]:
        return {
            "resource_type": draw.mostly(2, 3, 4, *unknown),
            "resource_name": draw.mostly("alpha", "kafka-cluster", "*", LONG),
            "resource_pattern_type": draw.mostly(3, 4, *unknown),
            "principal": draw.mostly("User:a", "User:", ":a", *("nonsense", "") * bool(unknown)),
            "host": draw.mostly("*", "10.0.0.1", ""),
            "operation": draw.mostly(3, 2, 4, 12, *unknown),
            "permission_type": draw.mostly(3, 2, *unknown),
        }

    return {"creations": [creation()] if unknown else draw.some(creation)}


def delete_acls(draw: Draw) -> dict[str, Any]:
    """Codes that nobody knows stand alone: Kafka then does nothing of the rest."""
    if draw.chance(40):
        return {"filters": [_acl_filter(draw, 0, 99)]}
    return {"filters": draw.some(lambda: _acl_filter(draw), 2)}


# --- the cluster -----------------------------------------------------------------------------


def api_versions(draw: Draw) -> dict[str, Any]:
    return {
        "client_software_name": draw.mostly("diff", "", "-x", "a b", "é", "x" * 300),
        "client_software_version": draw.mostly("1.0", "", " ", "1.0-"),
    }


def describe_cluster(draw: Draw) -> dict[str, Any]:
    return {
        "include_cluster_authorized_operations": draw.pick(True, False),
        "endpoint_type": draw.mostly(1, 2, 0, 3, -1),
        "include_fenced_brokers": draw.pick(True, False),
    }


def update_features(draw: Draw) -> dict[str, Any]:
    """Never one that is possible, but for a trial."""

    def update() -> dict[str, Any]:
        return {
            "feature": draw.mostly("metadata.version", "nonsense", "", "kraft.version"),
            "max_version_level": draw.pick(25, 26, 99, -1, 0, 6, 24),
            "upgrade_type": draw.mostly(1, 2, 3, 0, 9),
            "allow_downgrade": draw.pick(True, False),
        }

    is_trial = draw.version >= 1
    nonsense = [{"feature": "nonsense", "max_version_level": 1, "upgrade_type": 1}]
    return {
        "timeout_ms": draw.timeout(),
        "feature_updates": draw.some(update, 2) if is_trial else nonsense,
        "validate_only": is_trial,
    }


def unregister_broker(draw: Draw) -> dict[str, Any]:
    return {"broker_id": draw.pick(2, 7, -1, INT32_MAX)}


REQUESTS = {
    "describe_configs": describe_configs,
    "alter_configs": alter_configs,
    "incremental_alter_configs": incremental_alter_configs,
    "list_config_resources": list_config_resources,
    "describe_client_quotas": describe_client_quotas,
    "alter_client_quotas": alter_client_quotas,
    "describe_user_scram_credentials": describe_user_scram_credentials,
    "alter_user_scram_credentials": alter_user_scram_credentials,
    "describe_acls": describe_acls,
    "create_acls": create_acls,
    "delete_acls": delete_acls,
    "api_versions": api_versions,
    "describe_cluster": describe_cluster,
    "update_features": update_features,
    "unregister_broker": unregister_broker,
}
