"""A broker counts its replicas: how many it leads, how many lack followers, and so on.

The counts are for metrics over HTTP and for the simulator. Counting changes nothing.
"""

from broker.partition.partition import FollowerOf, LeaderOf, Partition
from broker.replicas import Replicas
from controller.metadata.image import MetadataImage
from controller.metadata.topics import TopicImage
from wire.errors import ErrorCode

__all__ = ["broker_counts", "replica_marks"]


def replica_marks(
    replicas: Replicas, topic: TopicImage, index: int, leader_epoch: int
) -> dict[str, int]:
    """How far the replica here has come in this leader epoch; {} if there is none that knows it.

    Whoever asks by the metadata asks for its leader epoch: the replica may be behind, or ahead.
    """
    partition = replicas.find(topic.name, topic.id, index)
    if isinstance(partition, ErrorCode) or partition.leader_epoch != leader_epoch:
        return {}
    if not isinstance(partition.role, LeaderOf | FollowerOf):
        return {}
    log = partition.open_log
    return {"high_watermark": log.high_watermark, "log_end": log.end_offset}


def broker_counts(replicas: Replicas, image: MetadataImage) -> dict[str, int]:
    """What Kafka's ReplicaManager metrics count, under their names."""
    led = [
        (partition, partition.role)
        for partition in replicas
        if isinstance(partition.role, LeaderOf)
    ]
    return {
        "PartitionCount": len(replicas),
        "LeaderCount": len(led),
        "UnderReplicatedPartitions": sum(
            len(role.isr.members) < _replication_factor(image, partition, role)
            for partition, role in led
        ),
        "UnderMinIsrPartitionCount": sum(
            len(role.isr.members) < partition.min_isr for partition, role in led
        ),
        "AtMinIsrPartitionCount": sum(
            len(role.isr.members) == partition.min_isr for partition, role in led
        ),
        "OfflineReplicaCount": sum(partition.log is None for partition in replicas),
    }


def _replication_factor(image: MetadataImage, partition: Partition, role: LeaderOf) -> int:
    """From the image too, since a leader in zk-v3 is told its ISR but not every replica."""
    state = image.partition(partition.topic_id, partition.index)
    return len(role.replicas) if state is None else max(len(role.replicas), len(state.replicas))
