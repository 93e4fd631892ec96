"""The coordinators of groups: those of the partitions of `__consumer_offsets` that are led here."""

from functools import partial

from broker.cluster import Cluster
from broker.config import GroupConfig
from broker.coordination.coordinators import Coordinators, KeyTimers
from broker.groups.cluster_topics import ClusterTopics, group_settings
from broker.groups.coordinator import Coordinator, Surroundings
from broker.groups.offsets_topic import OFFSETS_TOPIC
from broker.partition.partition import Partition
from broker.verifying import Verifier
from broker.waiting import Deadlines
from quorum.core.outbox import Outbox
from wire.transaction_markers import Marker

__all__ = ["GroupCoordinators", "group_coordinators", "transaction_ended"]

GroupCoordinators = Coordinators[Coordinator]


def transaction_ended(
    coordinators: GroupCoordinators, partition: Partition, marker: Marker, _now_ms: int
) -> None:
    """The leader of the partition has just appended the marker, and nothing behind it yet."""
    coordinator = coordinators.of(partition)
    if coordinator is not None:
        coordinator.transaction_ended(marker)


def group_coordinators(
    config: GroupConfig,
    *,
    cluster: Cluster,
    deadlines: Deadlines,
    outbox: Outbox,
    verifier: Verifier,
) -> GroupCoordinators:
    shared = Surroundings(
        config=config,
        deadlines=deadlines,
        outbox=outbox,
        topic_id_of=cluster.topic_id,
        topic_with=cluster.topic_with,
        topics=ClusterTopics(cluster),
        settings=partial(group_settings, cluster),
        verifier=verifier,
        timers=KeyTimers(),
    )
    return Coordinators(
        OFFSETS_TOPIC,
        partial(Coordinator, shared=shared),
        cluster=cluster,
        timers=shared.timers,
        expiry_interval_ms=config.retention_check_interval_ms,
    )
