"""A broker is described in words and numbers, for HTTP, logs and the simulator; nothing changes."""

from broker.broker import Broker
from broker.partition import isr
from broker.partition.partition import FollowerOf, LeaderOf, Partition
from controller.metadata.topics import TopicImage
from wire.errors import ErrorCode

__all__ = ["broker_counts", "describe_broker", "describe_partition", "replica_marks"]

Json = dict[str, object]


def describe_broker(broker: Broker) -> Json:
    """Ready for json.dumps; keys are added, never changed."""
    return {
        "node_id": broker.config.node_id,
        "state": broker.lifecycle.state.name,
        "broker_epoch": broker.broker_epoch,
        "metadata_offset": broker.metadata.published_offset,
        "counts": broker_counts(broker),
        "partitions": [
            describe_partition(partition)
            for partition in sorted(broker.replicas, key=lambda item: (item.topic, item.index))
        ],
    }


def describe_partition(partition: Partition) -> Json:
    role, log = partition.role, partition.log
    described: Json = {
        "topic": partition.topic,
        "partition": partition.index,
        "topic_id": str(partition.topic_id),
        "role": type(role).__name__,
        "leader": partition.leader_id,
        "leader_epoch": partition.leader_epoch,
        "log_start_offset": None if log is None else log.start_offset,
        "log_end_offset": None if log is None else log.end_offset,
        "high_watermark": None if log is None else log.high_watermark,
    }
    if isinstance(role, LeaderOf):
        described |= {
            "partition_epoch": role.partition_epoch,
            "isr": list(role.isr.members),
            "isr_state": type(role.isr).__name__,
            "maximal_isr": list(isr.maximal_isr(role.isr)),
            "replicas": list(role.replicas),
            "followers": {
                str(follower.broker_id): follower.log_end_offset
                for follower in role.followers.values()
            },
        }
    return described


def replica_marks(
    broker: Broker | None, topic: TopicImage, index: int, leader_epoch: int
) -> dict[str, int]:
    """How far the replica here has come in this leader epoch; {} if there is none that knows it.

    Whoever asks by the metadata asks for its leader epoch: the replica may be behind, or ahead.
    """
    if broker is None:
        return {}
    partition = broker.replicas.find(topic.name, topic.id, index)
    if isinstance(partition, ErrorCode) or partition.leader_epoch != leader_epoch:
        return {}
    if not isinstance(partition.role, LeaderOf | FollowerOf):
        return {}
    log = partition.open_log
    return {"high_watermark": log.high_watermark, "log_end": log.end_offset}


def broker_counts(broker: Broker) -> dict[str, int]:
    """What Kafka's ReplicaManager metrics count, under their names."""
    led = [
        (partition, partition.role)
        for partition in broker.replicas
        if isinstance(partition.role, LeaderOf)
    ]
    return {
        "PartitionCount": len(broker.replicas),
        "LeaderCount": len(led),
        "UnderReplicatedPartitions": sum(
            len(role.isr.members) < _replication_factor(broker, partition, role)
            for partition, role in led
        ),
        "UnderMinIsrPartitionCount": sum(
            len(role.isr.members) < partition.min_isr for partition, role in led
        ),
        "AtMinIsrPartitionCount": sum(
            len(role.isr.members) == partition.min_isr for partition, role in led
        ),
        "OfflineReplicaCount": sum(partition.log is None for partition in broker.replicas),
    }


def _replication_factor(broker: Broker, partition: Partition, role: LeaderOf) -> int:
    """From the image too, since a leader in zk-v3 is told its ISR but not every replica."""
    state = broker.cluster.image.partition(partition.topic_id, partition.index)
    return len(role.replicas) if state is None else max(len(role.replicas), len(state.replicas))
