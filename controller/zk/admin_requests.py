"""Which topics a request is about: of these alone a rule looks at the partitions.

Of all others it wants to know that they are there. A cluster has a few topics, and up to a million
partitions.

Where the replicas of new partitions go: seed 004's algorithm, with no chance in it.

    - sort all brokers (n of them) and the partitions to be assigned;
    - partition i goes to broker (i mod n);
    - its j-th replica goes to broker ((i + j) mod n).

A request that leaves the placement to the cluster becomes one that states it; whatever is wrong
with it is for the rules that both modes share to find.

Source: seed 004, "distribute all replica evenly".

The configs of topics and brokers as nodes: which a request may change, and what a change writes.

Source: seed 001, as Apache Kafka has it: `/config/ENTITY/NAME`, and a note under `/config/changes`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from controller.config import ControllerConfig
from controller.metadata.changes import Change
from controller.metadata.image import MetadataImage, ResourceType
from controller.metadata.znode_image import topic_id_of
from controller.metadata.znode_reading import read_configs
from quorum.zookeeper.zk_procedures import Procedure
from wire.message import replace
from wire.messages.configs import AlterConfigsRequest, IncrementalAlterConfigsRequest
from wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from wire.metadata_records import ConfigRecord
from wire.zk import paths
from wire.zk.designs import Design
from wire.zk.session import Create, Operation, SetData
from wire.zk.znodes import ConfigChange, EntityConfig

__all__ = [
    "assign",
    "concerned",
    "config_operations",
    "configs_for",
    "placed_partitions",
    "placed_topics",
]


def concerned(body: object, known: Collection[str], moving: Collection[str]) -> list[str]:
    """Those of `known` that it is about, sorted.

    With a reassignment these are all that are `moving`, too: moves are written down together.
    """
    return sorted(set(_named(body, known, moving)).intersection(known))


def _named(body: object, known: Collection[str], moving: Collection[str]) -> Iterator[str]:
    match body:
        case CreateTopicsRequest(topics=topics) | CreatePartitionsRequest(topics=topics):
            yield from (topic.name for topic in topics)
        case DeleteTopicsRequest(topics=topics):
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
            pass  # configs: it is enough that a topic is there


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


_ENTITIES = {ResourceType.TOPIC: "topics", ResourceType.BROKER: "brokers"}
_DEFAULT = "<default>"  # the entity that stands for all of its kind


def configs_for(
    design: Design, body: object
) -> Procedure[dict[tuple[int, str], Mapping[str, str]]]:
    """The configurations that the request may change, as they are."""
    found: dict[tuple[int, str], Mapping[str, str]] = {}
    for kind, name in _resources(body):
        entity = yield from read_configs(design, _ENTITIES[kind], [name or _DEFAULT])
        found[(kind, name)] = entity.get(name or _DEFAULT, {})
    return found


def _resources(body: object) -> list[tuple[ResourceType, str]]:
    if not isinstance(body, IncrementalAlterConfigsRequest | AlterConfigsRequest):
        return []
    return [
        (ResourceType(each.resource_type), each.resource_name)
        for each in body.resources
        if each.resource_type in _ENTITIES
    ]


def config_operations(then: MetadataImage, changes: Sequence[Change]) -> Iterator[Operation]:
    """The whole of each entity that changed, and a note for those who watch for changes."""
    touched = dict.fromkeys(
        (change.resource_type, change.resource_name)
        for change in changes
        if isinstance(change, ConfigRecord)
    )
    for kind, name in touched:
        entity = _ENTITIES[ResourceType(kind)]
        path = paths.config(entity, name or _DEFAULT)
        data = EntityConfig(config=then.config(kind, name)).encode()
        yield Create(path=path)  # it may be there
        yield SetData(path=path, data=data)
        note = ConfigChange(entity_path=f"{entity}/{name or _DEFAULT}").encode()
        yield Create(path=paths.config_changes_prefix(), data=note, is_sequential=True)
