"""What groups see of the cluster's topics."""

from types import SimpleNamespace
from typing import Any
from weakref import ref

from broker.groups.cluster_topics import ClusterTopics


class Section:
    """A section of an image."""


def test_snapshot_changes_with_the_topics_and_keeps_none_of_old() -> None:
    """A thousand groups that nobody is in would keep a thousand of them."""
    cluster: Any = SimpleNamespace(image=SimpleNamespace(topics=Section()))
    topics = ClusterTopics(cluster)
    first = topics.snapshot
    assert topics.snapshot == first
    before = ref(cluster.image.topics)
    cluster.image.topics = Section()
    assert topics.snapshot != first
    assert before() is None
