"""Coordinators of groups keep what must survive in the topic `__consumer_offsets`.

The leader of a group's partition in that topic is the coordinator of the group, so that electing it
needs nothing of its own.

Source: Kafka's GroupCoordinatorService (partitionFor, groupMetadataTopicConfigs).
"""

from broker.config import GroupConfig
from wire.messages.topics import CreatableTopic, CreatableTopicConfig

__all__ = ["INTERNAL_TOPICS", "OFFSETS_TOPIC", "offsets_topic", "partition_of"]

OFFSETS_TOPIC = "__consumer_offsets"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, "__transaction_state", "__share_group_state"})

_INT32_MIN = -(2**31)


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
