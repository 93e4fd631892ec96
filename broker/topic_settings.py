"""What a topic's configuration means to the broker that holds its partitions.

Decides which level wins: the topic's own value, the broker's dynamic one, the dynamic default of
all brokers, server.properties, Kafka's default. Which values are valid is the controller's rule.

Source: Kafka's TopicConfig, and the table of broker-wide synonyms in ServerTopicConfigSynonyms.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wire.primitives import INT64_MAX

__all__ = ["BROKER_SYNONYMS", "TOPIC_DEFAULTS", "TopicSettings", "topic_settings"]

TOPIC_DEFAULTS: dict[str, str] = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "delete.retention.ms": "86400000",
    "file.delete.delay.ms": "60000",
    "flush.messages": str(INT64_MAX),
    "flush.ms": str(INT64_MAX),
    "index.interval.bytes": "4096",
    "max.compaction.lag.ms": str(INT64_MAX),
    "max.message.bytes": "1048588",
    "message.timestamp.after.max.ms": "3600000",
    "message.timestamp.before.max.ms": str(INT64_MAX),
    "message.timestamp.type": "CreateTime",
    "min.cleanable.dirty.ratio": "0.5",
    "min.compaction.lag.ms": "0",
    "min.insync.replicas": "1",
    "preallocate": "false",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
    "segment.index.bytes": "10485760",
    "segment.jitter.ms": "0",
    "segment.ms": "604800000",
    "unclean.leader.election.enable": "false",
}

# The broker-wide name of a topic setting, where it is not "log." + the topic's own.
_OTHER_SYNONYMS = {
    "compression.type": "compression.type",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "index.interval.bytes": "log.index.interval.bytes",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "max.message.bytes": "message.max.bytes",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "min.insync.replicas": "min.insync.replicas",
    "segment.index.bytes": "log.index.size.max.bytes",
    "segment.jitter.ms": "log.roll.jitter.ms",
    "segment.ms": "log.roll.ms",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}
BROKER_SYNONYMS = {name: _OTHER_SYNONYMS.get(name, f"log.{name}") for name in TOPIC_DEFAULTS}


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """The settings that the data path obeys."""

    min_insync_replicas: int = 1
    max_message_bytes: int = 1_048_588
    is_log_append_time: bool = False
    timestamp_after_max_ms: int = 3_600_000
    timestamp_before_max_ms: int = INT64_MAX


def topic_settings(
    topic: Mapping[str, str], broker_level: Callable[[str], str | None]
) -> TopicSettings:
    """`topic` holds the overrides of one topic; `broker_level` finds a broker-wide value."""

    def value(name: str) -> str:
        own = topic.get(name)
        if own is None:
            own = broker_level(BROKER_SYNONYMS[name])
        return TOPIC_DEFAULTS[name] if own is None else own

    def number(name: str) -> int:
        text = value(name)
        return int(text if _is_number(text) else TOPIC_DEFAULTS[name])

    return TopicSettings(
        min_insync_replicas=number("min.insync.replicas"),
        max_message_bytes=number("max.message.bytes"),
        is_log_append_time=value("message.timestamp.type") == "LogAppendTime",
        timestamp_after_max_ms=number("message.timestamp.after.max.ms"),
        timestamp_before_max_ms=number("message.timestamp.before.max.ms"),
    )


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal()
