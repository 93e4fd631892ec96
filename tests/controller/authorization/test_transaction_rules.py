"""Transactions: what is refused, what goes on with less, and what is hidden. Alice asks."""

from typing import Any

import pytest

from controller.authorization.acl_index import Resource
from controller.metadata.security import Operation
from quorum.core.effects import Reply, Request
from tests.controller.authorization.entries import (
    ALICE,
    HIDDEN,
    HOST,
    SEEN,
    Stand,
    acl,
    on_cluster,
    on_group,
)
from wire.capabilities import lacking
from wire.errors import ErrorCode
from wire.messages import transactions

O = Operation  # noqa: E741 - as in the modules
NONE = ErrorCode.NONE
CLUSTER_ERROR = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
GROUP_ERROR = ErrorCode.GROUP_AUTHORIZATION_FAILED
ID_ERROR = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
TOPIC_ERROR = ErrorCode.TOPIC_AUTHORIZATION_FAILED
PRODUCER: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}


def on_id(operation: Operation, name: str = SEEN) -> Any:
    return acl(operation, Resource.TRANSACTIONAL_ID, name)


@pytest.mark.parametrize("operation", [O.READ, O.DESCRIBE])
def test_transaction_is_ended_by_who_may_write_its_id(operation: Operation) -> None:
    body = transactions.EndTxnRequest(transactional_id=SEEN, committed=True, **PRODUCER)
    refused: Any = Stand(on_id(operation), on_id(O.WRITE, HIDDEN)).ask(body)
    assert refused == transactions.EndTxnResponse(error_code=ID_ERROR)
    assert Stand(on_id(O.WRITE)).ask(body, "served") == "served"


@pytest.mark.parametrize(
    ("acls", "error"),
    [
        ((on_group(O.READ),), ID_ERROR),
        ((on_id(O.WRITE), on_group(O.DESCRIBE)), GROUP_ERROR),
        ((on_id(O.WRITE), on_group(O.READ)), NONE),
    ],
)
def test_offsets_are_added_by_who_may_write_the_id_and_read_the_group(
    acls: tuple[Any, ...], error: ErrorCode
) -> None:
    body = transactions.AddOffsetsToTxnRequest(transactional_id=SEEN, group_id=SEEN, **PRODUCER)
    answer = Stand(*acls).ask(body, transactions.AddOffsetsToTxnResponse())
    assert answer == transactions.AddOffsetsToTxnResponse(error_code=error)


# --- partitions of a transaction --------------------------------------------------------------


def added(version: int, *acls: Any, topics: dict[str, tuple[int, ...]]) -> Any:
    """What alice is answered in this version; "served" by the core."""
    asked = transactions.AddPartitionsToTxnTransaction(
        transactional_id=SEEN,
        topics=tuple(
            transactions.AddPartitionsToTxnTopic(name=name, partitions=indexes)
            for name, indexes in topics.items()
        ),
        **PRODUCER,
    )
    body = transactions.AddPartitionsToTxnRequest(transactions=(asked,))
    request = Request(
        token=1,
        body=body,
        principal=ALICE,
        client_host=HOST,
        lacking=lacking(type(body), version),
    )
    decided = Stand(*acls).door.admit(request, is_control=False)
    return decided.body if isinstance(decided, Reply) else "served"


def errors_of(answer: Any) -> dict[tuple[str, int], ErrorCode]:
    (result,) = answer.results_by_transaction
    return {
        (topic.name, each.partition_index): each.partition_error_code
        for topic in result.topic_results
        for each in topic.results_by_partition
    }


def test_one_partition_that_may_not_be_written_keeps_the_others_out() -> None:
    writable = acl(O.WRITE), acl(O.WRITE, name="missing"), acl(O.WRITE, name="__consumer_offsets")
    acls = on_id(O.WRITE), *writable, acl(O.READ, name=HIDDEN)
    topics = {SEEN: (0, 99), HIDDEN: (0,), "missing": (0,), "__consumer_offsets": (0,)}
    assert errors_of(added(3, *acls, topics=topics)) == {
        (SEEN, 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
        (SEEN, 99): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (HIDDEN, 0): TOPIC_ERROR,
        ("missing", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("__consumer_offsets", 0): TOPIC_ERROR,
    }
    assert added(3, *acls, topics={SEEN: (0,)}) == "served"


def test_partitions_are_added_by_who_may_write_the_id() -> None:
    answer = added(3, acl(O.WRITE), on_cluster(O.CLUSTER_ACTION), topics={SEEN: (0, 1)})
    assert errors_of(answer) == {(SEEN, 0): ID_ERROR, (SEEN, 1): ID_ERROR}


def test_brokers_add_partitions_for_producers() -> None:
    answer = added(4, on_id(O.WRITE), acl(O.WRITE), topics={SEEN: (0,)})
    assert answer == transactions.AddPartitionsToTxnResponse(error_code=CLUSTER_ERROR)
    assert added(4, on_cluster(O.CLUSTER_ACTION), topics={SEEN: (0,)}) == "served"


# --- offsets and markers ----------------------------------------------------------------------


def commit(*topics: str) -> transactions.TxnOffsetCommitRequest:
    row = transactions.TxnOffsetCommitRequestPartition(partition_index=4, committed_offset=9)
    return transactions.TxnOffsetCommitRequest(
        transactional_id=SEEN,
        group_id=SEEN,
        topics=tuple(
            transactions.TxnOffsetCommitRequestTopic(name=name, partitions=(row,))
            for name in topics
        ),
        **PRODUCER,
    )


def committed(**errors: ErrorCode) -> transactions.TxnOffsetCommitResponse:
    return transactions.TxnOffsetCommitResponse(
        topics=tuple(
            transactions.TxnOffsetCommitResponseTopic(
                name=name,
                partitions=(
                    transactions.TxnOffsetCommitResponsePartition(
                        partition_index=4, error_code=error
                    ),
                ),
            )
            for name, error in errors.items()
        )
    )


@pytest.mark.parametrize(
    ("acls", "error"),
    [
        ((on_group(O.READ), acl(O.READ)), ID_ERROR),
        ((on_id(O.WRITE), on_group(O.DESCRIBE), acl(O.READ)), GROUP_ERROR),
    ],
)
def test_offsets_of_a_transaction_want_its_id_and_its_group(
    acls: tuple[Any, ...], error: ErrorCode
) -> None:
    assert Stand(*acls).ask(commit(SEEN)) == committed(**{SEEN: error})


def test_offsets_of_topics_that_may_be_read_go_on() -> None:
    stand = Stand(on_id(O.WRITE), on_group(O.READ), acl(O.READ))
    answer = stand.ask(commit(SEEN, HIDDEN), committed(**{SEEN: NONE}))
    assert stand.given == commit(SEEN)
    assert answer == committed(**{SEEN: NONE, HIDDEN: TOPIC_ERROR})


def test_markers_are_written_for_brokers_and_for_operators() -> None:
    topic = transactions.WritableTxnMarkerTopic(name=SEEN, partition_indexes=(0, 1))
    marker = transactions.WritableTxnMarker(
        transaction_result=True, topics=(topic,), coordinator_epoch=0, **PRODUCER
    )
    body = transactions.WriteTxnMarkersRequest(markers=(marker,))
    stand = Stand(on_cluster(O.DESCRIBE), on_cluster(O.CREATE), on_id(O.ALL), acl(O.ALL))
    refused: Any = stand.ask(body)
    (result,) = refused.markers
    assert result.producer_id == 7
    assert [(each.partition_index, each.error_code) for each in result.topics[0].partitions] == [
        (0, CLUSTER_ERROR),
        (1, CLUSTER_ERROR),
    ]
    for operation in (O.CLUSTER_ACTION, O.ALTER):
        assert Stand(on_cluster(operation)).ask(body, "served") == "served"


# --- what is shown ----------------------------------------------------------------------------


def test_producers_are_shown_to_who_may_read_the_topic() -> None:
    asked = tuple(
        transactions.DescribeProducersTopic(name=name, partition_indexes=(0,))
        for name in (SEEN, HIDDEN, "no name")
    )
    shown = transactions.DescribedProducersTopic(name=SEEN, partitions=())
    stand = Stand(acl(O.READ), acl(O.DESCRIBE, name=HIDDEN))
    answer: Any = stand.ask(
        transactions.DescribeProducersRequest(topics=asked),
        transactions.DescribeProducersResponse(topics=(shown,)),
    )
    left = transactions.DescribeProducersRequest(topics=(asked[0], asked[2]))
    assert stand.given == left, "who serves it says that no topic has such a name"
    (row,) = answer.topics[1].partitions
    assert (answer.topics[1].name, row.error_code) == (HIDDEN, TOPIC_ERROR)
    assert row.error_message == "Topic authorization failed."


def described(name: str, *topics: str) -> transactions.DescribedTransaction:
    return transactions.DescribedTransaction(
        transactional_id=name,
        topics=tuple(transactions.TransactionTopic(topic=each) for each in topics),
    )


def test_transactions_are_described_with_the_topics_that_may_be_seen() -> None:
    stand = Stand(on_id(O.DESCRIBE), acl(O.DESCRIBE))
    answer: Any = stand.ask(
        transactions.DescribeTransactionsRequest(transactional_ids=(HIDDEN, SEEN)),
        transactions.DescribeTransactionsResponse(
            transaction_states=(described(SEEN, SEEN, HIDDEN),)
        ),
    )
    assert stand.given == transactions.DescribeTransactionsRequest(transactional_ids=(SEEN,))
    assert answer.transaction_states == (
        described(SEEN, SEEN),
        transactions.DescribedTransaction(transactional_id=HIDDEN, error_code=ID_ERROR),
    )


def test_transactions_that_may_not_be_described_are_not_listed() -> None:
    listed = tuple(
        transactions.ListedTransaction(
            transactional_id=name, producer_id=1, transaction_state="Ongoing"
        )
        for name in (SEEN, HIDDEN)
    )
    body = transactions.ListTransactionsRequest()
    everything = transactions.ListTransactionsResponse(transaction_states=listed)
    answer: Any = Stand(on_id(O.DESCRIBE), on_cluster(O.DESCRIBE)).ask(body, everything)
    assert answer.transaction_states == listed[:1]
