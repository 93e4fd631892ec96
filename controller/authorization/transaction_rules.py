"""Requests about transactions: a producer wants WRITE of its transactional id.

AddPartitionsToTxn is two requests in one. Up to version 3 a client asks, for one transaction, and
gets either all of its partitions or none: those that it may not write are named, and the others
were not attempted. From version 4 on only brokers ask, and want CLUSTER_ACTION.

Source: Kafka's KafkaApis, AddPartitionsToTxnRequest.getErrorResponse; KIP-98, KIP-664, KIP-890.
"""

from collections.abc import Callable, Mapping

from controller.authorization.access import (
    CLUSTER_DENIED,
    GROUP_DENIED,
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
from controller.metadata.topics import INTERNAL_TOPICS, topic_name_problem
from wire.capabilities import Capability
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
    DescribedProducers,
    DescribedProducersTopic,
    DescribedTransaction,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopic,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    ListTransactionsRequest,
    ListTransactionsResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
    WriteTxnMarkersRequest,
)

__all__ = ["RULES"]

_TOPIC_ERROR = TOPIC_DENIED.error_code
_ID_ERROR = TRANSACTIONAL_ID_DENIED.error_code


def _may_write(access: Access, transactional_id: str) -> bool:
    return access.may(Operation.WRITE, Resource.TRANSACTIONAL_ID, transactional_id)


# --- the producer's ---------------------------------------------------------------------------


def _add_partitions(access: Access, body: AddPartitionsToTxnRequest) -> Verdict:
    if Capability.ASKS_AS_BROKER not in access.lacking:
        may = access.may_cluster(Operation.CLUSTER_ACTION)
        return None if may else refused(body, CLUSTER_DENIED)
    (asked,) = body.transactions
    if not _may_write(access, asked.transactional_id):
        return _not_added(asked, lambda topic, index: _ID_ERROR)
    _, denied = access.split(
        Operation.WRITE, Resource.TOPIC, asked.topics, lambda topic: topic.name
    )
    if not denied:
        return None

    def error_of(topic: AddPartitionsToTxnTopic, index: int) -> ErrorCode:
        if topic in denied or topic.name in INTERNAL_TOPICS:
            return _TOPIC_ERROR
        known = access.image.topic(topic.name)
        if known is None or access.image.partition(known.id, index) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.OPERATION_NOT_ATTEMPTED

    return _not_added(asked, error_of)


def _not_added(
    asked: AddPartitionsToTxnTransaction,
    error_of: Callable[[AddPartitionsToTxnTopic, int], ErrorCode],
) -> Refused:
    topics = tuple(
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=tuple(
                AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=error_of(topic, index)
                )
                for index in topic.partitions
            ),
        )
        for topic in asked.topics
    )
    result = AddPartitionsToTxnResult(transactional_id=asked.transactional_id, topic_results=topics)
    return Refused(AddPartitionsToTxnResponse(results_by_transaction=(result,)))


def _add_offsets(access: Access, body: AddOffsetsToTxnRequest) -> Verdict:
    if not _may_write(access, body.transactional_id):
        return refused(body, TRANSACTIONAL_ID_DENIED)
    may = access.may(Operation.READ, Resource.GROUP, body.group_id)
    return None if may else refused(body, GROUP_DENIED)


def _commit_offsets(access: Access, body: TxnOffsetCommitRequest) -> Verdict:
    if not _may_write(access, body.transactional_id):
        return refused(body, TRANSACTIONAL_ID_DENIED)
    if not access.may(Operation.READ, Resource.GROUP, body.group_id):
        return refused(body, GROUP_DENIED)
    return _readable_topics(access, body)


def _not_committed(topic: TxnOffsetCommitRequestTopic) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(
        name=topic.name,
        partitions=tuple(
            TxnOffsetCommitResponsePartition(
                partition_index=each.partition_index, error_code=_TOPIC_ERROR
            )
            for each in topic.partitions
        ),
    )


_readable_topics = by_topic(Operation.READ, TxnOffsetCommitResponse, _not_committed)


def _end(access: Access, body: EndTxnRequest) -> Verdict:
    may = _may_write(access, body.transactional_id)
    return None if may else refused(body, TRANSACTIONAL_ID_DENIED)


# --- the brokers', and the operators' -----------------------------------------------------------


def _write_markers(access: Access, body: WriteTxnMarkersRequest) -> Verdict:
    """A broker's; an operator with ALTER may end a transaction that hangs (KIP-664)."""
    may = access.may_cluster(Operation.ALTER) or access.may_cluster(Operation.CLUSTER_ACTION)
    return None if may else refused(body, CLUSTER_DENIED)


def _describe_producers(access: Access, body: DescribeProducersRequest) -> Verdict:
    """A name that no topic can have is nobody's secret: who serves the request says what it is."""
    allowed, denied = access.split(
        Operation.READ,
        Resource.TOPIC,
        body.topics,
        lambda topic: None if topic_name_problem(topic.name) else topic.name,
    )
    denials = tuple(map(_unseen_producers, denied))
    return narrowed(body, "topics", allowed, DescribeProducersResponse, "topics", denials)


def _unseen_producers(topic: DescribeProducersTopic) -> DescribedProducersTopic:
    return DescribedProducersTopic(
        name=topic.name,
        partitions=tuple(
            TOPIC_DENIED.told(DescribedProducers, partition_index=index)
            for index in topic.partition_indexes
        ),
    )


def _describe(access: Access, body: DescribeTransactionsRequest) -> Verdict:
    allowed, denied = access.split(
        Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, body.transactional_ids, lambda each: each
    )
    denials = tuple(
        DescribedTransaction(transactional_id=each, error_code=_ID_ERROR) for each in denied
    )
    if not allowed:
        return Refused(DescribeTransactionsResponse(transaction_states=denials))

    def amend(answer: DescribeTransactionsResponse) -> DescribeTransactionsResponse:
        shown = (_with_seen_topics(access, each) for each in answer.transaction_states)
        return replace(answer, transaction_states=(*shown, *denials))

    return Narrowed(replace(body, transactional_ids=allowed) if denied else body, amend)


def _with_seen_topics(access: Access, transaction: DescribedTransaction) -> DescribedTransaction:
    seen, hidden = access.split(
        Operation.DESCRIBE, Resource.TOPIC, transaction.topics, lambda each: each.topic
    )
    return replace(transaction, topics=seen) if hidden else transaction


def _list(access: Access, body: ListTransactionsRequest) -> Verdict:
    def amend(answer: ListTransactionsResponse) -> ListTransactionsResponse:
        seen, _ = access.split(
            Operation.DESCRIBE,
            Resource.TRANSACTIONAL_ID,
            answer.transaction_states,
            lambda each: each.transactional_id,
        )
        return replace(answer, transaction_states=seen)

    return Narrowed(body, amend)


RULES: Mapping[type, Rule] = {
    AddOffsetsToTxnRequest: _add_offsets,
    AddPartitionsToTxnRequest: _add_partitions,
    DescribeProducersRequest: _describe_producers,
    DescribeTransactionsRequest: _describe,
    EndTxnRequest: _end,
    ListTransactionsRequest: _list,
    TxnOffsetCommitRequest: _commit_offsets,
    WriteTxnMarkersRequest: _write_markers,
}
