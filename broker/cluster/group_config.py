"""The limits and times of the coordinator of groups, and its topic, `__consumer_offsets`.

Names and defaults are Kafka's (`group.initial.rebalance.delay.ms` is `initial_rebalance_delay_ms`).
The leader of a group's partition in that topic is the coordinator of the group, so that electing it
needs nothing of its own.

Source: Kafka's GroupCoordinatorConfig and GroupCoordinatorService (partitionFor,
groupMetadataTopicConfigs).
"""

from dataclasses import dataclass

from wire.messages.topics import CreatableTopic, CreatableTopicConfig
from wire.primitives import INT32_MAX

__all__ = ["INTERNAL_TOPICS", "OFFSETS_TOPIC", "GroupConfig", "offsets_topic", "partition_of"]

_DAY_MS = 24 * 3_600_000


OFFSETS_TOPIC = "__consumer_offsets"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, "__transaction_state", "__share_group_state"})

_INT32_MIN = -(2**31)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    # Groups.
    initial_rebalance_delay_ms: int = 3000
    min_session_timeout_ms: int = 6000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = INT32_MAX  # members of a group
    new_member_join_timeout_ms: int = 300_000  # Kafka's, and no key of its own

    # Offsets.
    offset_metadata_max_bytes: int = 4096
    commit_timeout_ms: int = 5000  # offsets.commit.timeout.ms: of every write
    retention_ms: int = 7 * _DAY_MS  # offsets.retention.minutes
    retention_check_interval_ms: int = 600_000
    load_bytes_max: int = 128 << 10  # a piece: what may stop the event loop for 10 to 30 ms

    # The topic of offsets.
    topic_num_partitions: int = 50
    topic_replication_factor: int = 3
    topic_segment_bytes: int = 100 << 20


def offsets_topic(config: GroupConfig) -> CreatableTopic:
    configs = {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(config.topic_segment_bytes),
    }
    return CreatableTopic(
        name=OFFSETS_TOPIC,
        num_partitions=config.topic_num_partitions,
        replication_factor=config.topic_replication_factor,
        configs=tuple(CreatableTopicConfig(name=key, value=configs[key]) for key in configs),
    )


def partition_of(group_id: str, count: int) -> int:
    """As every Kafka broker has it: Java's hash of the name, without its sign."""
    assert count > 0, count
    value = _java_hash(group_id)
    return 0 if value == _INT32_MIN else abs(value) % count


def _java_hash(text: str) -> int:
    encoded = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for position in range(0, len(encoded), 2):
        value = (31 * value + (encoded[position] << 8 | encoded[position + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value
