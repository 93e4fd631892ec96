"""Groups see the cluster's topics by its published image."""

from collections.abc import Mapping
from uuid import UUID

from broker.cluster import Cluster
from broker.groups.consumer.consumer_groups import ASSIGNMENT_INTERVAL
from broker.groups.consumer.topic_patterns import TopicPatterns
from broker.groups.consumer.topics import TopicMetadata
from controller.metadata.image import ResourceType

__all__ = ["ClusterTopics", "group_settings"]


class ClusterTopics:
    __slots__ = ("_cluster", "_patterns", "_snapshot", "_topics")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._topics: object = None
        self._snapshot = 0
        self._patterns = TopicPatterns()

    @property
    def version(self) -> int:
        return self._cluster.image.at.offset

    @property
    def snapshot(self) -> int:
        """A section of the image is replaced when it changes, and only then. A group that nobody
        asks for remembers a number, and keeps no image of old."""
        if self._cluster.image.topics is not self._topics:
            self._topics = self._cluster.image.topics
            self._snapshot += 1
        return self._snapshot

    def metadata(self, name: str) -> TopicMetadata | None:
        topic = self._cluster.image.topic(name)
        return None if topic is None else TopicMetadata(topic.id, topic.partition_count)

    def name_of(self, topic_id: UUID) -> str | None:
        return self._cluster.topic_name(topic_id)

    def matching(self, pattern: str, now_ms: int) -> tuple[str, ...] | None:
        self._patterns.follow(self._cluster.image.topics.by_name, self.snapshot)
        return self._patterns.matching(pattern, now_ms)


def group_settings(cluster: Cluster, group_id: str) -> Mapping[str, str]:
    """What was set for the group, without defaults but one, that may change while a broker runs."""
    default = str(cluster.number(f"group.{ASSIGNMENT_INTERVAL}"))
    return {ASSIGNMENT_INTERVAL: default, **cluster.image.config(ResourceType.GROUP, group_id)}
