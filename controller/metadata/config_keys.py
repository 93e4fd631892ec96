"""The configuration keys that exist: type, default, range, and who may change them.

A table, and what follows from one line of it. Which level of a value wins is decided in
`controller.metadata.configs`. Names, types, defaults and ranges are Kafka's: tests hold them to
what a real one describes. Of a broker's several hundred keys, those are here that mean something to
our nodes, and those that Kafka lets change while a broker runs. Of keys that a node reads when it
starts (`NODE_KEYS`) the least value is the one that `quorumlab.config` takes.

Source: Kafka's LogConfig, ServerTopicConfigSynonyms, DynamicBrokerConfig, ClientMetricsConfigs,
GroupConfig.
"""

from collections.abc import Mapping
from typing import Any

from controller.metadata.config_value import (
    ConfigKey,
    ConfigType,
    Synonym,
    Update,
    description,
    problem,
)
from controller.metadata.tls_keys import TLS_KEYS
from wire.primitives import INT32_MAX, INT64_MAX

__all__ = [
    "BROKER_KEYS",
    "CLIENT_METRICS_KEYS",
    "GROUP_KEYS",
    "NODE_KEYS",
    "TOPIC_DEFAULTS",
    "TOPIC_KEYS",
    "WITHOUT_EFFECT",
    "ConfigKey",
    "ConfigType",
    "Synonym",
    "Update",
    "description",
    "family",
    "problem",
]

_DAY_MS = 24 * 3_600_000
_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS


# --- topics ---------------------------------------------------------------------------------


def _topic_key(
    name: str,
    type_: ConfigType,
    default: object,
    synonyms: str | tuple[str | Synonym, ...] = (),
    minimum: float | None = None,
    maximum: float | None = None,
    **others: Any,
) -> ConfigKey:
    listed = (synonyms,) if isinstance(synonyms, str) else synonyms
    return ConfigKey(
        name=name,
        type=type_,
        default=str(default),
        minimum=minimum,
        maximum=maximum,
        synonyms=tuple(Synonym(each) if isinstance(each, str) else each for each in listed),
        **others,
    )


_BOOLEAN, _STRING, _LIST = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.LIST
_PASSWORD = ConfigType.PASSWORD
_INT, _LONG, _DOUBLE = ConfigType.INT, ConfigType.LONG, ConfigType.DOUBLE
_SHORT = ConfigType.SHORT
_MATCHES = (
    r"(client_instance_id|client_id|client_software_name|client_software_version"
    r"|client_source_address|client_source_port)=.+"
)
_REPLICAS = r"\*|[0-9]+:[0-9]+"  # all, or partition:broker
_CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")

_TOPIC_KEYS = (
    _topic_key(
        "cleanup.policy", _LIST, "delete", "log.cleanup.policy", choices=("compact", "delete")
    ),
    _topic_key("compression.gzip.level", _INT, -1, "compression.gzip.level", -1, 9),
    _topic_key("compression.lz4.level", _INT, 9, "compression.lz4.level", 1, 17),
    _topic_key("compression.type", _STRING, "producer", "compression.type", choices=_CODECS),
    _topic_key("compression.zstd.level", _INT, 3, "compression.zstd.level", -131072, 22),
    _topic_key("delete.retention.ms", _LONG, _DAY_MS, "log.cleaner.delete.retention.ms", 0),
    _topic_key("file.delete.delay.ms", _LONG, 60_000, "log.segment.delete.delay.ms", 0),
    _topic_key("flush.messages", _LONG, INT64_MAX, "log.flush.interval.messages", 1),
    _topic_key(
        "flush.ms",
        _LONG,
        INT64_MAX,
        (
            "log.flush.interval.ms",
            Synonym("log.flush.scheduler.interval.ms", default=str(INT64_MAX)),
        ),
        0,
    ),
    _topic_key("follower.replication.throttled.replicas", _LIST, "", pattern=_REPLICAS),
    _topic_key("index.interval.bytes", _INT, 4096, "log.index.interval.bytes", 0),
    _topic_key("leader.replication.throttled.replicas", _LIST, "", pattern=_REPLICAS),
    _topic_key("local.retention.bytes", _LONG, -2, "log.local.retention.bytes", -2),
    _topic_key("local.retention.ms", _LONG, -2, "log.local.retention.ms", -2),
    _topic_key("max.compaction.lag.ms", _LONG, INT64_MAX, "log.cleaner.max.compaction.lag.ms", 1),
    _topic_key("max.message.bytes", _INT, 1_048_588, "message.max.bytes", 0),
    _topic_key(
        "message.timestamp.after.max.ms", _LONG, _HOUR_MS, "log.message.timestamp.after.max.ms", 0
    ),
    _topic_key(
        "message.timestamp.before.max.ms",
        _LONG,
        INT64_MAX,
        "log.message.timestamp.before.max.ms",
        0,
    ),
    _topic_key(
        "message.timestamp.type",
        _STRING,
        "CreateTime",
        "log.message.timestamp.type",
        choices=("CreateTime", "LogAppendTime"),
    ),
    _topic_key("min.cleanable.dirty.ratio", _DOUBLE, 0.5, "log.cleaner.min.cleanable.ratio", 0, 1),
    _topic_key("min.compaction.lag.ms", _LONG, 0, "log.cleaner.min.compaction.lag.ms", 0),
    _topic_key("min.insync.replicas", _INT, 1, "min.insync.replicas", 1),
    _topic_key("preallocate", _BOOLEAN, "false", "log.preallocate"),
    _topic_key("remote.log.copy.disable", _BOOLEAN, "false"),
    _topic_key("remote.log.delete.on.disable", _BOOLEAN, "false"),
    _topic_key("remote.storage.enable", _BOOLEAN, "false", choices=("false",)),  # nor in Kafka
    _topic_key("retention.bytes", _LONG, -1, "log.retention.bytes"),
    _topic_key(
        "retention.ms",
        _LONG,
        7 * _DAY_MS,
        (
            "log.retention.ms",
            Synonym("log.retention.minutes", _MINUTE_MS),
            Synonym("log.retention.hours", _HOUR_MS, default="168"),
        ),
        -1,
    ),
    _topic_key("segment.bytes", _INT, 1 << 30, "log.segment.bytes", 1 << 20),
    _topic_key("segment.index.bytes", _INT, 10 << 20, "log.index.size.max.bytes", 4),
    _topic_key(
        "segment.jitter.ms",
        _LONG,
        0,
        ("log.roll.jitter.ms", Synonym("log.roll.jitter.hours", _HOUR_MS, default="0")),
        0,
    ),
    _topic_key(
        "segment.ms",
        _LONG,
        7 * _DAY_MS,
        ("log.roll.ms", Synonym("log.roll.hours", _HOUR_MS, default="168")),
        1,
    ),
    _topic_key(
        "unclean.leader.election.enable", _BOOLEAN, "false", "unclean.leader.election.enable"
    ),
)
TOPIC_KEYS: Mapping[str, ConfigKey] = {key.name: key for key in _TOPIC_KEYS}

# Checked, kept and shown as in Kafka, and obeyed by nothing here: docs/compatibility.md says why.
WITHOUT_EFFECT = frozenset(
    {
        "file.delete.delay.ms",
        "flush.messages",
        "flush.ms",
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "local.retention.bytes",
        "local.retention.ms",
        "preallocate",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "remote.storage.enable",
        "segment.jitter.ms",
    }
)

# Of server.properties: what topics obey that have no value of their own.
TOPIC_DEFAULTS = frozenset(
    synonym.name
    for key in _TOPIC_KEYS
    if key.name not in WITHOUT_EFFECT
    for synonym in key.synonyms
)


# --- brokers --------------------------------------------------------------------------------


def _broker_synonyms() -> list[ConfigKey]:
    """The brokers' side of the topic keys: the same type and range, unless the unit differs."""
    keys = []
    for key in _TOPIC_KEYS:
        for synonym in key.synonyms:
            in_other_unit = synonym.factor != 1
            keys.append(
                ConfigKey(
                    name=synonym.name,
                    type=_INT if in_other_unit else key.type,
                    default=key.default if len(key.synonyms) == 1 else synonym.default,
                    minimum=None if in_other_unit else key.minimum,
                    maximum=key.maximum,
                    choices=key.choices,
                    update=(
                        Update.CLUSTER_WIDE if synonym is key.synonyms[0] else Update.READ_ONLY
                    ),
                )
            )
    return keys


def _broker_key(
    name: str, type_: ConfigType, default: object, update: Update, minimum: float | None = None
) -> ConfigKey:
    text = None if default is None else str(default)
    return ConfigKey(name=name, type=type_, default=text, minimum=minimum, update=update)


_FIXED, _ONE, _ALL = Update.READ_ONLY, Update.PER_BROKER, Update.CLUSTER_WIDE

# Of TLS and of connections: a node reads these when it starts, and again when they change.
_SECURITY_KEYS = tuple(
    _broker_key(name, ConfigType[kind], default, Update(update), 0 if kind == "INT" else None)
    for name, kind, default, update in TLS_KEYS
)
_BROKER_KEYS = (
    *_SECURITY_KEYS,
    _broker_key("advertised.listeners", _LIST, None, _FIXED),
    _broker_key("authorizer.class.name", _STRING, "", _FIXED),
    _broker_key("auto.create.topics.enable", _BOOLEAN, "true", _FIXED),
    _broker_key("auto.leader.rebalance.enable", _BOOLEAN, "true", _FIXED),
    _broker_key("background.threads", _INT, 10, _ALL, 1),
    _broker_key("broker.heartbeat.interval.ms", _INT, 2000, _FIXED, 1),
    _broker_key("broker.id", _INT, -1, _FIXED),
    _broker_key("broker.rack", _STRING, None, _FIXED),
    _broker_key("broker.session.timeout.ms", _INT, 9000, _FIXED, 1),
    _broker_key("connection.failed.authentication.delay.ms", _INT, 100, _FIXED, 0),
    _broker_key("connections.max.reauth.ms", _LONG, 0, _FIXED),
    _broker_key("controlled.shutdown.enable", _BOOLEAN, "true", _FIXED),
    _broker_key("controller.listener.names", _LIST, None, _FIXED),
    _broker_key("controller.quorum.auto.join.enable", _BOOLEAN, "false", _FIXED),
    _broker_key("controller.quorum.bootstrap.servers", _LIST, "", _FIXED),
    _broker_key("controller.quorum.election.backoff.max.ms", _INT, 1000, _FIXED, 1),
    _broker_key("controller.quorum.election.timeout.ms", _INT, 1000, _FIXED, 1),
    _broker_key("controller.quorum.fetch.timeout.ms", _INT, 2000, _FIXED, 1),
    _broker_key("controller.quorum.request.timeout.ms", _INT, 2000, _FIXED, 1),
    _broker_key("controller.quorum.retry.backoff.ms", _INT, 20, _FIXED, 1),
    _broker_key("controller.quorum.voters", _LIST, "", _FIXED),
    _broker_key("controller.quota.window.num", _INT, 11, _FIXED, 1),
    _broker_key("controller.quota.window.size.seconds", _INT, 1, _FIXED, 1),
    _broker_key("controller.socket.timeout.ms", _INT, 30_000, _FIXED, 1),
    _broker_key("default.replication.factor", _INT, 1, _FIXED, 1),
    _broker_key("delete.topic.enable", _BOOLEAN, "true", _FIXED),
    _broker_key("early.start.listeners", _LIST, None, _FIXED),
    _broker_key("fetch.max.bytes", _INT, 55 << 20, _FIXED, 1024),
    _broker_key("group.consumer.assignment.interval.ms", _INT, 1000, _ALL, 0),
    _broker_key("group.consumer.assignors", _LIST, "uniform,range", _FIXED),
    _broker_key("group.consumer.heartbeat.interval.ms", _INT, 5000, _FIXED, 1),
    _broker_key("group.consumer.max.assignment.interval.ms", _INT, 15_000, _FIXED, 0),
    _broker_key("group.consumer.max.heartbeat.interval.ms", _INT, 15_000, _FIXED, 1),
    _broker_key("group.consumer.max.session.timeout.ms", _INT, _MINUTE_MS, _FIXED, 1),
    _broker_key("group.consumer.max.size", _INT, INT32_MAX, _FIXED, 1),
    _broker_key("group.consumer.migration.policy", _STRING, "bidirectional", _FIXED),
    _broker_key("group.consumer.min.assignment.interval.ms", _INT, 0, _FIXED, 0),
    _broker_key("group.consumer.min.heartbeat.interval.ms", _INT, 5000, _FIXED, 1),
    _broker_key("group.consumer.min.session.timeout.ms", _INT, 45_000, _FIXED, 1),
    _broker_key("group.consumer.session.timeout.ms", _INT, 45_000, _FIXED, 1),
    _broker_key("group.initial.rebalance.delay.ms", _INT, 3000, _FIXED, 0),
    _broker_key("group.max.session.timeout.ms", _INT, 30 * _MINUTE_MS, _FIXED, 0),
    _broker_key("group.max.size", _INT, INT32_MAX, _FIXED, 1),
    _broker_key("group.min.session.timeout.ms", _INT, 6000, _FIXED, 0),
    _broker_key("initial.broker.registration.timeout.ms", _INT, _MINUTE_MS, _FIXED, 1),
    _broker_key("inter.broker.listener.name", _STRING, None, _FIXED),
    _broker_key("leader.imbalance.check.interval.seconds", _LONG, 300, _FIXED, 1),
    _broker_key("listener.security.protocol.map", _STRING, None, _ONE),
    _broker_key("listeners", _LIST, "PLAINTEXT://:9092", _ONE),
    _broker_key("log.cleaner.backoff.ms", _LONG, 15_000, _ALL, 0),
    _broker_key("log.cleaner.dedupe.buffer.size", _LONG, 128 << 20, _ALL),
    _broker_key("log.cleaner.enable", _BOOLEAN, "true", _FIXED),
    _broker_key("log.cleaner.io.max.bytes.per.second", _DOUBLE, "1.7976931348623157E308", _ALL),
    _broker_key("log.cleaner.threads", _INT, 1, _ALL, 0),
    _broker_key("log.dir", _LIST, "/tmp/kafka-logs", _FIXED),  # noqa: S108  # Kafka's default
    _broker_key("log.dir.failure.timeout.ms", _LONG, 30_000, _FIXED, 1),
    _broker_key("log.dirs", _LIST, None, _FIXED),
    _broker_key("log.retention.check.interval.ms", _LONG, 5 * _MINUTE_MS, _FIXED, 1),
    _broker_key("max.connection.creation.rate", _INT, INT32_MAX, _ALL, 0),
    _broker_key("max.incremental.fetch.session.cache.slots", _INT, 1000, _FIXED, 0),
    _broker_key("metadata.log.dir", _STRING, None, _FIXED),
    _broker_key("metadata.log.max.record.bytes.between.snapshots", _LONG, 20 << 20, _FIXED, 1),
    _broker_key("metadata.log.max.snapshot.interval.ms", _LONG, _HOUR_MS, _FIXED, 0),
    _broker_key("metadata.log.segment.bytes", _INT, 1 << 30, _FIXED, 1),
    _broker_key("metadata.log.segment.ms", _LONG, 7 * _DAY_MS, _FIXED, 1),
    _broker_key("metadata.max.idle.interval.ms", _INT, 500, _FIXED, 0),
    _broker_key("metadata.max.retention.bytes", _LONG, 100 << 20, _FIXED, -1),
    _broker_key("metadata.max.retention.ms", _LONG, 7 * _DAY_MS, _FIXED, -1),
    _broker_key("node.id", _INT, None, _FIXED, 0),
    _broker_key("num.io.threads", _INT, 8, _ALL, 1),
    _broker_key("num.network.threads", _INT, 3, _ALL, 1),
    _broker_key("num.partitions", _INT, 1, _FIXED, 1),
    _broker_key("num.recovery.threads.per.data.dir", _INT, 2, _ALL, 1),
    _broker_key("num.replica.fetchers", _INT, 1, _ALL, 1),
    _broker_key("offset.metadata.max.bytes", _INT, 4096, _FIXED, 0),
    _broker_key("offsets.commit.timeout.ms", _INT, 5000, _FIXED, 1),
    _broker_key("offsets.retention.check.interval.ms", _LONG, 10 * _MINUTE_MS, _FIXED, 1),
    _broker_key("offsets.retention.minutes", _INT, 7 * 24 * 60, _FIXED, 1),
    _broker_key("offsets.topic.num.partitions", _INT, 50, _FIXED, 1),
    _broker_key("offsets.topic.replication.factor", _SHORT, 3, _FIXED, 1),
    _broker_key("offsets.topic.segment.bytes", _INT, 100 << 20, _FIXED, 1),
    _broker_key("process.roles", _LIST, None, _FIXED),
    _broker_key("producer.id.expiration.ms", _INT, _DAY_MS, _ALL, 1),
    _broker_key("quota.window.num", _INT, 11, _FIXED, 1),
    _broker_key("quota.window.size.seconds", _INT, 1, _FIXED, 1),
    _broker_key("replica.fetch.backoff.ms", _INT, 1000, _FIXED, 0),
    _broker_key("replica.fetch.max.bytes", _INT, 1 << 20, _FIXED, 1),
    _broker_key("replica.fetch.min.bytes", _INT, 1, _FIXED, 0),
    _broker_key("replica.fetch.response.max.bytes", _INT, 10 << 20, _FIXED, 1),
    _broker_key("replica.fetch.wait.max.ms", _INT, 500, _FIXED, 0),
    _broker_key("replica.high.watermark.checkpoint.interval.ms", _LONG, 5000, _FIXED, 1),
    _broker_key("replica.lag.time.max.ms", _LONG, 30_000, _FIXED, 1),
    _broker_key("sasl.enabled.mechanisms", _LIST, "GSSAPI", _ONE),
    _broker_key("sasl.jaas.config", _PASSWORD, None, _ONE),
    _broker_key("sasl.mechanism.controller.protocol", _STRING, "GSSAPI", _FIXED),
    _broker_key("sasl.mechanism.inter.broker.protocol", _STRING, "GSSAPI", _ONE),
    _broker_key("sasl.oauthbearer.clock.skew.seconds", _INT, 30, _FIXED),
    _broker_key("sasl.oauthbearer.expected.audience", _LIST, "", _FIXED),
    _broker_key("sasl.oauthbearer.expected.issuer", _STRING, None, _FIXED),
    _broker_key("sasl.oauthbearer.jwks.endpoint.refresh.ms", _LONG, _HOUR_MS, _FIXED),
    _broker_key("sasl.oauthbearer.jwks.endpoint.url", _STRING, None, _FIXED),
    _broker_key("sasl.oauthbearer.scope.claim.name", _STRING, "scope", _FIXED),
    _broker_key("sasl.oauthbearer.sub.claim.name", _STRING, "sub", _FIXED),
    _broker_key("sasl.oauthbearer.token.endpoint.url", _STRING, None, _FIXED),
    _broker_key("sasl.server.max.receive.size", _INT, 512 << 10, _FIXED),
    _broker_key("security.inter.broker.protocol", _STRING, "PLAINTEXT", _FIXED),
    _broker_key("socket.request.max.bytes", _INT, 100 << 20, _FIXED, 1),
    _broker_key(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms", _INT, 10_000, _FIXED, 1
    ),
    _broker_key("transaction.max.timeout.ms", _INT, 15 * _MINUTE_MS, _FIXED, 1),
    _broker_key("transaction.partition.verification.enable", _BOOLEAN, "true", _ALL),
    _broker_key(
        "transaction.remove.expired.transaction.cleanup.interval.ms", _INT, _HOUR_MS, _FIXED, 1
    ),
    _broker_key("transaction.state.log.min.isr", _INT, 2, _FIXED, 1),
    _broker_key("transaction.state.log.num.partitions", _INT, 50, _FIXED, 1),
    _broker_key("transaction.state.log.replication.factor", _SHORT, 3, _FIXED, 1),
    _broker_key("transaction.state.log.segment.bytes", _INT, 100 << 20, _FIXED, 1),
    _broker_key("transactional.id.expiration.ms", _INT, 7 * _DAY_MS, _FIXED, 1),
)
# Set by reassignments while they go on: how fast replicas may be copied.
_THROTTLES = tuple(
    ConfigKey(name=name, type=_LONG, default=str(INT64_MAX), minimum=0, is_listed=False)
    for name in (
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
)
# A node reads these when it starts.
NODE_KEYS = tuple(
    key for key in _BROKER_KEYS if key.update is Update.READ_ONLY or key in _SECURITY_KEYS
)
BROKER_KEYS: Mapping[str, ConfigKey] = {
    key.name: key for key in (*_broker_synonyms(), *_BROKER_KEYS, *_THROTTLES)
}


def _families() -> dict[str, tuple[str, ...]]:
    """Synonyms of one topic key stand in for each other; the scheduler's interval only one way."""
    found: dict[str, tuple[str, ...]] = {}
    for key in _TOPIC_KEYS:
        names = tuple(synonym.name for synonym in key.synonyms)
        if len(names) > 1:
            found |= dict.fromkeys(names, names)
    del found["log.flush.scheduler.interval.ms"]
    return found


_FAMILIES = _families()


def family(name: str) -> tuple[str, ...]:
    """The broker's keys that have a say in the value of this one, itself among them."""
    return _FAMILIES.get(name, (name,))


# --- client metrics, groups -------------------------------------------------------------------

_CLIENT_METRICS_KEYS = (
    ConfigKey(name="interval.ms", type=_INT, default="300000", minimum=100, maximum=3_600_000),
    ConfigKey(name="metrics", type=_LIST, default=""),
    ConfigKey(name="match", type=_LIST, default="", pattern=_MATCHES),
)
CLIENT_METRICS_KEYS: Mapping[str, ConfigKey] = {key.name: key for key in _CLIENT_METRICS_KEYS}


def _group_key(name: str, default: int, minimum: int, maximum: int) -> ConfigKey:
    return ConfigKey(
        name=name,
        type=_INT,
        default=str(default),
        minimum=minimum,
        maximum=maximum,
        synonyms=(Synonym(f"group.{name}"),),
    )


_GROUP_KEYS = (
    _group_key("consumer.assignment.interval.ms", 1000, 0, 15_000),
    _group_key("consumer.heartbeat.interval.ms", 5000, 5000, 15_000),
    _group_key("consumer.session.timeout.ms", 45_000, 45_000, 60_000),
)
GROUP_KEYS: Mapping[str, ConfigKey] = {key.name: key for key in _GROUP_KEYS}
