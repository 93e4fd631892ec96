"""New topics: may they be created, where do their replicas go, and what are their first records?

The checks stand in Kafka's order, since the first that fails names the error. The topics of a
request fail or succeed by themselves; what succeeds becomes one atomic batch.

Thousands of partitions may be created by one decision, which must not stop the node. Placement
repeats itself, so few partitions of a topic differ in more than their number: the record of each
distinct list of replicas is made once, and the other partitions are copies of its row.

Source: Kafka's ReplicationControlManager and ControllerApis; KIP-4, KIP-195, KIP-516, KIP-631,
KIP-858 (directories).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from uuid import UUID

import numpy as np

from controller.config import ControllerConfig
from controller.decisions.decision import CHANGES_MAX, Decision, excess
from controller.metadata import placement
from controller.metadata.changes import Change
from controller.metadata.configs import Refusal, check_topic_config
from controller.metadata.describe_configs import describe_topic
from controller.metadata.image import MetadataImage, ResourceType
from controller.metadata.topics import topic_name_problem
from controller.quotas.mutations import UNBOUNDED, Allowance
from wire.errors import ErrorCode
from wire.messages.topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from wire.metadata_records import ConfigRecord, PartitionRecord, TopicRecord
from wire.partition_block import grouped
from wire.partition_columns import NewPartitions, take
from wire.primitives import METADATA_TOPIC, random_uuid

__all__ = [
    "Replicas",
    "check_replicas",
    "colliding_topic",
    "decide_create_topics",
    "new_partitions",
    "place",
]

_BLOCK_RECORDS_MIN = 64  # fewer are as fast as single records

Replicas = tuple[int, ...]


def new_partitions(
    image: MetadataImage, topic_id: UUID, replicas: Sequence[Replicas], *, first: int = 0
) -> list[Change]:
    """One for each of `replicas`, numbered from `first`; many of them as one block."""
    if len(replicas) < _BLOCK_RECORDS_MIN:
        return list(_records(image, topic_id, replicas, first))
    places = {brokers: place for place, brokers in enumerate(dict.fromkeys(replicas))}
    models = _records(image, topic_id, tuple(places), first)
    if not all(map(NewPartitions.fits, models)):
        return list(_records(image, topic_id, replicas, first))
    which = np.fromiter((places[brokers] for brokers in replicas), np.intp, len(replicas))
    block = take(NewPartitions.from_records(models), which)
    numbers = np.arange(first, first + len(replicas), dtype=np.int32)
    return [grouped(replace(block, partition_ids=numbers))]


def _records(
    image: MetadataImage, topic_id: UUID, replicas: Sequence[Replicas], first: int
) -> list[PartitionRecord]:
    return [
        _new_partition(image, topic_id, number, brokers)
        for number, brokers in enumerate(replicas, first)
    ]


def _new_partition(
    image: MetadataImage, topic_id: UUID, number: int, replicas: Replicas
) -> PartitionRecord:
    """The replicas that are up are in sync, and the first of them leads."""
    isr = tuple(replica for replica in replicas if image.is_active(replica))
    assert isr, f"no replica of {replicas} could lead"
    directories = tuple(placement.directory_on(image.brokers.get(r)) for r in replicas)
    return PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=replicas,
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=directories if image.has_directories else (),
    )


def decide_create_topics(
    image: MetadataImage,
    request: CreateTopicsRequest,
    config: ControllerConfig,
    random: Random,
    allowance: Allowance = UNBOUNDED,
) -> Decision[CreateTopicsResponse]:
    """`allowance`: as in Kafka, a request that only validates takes of it, too."""
    changes: list[Change] = []
    results = []
    names = Counter(topic.name for topic in request.topics)
    for topic in {each.name: each for each in request.topics}.values():
        replicas = _check_request(topic, names) or _replicas(image, topic, config, random)
        if not isinstance(replicas, Refusal):
            replicas = allowance.take(len(replicas)) or replicas
        if isinstance(replicas, Refusal):
            results.append(replicas.told(CreatableTopicResult, name=topic.name))
            continue
        topic_id = random_uuid(random)
        changes += _records_of(image, topic, topic_id, replicas)
        results.append(_created(image, topic, topic_id, replicas, config))
    too_much = excess(changes)
    if too_much is not None:
        results = [too_much.told(CreatableTopicResult, name=result.name) for result in results]
        changes = []
    response = CreateTopicsResponse(topics=tuple(results))
    return Decision(response=response, changes=() if request.validate_only else tuple(changes))


# --- checks ---------------------------------------------------------------------------------


def _check_request(topic: CreatableTopic, names: Mapping[str, int]) -> Refusal | None:
    if names[topic.name] > 1:
        return Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    if topic.name == METADATA_TOPIC:
        message = f"Creation of internal topic {METADATA_TOPIC} is prohibited."
        return Refusal(ErrorCode.INVALID_REQUEST, message)
    return None


def _check_topic(image: MetadataImage, topic: CreatableTopic) -> Refusal | None:
    illegal = topic_name_problem(topic.name)
    if illegal is not None:
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, illegal)
    if image.topic(topic.name) is not None:
        return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
    other = colliding_topic(image, topic.name)
    if other is not None:
        message = f"Topic '{topic.name}' collides with existing topic: {other}"
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, message)
    return check_topic_config({item.name: item.value for item in topic.configs})


def colliding_topic(image: MetadataImage, name: str) -> str | None:
    """A topic whose metrics could not be told from those of `name`: dots become underscores."""
    if "." not in name and "_" not in name:
        return None
    plain = name.replace(".", "_")
    same = (other for other in image.topics.by_name if other.replace(".", "_") == plain)
    return min((other for other in same if other != name), default=None)


def _replicas(
    image: MetadataImage, topic: CreatableTopic, config: ControllerConfig, random: Random
) -> Sequence[Replicas] | Refusal:
    refusal = _check_topic(image, topic)
    if refusal is not None:
        return refusal
    return _assigned(image, topic) if topic.assignments else _placed(image, topic, config, random)


def _assigned(image: MetadataImage, topic: CreatableTopic) -> Sequence[Replicas] | Refusal:
    """The replicas that the request names for each partition."""
    for name, given in (
        ("replication factor", topic.replication_factor),
        ("number of partitions", topic.num_partitions),
    ):
        if given != -1:
            return Refusal(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but the {name} was not set to -1.",
            )
    by_index: dict[int, Replicas] = {}
    factor = len(topic.assignments[0].broker_ids)
    for assignment in topic.assignments:
        index = assignment.partition_index
        if index in by_index:
            message = f"Partition {index} is assigned more than once."
            return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        by_index[index] = assignment.broker_ids
        wrong = check_replicas(image, index, assignment.broker_ids, replication_factor=factor)
        if wrong is not None:
            return wrong
    if sorted(by_index) != list(range(len(by_index))):
        message = "Partitions must be numbered from 0 without gaps."
        return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    return [by_index[index] for index in range(len(by_index))]


def check_replicas(
    image: MetadataImage, index: int, replicas: Replicas, *, replication_factor: int
) -> Refusal | None:
    """Why these cannot be the replicas of partition `index`; None if they can."""
    unknown = [str(broker) for broker in replicas if broker not in image.brokers]
    full = [str(id_) for id_ in replicas if not unknown and not image.brokers[id_].takes_replicas]
    if not replicas:
        wrong = "The assignment names no brokers."
    elif len(set(replicas)) < len(replicas):
        wrong = f"The assignment names a broker twice: {', '.join(map(str, replicas))}."
    elif unknown:
        wrong = f"The assignment names brokers that are not registered: {', '.join(unknown)}."
    elif full:
        wrong = f"All log directories are cordoned of brokers {', '.join(full)}."
    elif len(replicas) != replication_factor:
        others = f"others {replication_factor}: make them equal."
        wrong = f"It gets {len(replicas)} replicas, and {others}"
    elif not any(map(image.is_active, replicas)):
        wrong = "All brokers in the assignment are fenced or in controlled shutdown."
    else:
        return None
    return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Partition {index}: {wrong}")


def _placed(
    image: MetadataImage, topic: CreatableTopic, config: ControllerConfig, random: Random
) -> Sequence[Replicas] | Refusal:
    if topic.replication_factor == 0 or topic.replication_factor < -1:
        message = "Replication factor must be larger than 0, or -1 to use the default value."
        return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    if topic.num_partitions == 0 or topic.num_partitions < -1:
        message = "Number of partitions must be larger than 0, or -1 to use the default value."
        return Refusal(ErrorCode.INVALID_PARTITIONS, message)
    factor, count = topic.replication_factor, topic.num_partitions
    factor = config.default_replication_factor if factor == -1 else factor
    count = config.num_partitions if count == -1 else count
    if count > CHANGES_MAX:
        message = f"{count} partitions are more than one request may create: {CHANGES_MAX}."
        return Refusal(ErrorCode.POLICY_VIOLATION, message)
    return place(image, partition_count=count, replication_factor=factor, random=random)


def place(
    image: MetadataImage, *, partition_count: int, replication_factor: int, random: Random
) -> Sequence[Replicas] | Refusal:
    try:
        placed = placement.place_replicas(
            placement.usable_brokers(image),
            partition_count=partition_count,
            replication_factor=replication_factor,
            random=random,
        )
    except placement.NoPlacement as no_placement:
        message = f"Unable to replicate the partition {replication_factor} time(s): {no_placement}"
        return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    return placed


# --- records --------------------------------------------------------------------------------


def _records_of(
    image: MetadataImage, topic: CreatableTopic, topic_id: UUID, replicas: Sequence[Replicas]
) -> list[Change]:
    return [
        TopicRecord(name=topic.name, topic_id=topic_id),
        *(
            ConfigRecord(
                resource_type=ResourceType.TOPIC,
                resource_name=topic.name,
                name=item.name,
                value=item.value,
            )
            for item in topic.configs
        ),
        *new_partitions(image, topic_id, replicas),
    ]


# --- results --------------------------------------------------------------------------------


def _created(
    image: MetadataImage,
    topic: CreatableTopic,
    topic_id: UUID,
    replicas: Sequence[Replicas],
    config: ControllerConfig,
) -> CreatableTopicResult:
    own = {item.name: item.value for item in topic.configs if item.value is not None}
    described = describe_topic(image, topic.name, own=own, static=config.static_configs)
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(replicas),
        replication_factor=len(replicas[0]),
        configs=tuple(
            CreatableTopicConfigs(
                name=item.name,
                value=item.value,
                read_only=item.read_only,
                config_source=item.config_source,
                is_sensitive=item.is_sensitive,
            )
            for item in described
        ),
    )
