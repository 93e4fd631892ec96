"""Requests about records: each topic by itself.

A consumer's fetch session holds only what the consumer may read. A full fetch that asks for more
gets no session, so that it asks for all of it again: what is granted later comes at once. A fetch
within a session that asks for more, or would be told of what may no longer be read, is sent to
begin again. Kafka, whose sessions know the principal's rights, tells of the partition instead.

Source: Kafka's KafkaApis; KIP-107, KIP-227, KIP-320, KIP-679.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from controller.authorization.access import (
    CLUSTER_DENIED,
    TOPIC_DENIED,
    TRANSACTIONAL_ID_DENIED,
    Access,
    Narrowed,
    Refused,
    Rule,
    Verdict,
    by_topic,
    narrowed,
    refused,
)
from controller.authorization.acl_index import Resource
from controller.metadata.security import Operation
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.fetching import (
    FetchedPartition,
    FetchedTopic,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartitionResult,
    OffsetForLeaderTopic,
    OffsetForLeaderTopicResult,
)
from wire.messages.producing import (
    InitProducerIdRequest,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from wire.messages.topics import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from wire.primitives import METADATA_TOPIC, METADATA_TOPIC_ID

__all__ = ["RULES"]

_TOPIC_ERROR = TOPIC_DENIED.error_code
_ATTRIBUTES = 22  # the lower byte of a batch's attributes, which says whether it is transactional
_TRANSACTIONAL = 0x10
_NO_SESSION = -1  # as the epoch of a session: the last fetch of it, or the only one
_BEGIN_AGAIN = Refused(FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH))


# --- Produce ----------------------------------------------------------------------------------


def _produce(access: Access, body: ProduceRequest) -> Verdict:
    if _has_transactional(body) and not _may_write(access, body.transactional_id):
        return _unproduced(body, TRANSACTIONAL_ID_DENIED.error_code)
    allowed, denied = access.split(
        Operation.WRITE,
        Resource.TOPIC,
        body.topic_data,
        access.name_of,
    )
    if not denied:
        return None
    if body.acks == 0 and not allowed:
        return Refused(None)
    answers = tuple(_not_written(topic, _TOPIC_ERROR) for topic in denied)
    return narrowed(body, "topic_data", allowed, ProduceResponse, "responses", answers)


def _may_write(access: Access, transactional_id: str | None) -> bool:
    return transactional_id is not None and access.may(
        Operation.WRITE, Resource.TRANSACTIONAL_ID, transactional_id
    )


def _has_transactional(body: ProduceRequest) -> bool:
    for topic in body.topic_data:
        for data in topic.partition_data:
            records = data.records
            if records and len(records) > _ATTRIBUTES and records[_ATTRIBUTES] & _TRANSACTIONAL:
                return True
    return False


def _unproduced(body: ProduceRequest, error: ErrorCode) -> Refused:
    if body.acks == 0:
        return Refused(None)
    topics = tuple(_not_written(topic, error) for topic in body.topic_data)
    return Refused(ProduceResponse(responses=topics))


def _not_written(topic: TopicProduceData, error: ErrorCode) -> TopicProduceResponse:
    return TopicProduceResponse(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_responses=tuple(
            PartitionProduceResponse(index=data.index, error_code=error)
            for data in topic.partition_data
        ),
    )


def _init_producer_id(access: Access, body: InitProducerIdRequest) -> Verdict:
    if body.transactional_id is not None:
        if _may_write(access, body.transactional_id):
            return None
        return refused(body, TRANSACTIONAL_ID_DENIED)
    if access.subject.may_with_any(Operation.WRITE, Resource.TOPIC):
        return None
    may = access.may_cluster(Operation.IDEMPOTENT_WRITE)
    return None if may else refused(body, CLUSTER_DENIED)


# --- Fetch ------------------------------------------------------------------------------------


def _fetch(access: Access, body: FetchRequest) -> Verdict:
    if access.is_control or _asks_for_the_metadata_log(body):
        may = access.may_cluster(Operation.CLUSTER_ACTION)
        return None if may else refused(body, CLUSTER_DENIED)
    if body.replica_state.replica_id >= 0:
        if access.may_cluster(Operation.CLUSTER_ACTION):
            return None
        return _BEGIN_AGAIN if body.session_epoch > 0 else _unfetched(body.topics)
    allowed, denied = access.split(
        Operation.READ,
        Resource.TOPIC,
        body.topics,
        lambda topic: access.topic_name(topic.topic, topic.topic_id),
    )
    if body.session_epoch > 0:
        return _BEGIN_AGAIN if denied else Narrowed(body, partial(_checked, access))
    generation = access.subject.generation
    if not denied:
        return Narrowed(body, partial(_still_read, access, generation))
    if not allowed:
        return _unfetched(denied)

    def amend(answer: FetchResponse) -> FetchResponse:
        answer = _still_read(access, generation, answer)
        return replace(answer, responses=(*answer.responses, *map(_not_read, denied)))

    return Narrowed(replace(body, session_epoch=_NO_SESSION, topics=allowed), amend)


def _asks_for_the_metadata_log(body: FetchRequest) -> bool:
    """It has the keys of all users. A combined node serves it on the broker's listener, too."""
    for topic in body.topics:
        if topic.topic == METADATA_TOPIC or topic.topic_id.int == METADATA_TOPIC_ID.int:
            return True
    return False


def _checked(access: Access, answer: FetchResponse) -> Any:
    """The answer to a fetch within a session, which was not asked for topics by name."""
    return answer if all(_which_are_read(access, answer)) else _BEGIN_AGAIN.answer


def _still_read(access: Access, generation: int, answer: FetchResponse) -> FetchResponse:
    """Without the records that were allowed when the fetch came, and are not any more: it may have
    waited for minutes."""
    if access.subject.generation == generation:
        return answer
    shown = zip(answer.responses, _which_are_read(access, answer), strict=True)
    return replace(answer, responses=tuple(each if may else _not_read(each) for each, may in shown))


def _which_are_read(access: Access, answer: FetchResponse) -> list[bool]:
    may = access.subject.may
    names = [access.topic_name(topic.topic, topic.topic_id) for topic in answer.responses]
    return [name is None or may(Operation.READ, Resource.TOPIC, name) for name in names]


def _unfetched(topics: tuple[FetchTopic, ...]) -> Refused:
    return Refused(FetchResponse(responses=tuple(map(_not_read, topics))))


def _not_read(topic: FetchTopic | FetchedTopic) -> FetchedTopic:
    """In place of a topic that is asked for, or of what was fetched of it."""
    numbers = (
        [each.partition for each in topic.partitions]
        if isinstance(topic, FetchTopic)
        else [each.partition_index for each in topic.partitions]
    )
    return FetchedTopic(
        topic=topic.topic,
        topic_id=topic.topic_id,
        partitions=tuple(
            FetchedPartition(
                partition_index=number,
                error_code=_TOPIC_ERROR,
                aborted_transactions=(),  # of Kafka's
                records=b"",
            )
            for number in numbers
        ),
    )


# --- offsets ----------------------------------------------------------------------------------


def _not_listed(topic: ListOffsetsTopic) -> ListOffsetsTopicResponse:
    return ListOffsetsTopicResponse(
        name=topic.name,
        partitions=tuple(
            ListOffsetsPartitionResponse(
                partition_index=each.partition_index, error_code=_TOPIC_ERROR
            )
            for each in topic.partitions
        ),
    )


def _not_found(topic: OffsetForLeaderTopic) -> OffsetForLeaderTopicResult:
    return OffsetForLeaderTopicResult(
        topic=topic.topic,
        partitions=tuple(
            OffsetForLeaderPartitionResult(partition=each.partition, error_code=_TOPIC_ERROR)
            for each in topic.partitions
        ),
    )


def _not_deleted(topic: DeleteRecordsTopic) -> DeleteRecordsTopicResult:
    return DeleteRecordsTopicResult(
        name=topic.name,
        partitions=tuple(
            DeleteRecordsPartitionResult(
                partition_index=each.partition_index, low_watermark=-1, error_code=_TOPIC_ERROR
            )
            for each in topic.partitions
        ),
    )


RULES: Mapping[type, Rule] = {
    DeleteRecordsRequest: by_topic(Operation.DELETE, DeleteRecordsResponse, _not_deleted),
    FetchRequest: _fetch,
    InitProducerIdRequest: _init_producer_id,
    ListOffsetsRequest: by_topic(Operation.DESCRIBE, ListOffsetsResponse, _not_listed),
    OffsetForLeaderEpochRequest: by_topic(
        Operation.DESCRIBE,
        OffsetForLeaderEpochResponse,
        _not_found,
        nodes_may=True,
        name_of=lambda topic: topic.topic,
    ),
    ProduceRequest: _produce,
}
