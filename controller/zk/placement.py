"""Where the replicas of new partitions go: seed 004's algorithm, with no chance in it.

    - sort all brokers (n of them) and the partitions to be assigned;
    - partition i goes to broker (i mod n);
    - its j-th replica goes to broker ((i + j) mod n).

A request that leaves the placement to the cluster becomes one that states it; whatever is wrong
with it is for the rules that both modes share to find.

Source: seed 004, "distribute all replica evenly".
"""

from collections.abc import Sequence

from controller.config import ControllerConfig
from controller.metadata.image import MetadataImage
from wire.message import replace
from wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
)

__all__ = ["assign", "placed_partitions", "placed_topics"]


def assign(brokers: Sequence[int], *, partition: int, factor: int) -> tuple[int, ...]:
    """The replicas of one partition; `brokers` are sorted, and at least as many as `factor`."""
    count = len(brokers)
    assert 0 < factor <= count, (factor, count)
    return tuple(brokers[(partition + replica) % count] for replica in range(factor))


def placed_topics(
    image: MetadataImage, request: CreateTopicsRequest, config: ControllerConfig
) -> CreateTopicsRequest:
    return replace(
        request, topics=tuple(_placed_topic(image, topic, config) for topic in request.topics)
    )


def _placed_topic(
    image: MetadataImage, topic: CreatableTopic, config: ControllerConfig
) -> CreatableTopic:
    brokers = sorted(image.brokers)
    count = config.num_partitions if topic.num_partitions == -1 else topic.num_partitions
    factor = topic.replication_factor
    factor = config.default_replication_factor if factor == -1 else factor
    if topic.assignments or count < 1 or not 0 < factor <= len(brokers):
        return topic  # stated, or to be refused
    return replace(
        topic,
        num_partitions=-1,
        replication_factor=-1,
        assignments=tuple(
            CreatableReplicaAssignment(
                partition_index=index,
                broker_ids=assign(brokers, partition=index, factor=factor),
            )
            for index in range(count)
        ),
    )


def placed_partitions(
    image: MetadataImage, request: CreatePartitionsRequest
) -> CreatePartitionsRequest:
    return replace(
        request, topics=tuple(_placed_partitions(image, topic) for topic in request.topics)
    )


def _placed_partitions(image: MetadataImage, asked: CreatePartitionsTopic) -> CreatePartitionsTopic:
    brokers, topic = sorted(image.brokers), image.topic(asked.name)
    states = [] if topic is None else [state for _, state in image.partitions_of(topic.id)]
    if asked.assignments is not None or not states or len(states[0].replicas) > len(brokers):
        return asked
    factor = len(states[0].replicas)
    return replace(
        asked,
        assignments=tuple(
            CreatePartitionsAssignment(broker_ids=assign(brokers, partition=index, factor=factor))
            for index in range(len(states), max(asked.count, len(states)))
        ),
    )
