"""Whom to ask instead: the leader of a partition and where it listens, for those who came to the
wrong broker (KIP-951)."""

from collections.abc import Iterable, Iterator
from uuid import UUID

from broker.cluster import Cluster
from controller.metadata.partitions import NO_LEADER
from quorum.types import NO_EPOCH, Endpoint

__all__ = ["leader_hint", "node_endpoints"]


def leader_hint(cluster: Cluster, topic: str, topic_id: UUID, index: int) -> tuple[int, int]:
    """Leader id and leader epoch; (-1, -1) if nothing is known of the partition."""
    name = cluster.topic_name(topic_id) if topic_id.int else topic
    return (NO_LEADER, NO_EPOCH) if name is None else cluster.leader_of(name, index)


def node_endpoints(cluster: Cluster, node_ids: Iterable[int], listener: str) -> Iterator[Endpoint]:
    """Where each of these brokers listens under the name of the listener that was asked."""
    for node_id in node_ids:
        if node_id == NO_LEADER:
            continue
        endpoint = cluster.endpoint(node_id, listener)
        if endpoint is not None:
            yield endpoint
