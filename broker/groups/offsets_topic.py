"""Coordinators of groups keep what must survive in the topic `__consumer_offsets`.

Source: Kafka's GroupCoordinatorService.groupMetadataTopicConfigs.
"""

from broker.config import GroupConfig
from wire.messages.topics import CreatableTopic, CreatableTopicConfig

__all__ = ["OFFSETS_TOPIC", "offsets_topic"]

OFFSETS_TOPIC = "__consumer_offsets"


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
