"""A replica tells what it knows of the producers of its partition, and of their transactions.

A follower answers as well: who looks for hanging transactions may ask each broker about the
replicas that it has. Source: KIP-664; Kafka's Partition.activeProducerState.
"""

from broker.cluster import Cluster
from broker.partition.partition import Offline, Partition
from broker.partition.producer_states import last_ms
from broker.replicas import Replicas
from controller.metadata.configs import Refusal
from controller.metadata.topics import topic_name_problem
from quorum.core.producers import ProducerEntry
from wire.errors import ErrorCode
from wire.messages.transactions import (
    ActiveProducer,
    DescribedProducers,
    DescribedProducersTopic,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopic,
)
from wire.primitives import ZERO_UUID

__all__ = ["describe_producers"]

_UNKNOWN_TOPIC = Refusal(
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
)


def describe_producers(
    request: object, *, cluster: Cluster, replicas: Replicas
) -> DescribeProducersResponse:
    assert isinstance(request, DescribeProducersRequest), request
    topics = tuple(
        DescribedProducersTopic(
            name=topic.name,
            partitions=_partitions(topic, cluster, replicas),
        )
        for topic in request.topics
    )
    return DescribeProducersResponse(topics=topics)


def _partitions(
    topic: DescribeProducersTopic, cluster: Cluster, replicas: Replicas
) -> tuple[DescribedProducers, ...]:
    refusal = _topic_refusal(topic.name, cluster)
    if refusal is not None:
        return tuple(
            refusal.told(DescribedProducers, partition_index=index)
            for index in topic.partition_indexes
        )
    return tuple(
        _described(index, replicas.find(topic.name, ZERO_UUID, index))
        for index in topic.partition_indexes
    )


def _topic_refusal(name: str, cluster: Cluster) -> Refusal | None:
    problem = topic_name_problem(name)
    if problem is not None:
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    return _UNKNOWN_TOPIC if cluster.image.topic(name) is None else None


def _described(index: int, partition: Partition | ErrorCode) -> DescribedProducers:
    error = partition if isinstance(partition, ErrorCode) else _refusal(partition)
    if error is not ErrorCode.NONE:
        return DescribedProducers(partition_index=index, error_code=error)
    assert isinstance(partition, Partition), partition
    entries = partition.open_log.producers.entries()
    return DescribedProducers(
        partition_index=index, active_producers=tuple(map(_active_producer, entries))
    )


def _refusal(partition: Partition) -> ErrorCode:
    if isinstance(partition.role, Offline):
        return partition.role.error
    return ErrorCode.NONE if partition.log is not None else ErrorCode.NOT_LEADER_OR_FOLLOWER


def _active_producer(entry: ProducerEntry) -> ActiveProducer:
    return ActiveProducer(
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        last_sequence=entry.batches[-1].last_sequence if entry.batches else -1,
        last_timestamp=max(last_ms(entry), -1),
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=entry.open_since,
    )
