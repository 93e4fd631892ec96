"""The eligible leader replicas of partitions (KIP-966), which Metadata does not tell."""

from collections.abc import Iterable, Mapping, Sequence

from jepsen_like.real.kafka_client import Client
from wire.errors import ErrorCode
from wire.messages.metadata import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)

__all__ = ["EligibleReplicas", "eligible_replicas"]

_FEATURE = "eligible.leader.replicas.version"

EligibleReplicas = Mapping[tuple[str, int], Mapping[str, Sequence[int]]]


def eligible_replicas(client: Client, topics: Iterable[str]) -> EligibleReplicas:
    """`elr` and `last_known_elr` by topic and partition; nothing where the feature is off."""
    if not client.finalized.get(_FEATURE):
        return {}
    found: dict[tuple[str, int], Mapping[str, Sequence[int]]] = {}
    asked = tuple(TopicRequest(name=name) for name in sorted(topics))
    cursor: Cursor | None = None
    while asked:
        answer = client.ask(
            DescribeTopicPartitionsRequest(topics=asked, cursor=cursor),
            DescribeTopicPartitionsResponse,
        )
        for topic in answer.topics:
            if topic.error_code == ErrorCode.NONE:  # else it was deleted meanwhile
                found |= {
                    (topic.name or "", partition.partition_index): {
                        "elr": list(partition.eligible_leader_replicas or ()),
                        "last_known_elr": list(partition.last_known_elr or ()),
                    }
                    for partition in topic.partitions
                }
        following = answer.next_cursor
        if following is None:
            break
        cursor = Cursor(topic_name=following.topic_name, partition_index=following.partition_index)
        asked = tuple(each for each in asked if each.name >= following.topic_name)
    return found
