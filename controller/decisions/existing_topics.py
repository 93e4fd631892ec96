"""Topics that exist: delete them, and give them more partitions.

The checks stand in Kafka's order, since the first that fails names the error.

Source: Kafka's ReplicationControlManager and ControllerApis; KIP-4, KIP-195, KIP-516.
"""

from collections import Counter
from collections.abc import Sequence
from random import Random
from uuid import UUID

from controller.config import ControllerConfig
from controller.decisions import new_topics
from controller.decisions.decision import CHANGES_MAX, Decision
from controller.decisions.new_topics import Replicas, new_partitions
from controller.metadata.changes import Change, record_count
from controller.metadata.configs import NO_ERROR, Refusal
from controller.metadata.image import MetadataImage
from controller.metadata.topics import TopicImage
from controller.quotas.mutations import UNBOUNDED, Allowance
from wire.errors import ErrorCode
from wire.messages import topics as messages
from wire.metadata_records import RemoveTopicRecord
from wire.primitives import ZERO_UUID

__all__ = ["decide_create_partitions", "decide_delete_topics"]


# --- delete ---------------------------------------------------------------------------------


def decide_delete_topics(
    image: MetadataImage,
    request: messages.DeleteTopicsRequest,
    config: ControllerConfig,
    allowance: Allowance = UNBOUNDED,
) -> Decision[messages.DeleteTopicsResponse]:
    """Delete topics, each named by its name or by its id."""
    found = [_topic_of(image, state) for state in request.topics]
    named = Counter(item.id for item in found if isinstance(item, TopicImage))
    changes: list[Change] = []
    results = []
    for state, item in zip(request.topics, found, strict=True):
        refusal = _deletion_refusal(item, named, config)
        if isinstance(item, TopicImage):
            if refusal is NO_ERROR:
                refusal = allowance.take(item.partition_count) or NO_ERROR
            topic_name, topic_id = item.name, item.id
        else:
            topic_name, topic_id = state.name or "", state.topic_id
        if refusal is NO_ERROR:
            changes.append(RemoveTopicRecord(topic_id=topic_id))
        row = messages.DeletableTopicResult
        results.append(refusal.told(row, name=topic_name or None, topic_id=topic_id))
    return Decision(
        response=messages.DeleteTopicsResponse(responses=tuple(results)), changes=tuple(changes)
    )


def _topic_of(image: MetadataImage, state: messages.DeleteTopicState) -> TopicImage | Refusal:
    if state.name is not None and state.topic_id != ZERO_UUID:
        message = "You may not specify both topic name and topic id."
        return Refusal(ErrorCode.INVALID_REQUEST, message)
    if state.name is None and state.topic_id == ZERO_UUID:
        return Refusal(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if state.name is not None:
        topic = image.topic(state.name)
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    else:
        topic = image.topic_by_id(state.topic_id)
        unknown = ErrorCode.UNKNOWN_TOPIC_ID
    if topic is None:
        return Refusal(unknown, "There is no such topic: list the topics to see what there is.")
    return topic


def _deletion_refusal(
    item: TopicImage | Refusal, named: Counter[UUID], config: ControllerConfig
) -> Refusal:
    if not config.delete_topic_enable:
        message = "Topic deletion is disabled: delete.topic.enable is false on the controllers."
        return Refusal(ErrorCode.TOPIC_DELETION_DISABLED, message)
    if isinstance(item, Refusal):
        return item
    if named[item.id] > 1:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Topic '{item.name}' is named twice.")
    return NO_ERROR


# --- more partitions --------------------------------------------------------------------------


def decide_create_partitions(
    image: MetadataImage,
    request: messages.CreatePartitionsRequest,
    random: Random,
    allowance: Allowance = UNBOUNDED,
) -> Decision[messages.CreatePartitionsResponse]:
    names = Counter(topic.name for topic in request.topics)
    changes: list[Change] = []
    results = []
    for topic in {each.name: each for each in request.topics}.values():
        if names[topic.name] > 1:
            made: Sequence[Change] | Refusal = Refusal(
                ErrorCode.INVALID_REQUEST, "Duplicate topic name."
            )
        else:
            made = _more_partitions(image, topic, random, room=CHANGES_MAX - record_count(changes))
        if not isinstance(made, Refusal):
            made = allowance.take(record_count(made)) or made
        refusal = made if isinstance(made, Refusal) else NO_ERROR
        changes += [] if isinstance(made, Refusal) else made
        results.append(refusal.told(messages.CreatePartitionsTopicResult, name=topic.name))
    response = messages.CreatePartitionsResponse(results=tuple(results))
    return Decision(response=response, changes=() if request.validate_only else tuple(changes))


def _more_partitions(
    image: MetadataImage, asked: messages.CreatePartitionsTopic, random: Random, *, room: int
) -> Sequence[Change] | Refusal:
    topic = image.topic(asked.name)
    if topic is None:
        message = f"The topic '{asked.name}' does not exist."
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    first = topic.partition_count
    more = asked.count - first
    refusal = _count_refusal(asked, first, room)
    if refusal is not None:
        return refusal
    _, state = next(image.partitions_of(topic.id))
    factor = len(state.replicas)
    replicas: Sequence[Replicas] | Refusal
    if asked.assignments is None:
        replicas = new_topics.place(
            image, partition_count=more, replication_factor=factor, random=random
        )
    else:
        named = [assignment.broker_ids for assignment in asked.assignments]
        wrong = (
            new_topics.check_replicas(image, index, brokers, replication_factor=factor)
            for index, brokers in enumerate(named, first)
        )
        replicas = next((each for each in wrong if each is not None), named)
    if isinstance(replicas, Refusal):
        return replicas
    return new_partitions(image, topic.id, replicas, first=first)


def _count_refusal(asked: messages.CreatePartitionsTopic, first: int, room: int) -> Refusal | None:
    more, error = asked.count - first, ErrorCode.INVALID_PARTITIONS
    if more == 0:
        message = f"Topic already has {first} partition(s)."
    elif more < 0:
        message = (
            f"The topic {asked.name} currently has {first} partition(s); "
            f"{asked.count} would not be an increase."
        )
    elif asked.assignments is not None and len(asked.assignments) != more:
        error = ErrorCode.INVALID_REPLICA_ASSIGNMENT
        message = (
            f"Attempted to add {more} additional partition(s), but only "
            f"{len(asked.assignments)} assignment(s) were specified."
        )
    elif more > room:
        error = ErrorCode.POLICY_VIOLATION
        message = f"One request may add {CHANGES_MAX} partitions: {more} more are too many."
    else:
        return None
    return Refusal(error, message)
