"""Which partition of `__consumer_offsets` a group belongs to: every broker must say the same."""

import pytest

from broker.config import GroupConfig
from broker.coordination.coordinators import partition_of
from broker.groups.offsets_topic import OFFSETS_TOPIC, offsets_topic


# Utils.abs(group.hashCode()) % 50, from a Java machine.
@pytest.mark.parametrize(
    ("group_id", "partition"),
    [
        ("", 0),
        ("g", 3),
        ("orders", 31),  # hash -1008770331
        ("console-consumer-12345", 6),
        ("polygenelubricants", 0),  # hash -2147483648, which has no positive twin
        ("gé", 26),
        ("\U0001f600 group", 6),  # two chars in Java
    ],
)
def test_a_group_belongs_where_java_puts_it(group_id: str, partition: int) -> None:
    assert partition_of(group_id, 50) == partition


def test_the_topic_is_made_as_kafka_makes_it() -> None:
    topic = offsets_topic(GroupConfig())
    assert (topic.name, topic.num_partitions, topic.replication_factor) == (OFFSETS_TOPIC, 50, 3)
    assert {config.name: config.value for config in topic.configs} == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }
