"""The topics of an experiment: partitions counted through several of them, laid out by hand.

Pure. Kafka's controller writes at most 10,000 records for a request, so that one topic has 9,000
partitions at most and more come as several. Where replicas lie is said in the request: all designs
then fail over the same partitions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from wire.messages.topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from wire.primitives import ZERO_UUID

__all__ = ["PER_TOPIC", "Topic", "creation", "named", "place_of", "topics_for"]

PER_TOPIC = 9000


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    name: str
    first: int  # the number of its partition 0 among all
    placed: Sequence[tuple[int, ...]]  # by partition: its replicas
    id: UUID = ZERO_UUID  # known once it is created


def topics_for(placed: Sequence[tuple[int, ...]]) -> Iterator[Topic]:
    for number, first in enumerate(range(0, len(placed), PER_TOPIC)):
        part = placed[first : first + PER_TOPIC]
        yield Topic(name=f"compared-{number}", first=first, placed=part)


def place_of(topics: Sequence[Topic], partition: int) -> tuple[int, int]:
    """Which of `topics`, and which partition of it."""
    number, index = divmod(partition, PER_TOPIC)
    assert index < len(topics[number].placed), (partition, len(topics))
    return number, index


def named(topics: Sequence[Topic], name: str, topic_id: UUID) -> Topic:
    """The one that an answer is about: it has the name or the id, by its version."""
    return next(each for each in topics if name == each.name or topic_id == each.id)


def creation(topic: Topic, timeout_ms: int) -> CreateTopicsRequest:
    placed = tuple(
        CreatableReplicaAssignment(partition_index=index, broker_ids=replicas)
        for index, replicas in enumerate(topic.placed)
    )
    return CreateTopicsRequest(
        topics=(CreatableTopic(name=topic.name, assignments=placed),), timeout_ms=timeout_ms
    )
