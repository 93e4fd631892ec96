"""What a client's request needs in ZooKeeper mode: the topics that it is about, the configs that it
may change, and a placement for new replicas.

A rule looks at the partitions of those topics alone, since a cluster has a few topics and up to a
million partitions. Of all other topics it only has to know that they exist.

Replicas are placed by seed 004's algorithm, with no chance in it ("distribute all replica evenly"):

    - sort all brokers (n of them) and the partitions to be assigned;
    - partition i goes to broker (i mod n);
    - its j-th replica goes to broker ((i + j) mod n).

A request that leaves the placement to the cluster becomes one that states it. Whatever is wrong
with a request is found by the rules that both modes share.

Configs lie in `/config/ENTITY/NAME`, with a note under `/config/changes`: seed 001, as Apache Kafka
has it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from controller.config import ControllerConfig
from controller.metadata.changes import Change
from controller.metadata.image import MetadataImage, ResourceType
from controller.zk.zk_metadata import DEFAULT_ENTITY, ENTITIES, read_configs, topic_id_of
from quorum.zookeeper.zk_procedures import Procedure
from wire.message import replace
from wire.messages import topics as messages
from wire.messages.configs import AlterConfigsRequest, IncrementalAlterConfigsRequest
from wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from wire.metadata_records import ConfigRecord
from wire.zk import paths
from wire.zk.designs import Design
from wire.zk.session import Create, Operation, SetData
from wire.zk.znodes import ConfigChange, EntityConfig

__all__ = [
    "assign",
    "config_operations",
    "configs_for",
    "placed_partitions",
    "placed_topics",
    "topics_of",
]

# --- topics ---------------------------------------------------------------------------------


def topics_of(body: object, known: Collection[str], moving: Collection[str]) -> list[str]:
    """Those of the `known` topics that the request is about, sorted.

    With a reassignment these are all that are `moving`, too: moves are written down together.
    """
    return sorted(set(_named(body, known, moving)).intersection(known))


def _named(body: object, known: Collection[str], moving: Collection[str]) -> Iterator[str]:
    match body:
        case (
            messages.CreateTopicsRequest(topics=topics)
            | messages.CreatePartitionsRequest(topics=topics)
        ):
            yield from (topic.name for topic in topics)
        case messages.DeleteTopicsRequest(topics=topics):
            ids = {topic_id_of(name): name for name in known}
            yield from (each.name or ids.get(each.topic_id, "") for each in topics)
        case AlterPartitionReassignmentsRequest(topics=topics):
            yield from moving
            yield from (topic.name for topic in topics)
        case ListPartitionReassignmentsRequest(topics=asked):
            yield from moving
            yield from (topic.name for topic in asked or ())
        case ElectLeadersRequest(topic_partitions=asked):
            yield from known if asked is None else (topic.topic for topic in asked)
        case _:
            pass  # configs: it is enough that a topic exists


# --- placement ------------------------------------------------------------------------------


def assign(brokers: Sequence[int], *, partition: int, factor: int) -> tuple[int, ...]:
    """The replicas of one partition; `brokers` are sorted, and at least as many as `factor`."""
    count = len(brokers)
    assert 0 < factor <= count, (factor, count)
    return tuple(brokers[(partition + replica) % count] for replica in range(factor))


def placed_topics(
    image: MetadataImage, request: messages.CreateTopicsRequest, config: ControllerConfig
) -> messages.CreateTopicsRequest:
    brokers = sorted(image.brokers)

    def placed(topic: messages.CreatableTopic) -> messages.CreatableTopic:
        count = config.num_partitions if topic.num_partitions == -1 else topic.num_partitions
        factor = topic.replication_factor
        factor = config.default_replication_factor if factor == -1 else factor
        if topic.assignments or count < 1 or not 0 < factor <= len(brokers):
            return topic  # stated, or to be refused
        assignments = tuple(
            messages.CreatableReplicaAssignment(
                partition_index=index, broker_ids=assign(brokers, partition=index, factor=factor)
            )
            for index in range(count)
        )
        return replace(topic, num_partitions=-1, replication_factor=-1, assignments=assignments)

    return replace(request, topics=tuple(map(placed, request.topics)))


def placed_partitions(
    image: MetadataImage, request: messages.CreatePartitionsRequest
) -> messages.CreatePartitionsRequest:
    brokers = sorted(image.brokers)

    def placed(asked: messages.CreatePartitionsTopic) -> messages.CreatePartitionsTopic:
        topic = image.topic(asked.name)
        states = [] if topic is None else [state for _, state in image.partitions_of(topic.id)]
        factor = len(states[0].replicas) if states else 0
        if asked.assignments is not None or not 0 < factor <= len(brokers):
            return asked
        assignments = tuple(
            messages.CreatePartitionsAssignment(
                broker_ids=assign(brokers, partition=index, factor=factor)
            )
            for index in range(len(states), max(asked.count, len(states)))
        )
        return replace(asked, assignments=assignments)

    return replace(request, topics=tuple(map(placed, request.topics)))


# --- configs --------------------------------------------------------------------------------


def configs_for(
    design: Design, body: object
) -> Procedure[dict[tuple[int, str], Mapping[str, str]]]:
    """The configs that the request may change, as they are."""
    found: dict[tuple[int, str], Mapping[str, str]] = {}
    if isinstance(body, IncrementalAlterConfigsRequest | AlterConfigsRequest):
        for each in body.resources:
            if each.resource_type in ENTITIES:
                kind, name = ResourceType(each.resource_type), each.resource_name
                read = yield from read_configs(design, kind, [name])
                found[(kind, name)] = read.get((kind, name), {})
    return found


def config_operations(then: MetadataImage, changes: Sequence[Change]) -> Iterator[Operation]:
    """Write the whole of each entity that changed, and a note for those who watch for changes."""
    touched = dict.fromkeys(
        (change.resource_type, change.resource_name)
        for change in changes
        if isinstance(change, ConfigRecord)
    )
    for kind, name in touched:
        entity = ENTITIES[ResourceType(kind)]
        path = paths.config(entity, name or DEFAULT_ENTITY)
        yield Create(path=path)  # it may exist
        yield SetData(path=path, data=EntityConfig(config=then.config(kind, name)).encode())
        note = ConfigChange(entity_path=f"{entity}/{name or DEFAULT_ENTITY}").encode()
        yield Create(path=paths.config_changes_prefix(), data=note, is_sequential=True)
