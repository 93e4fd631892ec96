"""From what ZooKeeper says to a metadata image: the changes that lead from one to the other.

An image is what every rule and every answer to a client is made from, in both modes; only where it
comes from differs. Topics of the ZooKeeper designs have no ids: theirs are made from their names,
so that whoever knows the name knows the id. A topic that was deleted and created again has the same
one, as it had none (KIP-516 came later): seed 000, discussion 5.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from uuid import UUID

from controller.metadata.apply import apply_with_delta
from controller.metadata.changes import Change, CommittedBatch, record_count
from controller.metadata.delta import MetadataDelta
from controller.metadata.image import BrokerImage, MetadataImage, ResourceType
from controller.metadata.partition_records import record_of
from controller.metadata.partitions import PartitionState
from wire.metadata_records import (
    BrokerEndpoint,
    ConfigRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from wire.zk.control_rpc import LiveBroker, TopicPartition

__all__ = ["Told", "after", "told_changes", "topic_id_of"]


def topic_id_of(name: str) -> UUID:
    return UUID(bytes=blake2b(name.encode(), digest_size=16, person=b"quorumlab zk").digest())


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Something that ZooKeeper, or a controller, says. What is not named stays as it is."""

    brokers: Mapping[int, LiveBroker] | None = None  # all that live; None: nothing is said
    partitions: Mapping[TopicPartition, PartitionState] = field(default_factory=dict)
    topics: Collection[str] | None = None  # all that there are; None: nothing is said
    deleted_topics: Collection[str] = ()
    configs: Mapping[tuple[int, str], Mapping[str, str]] = field(default_factory=dict)


def after(image: MetadataImage, told: Told) -> tuple[MetadataImage, MetadataDelta]:
    """The image with what was told in it, and what changed by that."""
    changes = tuple(told_changes(image, told))
    offset = image.at.offset
    batch = CommittedBatch(
        changes=changes,
        base_offset=offset,
        next_offset=offset + max(record_count(changes), 1),
        epoch=0,
        timestamp_ms=0,
    )
    return apply_with_delta(image, batch)


def told_changes(image: MetadataImage, told: Told) -> Iterator[Change]:
    """Only what differs from the image."""
    if told.brokers is not None:
        yield from _broker_changes(image, told.brokers)
    yield from _topic_changes(image, told)
    for resource, config in told.configs.items():
        yield from _config_changes(image, resource, config)


def _broker_changes(image: MetadataImage, live: Mapping[int, LiveBroker]) -> Iterator[Change]:
    for broker_id, known in sorted(image.brokers.items()):
        if broker_id not in live:
            yield UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=known.epoch)
    for broker_id, broker in sorted(live.items()):
        if not _is_known(image.brokers.get(broker_id), broker):
            yield RegisterBrokerRecord(
                broker_id=broker_id,
                incarnation_id=UUID(int=max(broker.generation, 0)),
                broker_epoch=broker.generation,
                end_points=_end_points(broker),
                features=(),
                rack=broker.rack,
                fenced=False,
            )


def _is_known(known: BrokerImage | None, broker: LiveBroker) -> bool:
    return (
        known is not None
        and known.epoch == broker.generation
        and known.end_points == _end_points(broker)
        and known.rack == broker.rack
    )


def _end_points(broker: LiveBroker) -> tuple[BrokerEndpoint, ...]:
    return tuple(
        BrokerEndpoint(name=each.listener, host=each.host, port=each.port, security_protocol=0)
        for each in broker.listeners
    )


def _topic_changes(image: MetadataImage, told: Told) -> Iterator[Change]:
    gone = set(told.deleted_topics)
    if told.topics is not None:
        gone |= image.topics.by_name.keys() - set(told.topics)
    known = set(image.topics.by_name)
    for name in sorted(gone & known):
        yield RemoveTopicRecord(topic_id=topic_id_of(name))
    known -= gone
    for of, state in sorted(told.partitions.items(), key=lambda item: item[0]):
        if of.topic in gone:
            continue
        topic_id = topic_id_of(of.topic)
        if of.topic not in known:
            known.add(of.topic)
            yield TopicRecord(name=of.topic, topic_id=topic_id)
        before = image.partition(topic_id, of.partition)
        if before != state:
            yield record_of(topic_id, of.partition, state)


def _config_changes(
    image: MetadataImage, resource: tuple[int, str], config: Mapping[str, str]
) -> Iterator[Change]:
    kind, name = resource
    assert kind in (ResourceType.TOPIC, ResourceType.BROKER), resource
    before = image.config(kind, name)
    for key in sorted(before.keys() | config.keys()):
        if before.get(key) != config.get(key):
            yield ConfigRecord(
                resource_type=kind, resource_name=name, name=key, value=config.get(key)
            )
