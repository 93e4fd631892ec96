"""Requests about topics: to create, delete and grow them, and to see that they are there.

Who may not see a topic is told the same whether it exists or not. A list of all topics leaves it
out, as if it were not there; by its name it is TOPIC_AUTHORIZATION_FAILED.

Source: Kafka's KafkaApis.handleTopicMetadataRequest, DescribeTopicPartitionsRequestHandler,
ControllerApis.createTopics, deleteTopics and createPartitions; KIP-430.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from controller.authorization.access import (
    TOPIC_DENIED,
    Access,
    Narrowed,
    Refused,
    Rule,
    Verdict,
    narrowed,
)
from controller.authorization.acl_index import Resource
from controller.authorization.cluster_rules import cluster_operations
from controller.metadata.security import Operation
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.metadata import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
    TopicRequest,
)
from wire.messages.topics import (
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from wire.primitives import METADATA_TOPIC

__all__ = ["RULES"]

_TOPIC = Resource.TOPIC
_TOPIC_ERROR = TOPIC_DENIED.error_code


def _named_once(names: Iterable[str | None]) -> set[str | None]:
    """What is named twice is refused by who serves the request, whoever asks."""
    return {name for name, times in Counter(names).items() if times == 1}


# --- to see them ------------------------------------------------------------------------------


def _metadata(access: Access, body: MetadataRequest) -> Verdict:
    narrower = body
    denied: tuple[MetadataResponseTopic, ...] = ()
    if body.topics is not None:
        allowed, unseen = access.split(
            Operation.DESCRIBE,
            _TOPIC,
            body.topics,
            access.name_of,
        )
        allowed, uncreated = _creatable(access, body, allowed)
        denied = tuple(map(_unseen, (*uncreated, *unseen)))
        narrower = replace(body, topics=allowed) if denied else body

    asks = body.include_topic_authorized_operations or body.include_cluster_authorized_operations
    if body.topics is not None and not denied and not asks:
        return None

    def amend(answer: MetadataResponse) -> MetadataResponse:
        topics = answer.topics
        if body.topics is None:
            topics = tuple(each for each in topics if _may_see(access, each.name))
            if len(topics) == len(answer.topics):
                topics = answer.topics  # which may have its bytes with it
        if body.include_topic_authorized_operations:
            topics = tuple(_with_operations(access, each) for each in topics)
        if denied:
            topics = (*topics, *denied)
        operations = answer.cluster_authorized_operations
        if body.include_cluster_authorized_operations:
            operations = cluster_operations(access)
        return replace(answer, topics=topics, cluster_authorized_operations=operations)

    return Narrowed(narrower, amend)


def _creatable(
    access: Access, body: MetadataRequest, asked: tuple[MetadataRequestTopic, ...]
) -> tuple[tuple[MetadataRequestTopic, ...], tuple[MetadataRequestTopic, ...]]:
    """A topic that would be created by asking for it wants CREATE."""
    creates = body.allow_auto_topic_creation and access.auto_creates
    if not creates or access.may_any(Operation.CREATE):
        return asked, ()

    def missing(each: MetadataRequestTopic) -> str | None:
        is_there = each.topic_id.int or access.image.topic(each.name or "") is not None
        return None if is_there else each.name or ""

    return access.split(Operation.CREATE, _TOPIC, asked, missing)


def _unseen(asked: MetadataRequestTopic) -> MetadataResponseTopic:
    """An id is no secret, but the name that goes with it is."""
    name = None if asked.topic_id.int else asked.name
    return MetadataResponseTopic(error_code=_TOPIC_ERROR, name=name, topic_id=asked.topic_id)


def _may_see(access: Access, name: str | None) -> bool:
    return access.subject.may(Operation.DESCRIBE, _TOPIC, name or "")


def _with_operations(access: Access, topic: Any) -> Any:
    if topic.name is None:
        return topic
    operations = access.subject.operations(_TOPIC, topic.name)
    return replace(topic, topic_authorized_operations=operations)


def _describe_partitions(access: Access, body: DescribeTopicPartitionsRequest) -> Verdict:
    """The request says which topics: all that may be seen, if it names none."""
    first = "" if body.cursor is None else body.cursor.topic_name
    every = body.topics or tuple(TopicRequest(name=name) for name in access.image.topics.by_name)
    allowed, unseen = access.split(Operation.DESCRIBE, _TOPIC, every, lambda each: each.name)
    denied = tuple(
        DescribeTopicPartitionsResponseTopic(error_code=_TOPIC_ERROR, name=each.name)
        for each in unseen
        if body.topics and each.name >= first
    )
    asked = _narrowed(body, allowed) if unseen else body
    if unseen and not asked.topics:  # which would ask for all
        return Refused(DescribeTopicPartitionsResponse(topics=denied))

    def amend(answer: DescribeTopicPartitionsResponse) -> DescribeTopicPartitionsResponse:
        shown = tuple(_with_operations(access, each) for each in answer.topics)
        return replace(answer, topics=(*shown, *denied))

    return Narrowed(asked, amend)


def _narrowed(
    body: DescribeTopicPartitionsRequest, allowed: tuple[TopicRequest, ...]
) -> DescribeTopicPartitionsRequest:
    """A cursor may be at a topic that is not to be seen: then it is at the next one. One that is
    not among the topics of the request is left for the broker to refuse."""
    cursor = body.cursor
    is_wrong = (
        body.topics and cursor and all(each.name != cursor.topic_name for each in body.topics)
    )
    if cursor is None or is_wrong or any(each.name == cursor.topic_name for each in allowed):
        return replace(body, topics=allowed)
    left = tuple(each for each in allowed if each.name >= cursor.topic_name)
    return replace(body, topics=left, cursor=None)


# --- to change them ---------------------------------------------------------------------------


def _create(access: Access, body: CreateTopicsRequest) -> Verdict:
    """The configs of a new topic are shown only to who might ask for them."""
    once = _named_once(each.name for each in body.topics) - {METADATA_TOPIC}
    allowed, denied = body.topics, tuple[Any, ...]()
    if not access.may_any(Operation.CREATE):
        allowed, denied = access.split(
            Operation.CREATE,
            _TOPIC,
            body.topics,
            lambda each: each.name if each.name in once else None,
        )
    denials = tuple(
        CreatableTopicResult(
            name=each.name, error_code=_TOPIC_ERROR, error_message="Authorization failed."
        )
        for each in denied
    )
    if denied and not allowed:
        return Refused(CreateTopicsResponse(topics=denials))

    def amend(answer: CreateTopicsResponse) -> CreateTopicsResponse:
        created = tuple(_without_configs(access, each) for each in answer.topics)
        return replace(answer, topics=(*created, *denials))

    return Narrowed(replace(body, topics=allowed) if denied else body, amend)


def _without_configs(access: Access, result: CreatableTopicResult) -> CreatableTopicResult:
    is_created = result.error_code is ErrorCode.NONE
    if not is_created or access.subject.may(Operation.DESCRIBE_CONFIGS, _TOPIC, result.name):
        return result
    return replace(
        result,
        num_partitions=-1,
        replication_factor=-1,
        configs=(),
        topic_config_error_code=int(_TOPIC_ERROR),
    )


def _grow(access: Access, body: CreatePartitionsRequest) -> Verdict:
    once = _named_once(each.name for each in body.topics)
    allowed, denied = access.split(
        Operation.ALTER,
        _TOPIC,
        body.topics,
        lambda each: each.name if each.name in once else None,
    )
    denials = tuple(
        CreatePartitionsTopicResult(name=each.name, error_code=_TOPIC_ERROR) for each in denied
    )
    return narrowed(body, "topics", allowed, CreatePartitionsResponse, "results", denials)


def _delete(access: Access, body: DeleteTopicsRequest) -> Verdict:
    if access.may_any(Operation.DELETE):
        return None
    once = _named_once(each.name for each in body.topics if each.name is not None)
    denials = [(each, _undeletable(access, each, once)) for each in body.topics]
    denied = tuple(denial for _, denial in denials if denial is not None)
    allowed = tuple(each for each, denial in denials if denial is None)
    return narrowed(body, "topics", allowed, DeleteTopicsResponse, "responses", denied)


def _undeletable(
    access: Access, asked: DeleteTopicState, once: set[str | None]
) -> DeletableTopicResult | None:
    """None: it may be deleted, or is no topic that could be."""
    is_by_id = asked.name is None
    if is_by_id == (asked.topic_id.int == 0) or not (is_by_id or asked.name in once):
        return None  # neither name nor id, or both; or twice
    name = access.topic_name(asked.name, asked.topic_id)
    if name is None or access.may(Operation.DELETE, _TOPIC, name):
        return None
    may_see = _may_see(access, name)
    if may_see and access.image.topic(name) is None:
        return None
    return TOPIC_DENIED.told(
        DeletableTopicResult,
        name=None if is_by_id and not may_see else name,
        topic_id=asked.topic_id,
    )


RULES: Mapping[type, Rule] = {
    CreatePartitionsRequest: _grow,
    CreateTopicsRequest: _create,
    DeleteTopicsRequest: _delete,
    DescribeTopicPartitionsRequest: _describe_partitions,
    MetadataRequest: _metadata,
}
