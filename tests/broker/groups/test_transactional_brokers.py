"""Offsets in transactions on real brokers: the verification, the markers, and both coordinators.

Broker 1 coordinates the group, broker 2 the transaction.
"""

from typing import Any

import pytest

from broker.groups.offsets_topic import OFFSETS_TOPIC
from broker.transactions.transactions_topic import TRANSACTIONS_TOPIC
from tests.broker.brokers import Brokers
from tests.broker.groups.led import transactional_request
from wire import metadata_records as records
from wire.errors import ErrorCode
from wire.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from wire.messages.producing import InitProducerIdRequest
from wire.messages.transactions import AddOffsetsToTxnRequest, EndTxnRequest

NONE = ErrorCode.NONE
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT


@pytest.fixture
def brokers() -> Brokers:
    running = Brokers(3, replica_lag_time_max_ms=1000).start()
    running.write(records.FeatureLevelRecord(name="transaction.version", feature_level=2))
    running.create_topic("t", (3, 2, 1))
    running.create_topic(OFFSETS_TOPIC, (1, 2, 3))
    running.create_topic(TRANSACTIONS_TOPIC, (2, 3, 1))
    running.run(600)
    return running


def begun(brokers: Brokers) -> tuple[int, int]:
    request = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
    token = brokers.ask(2, request)
    brokers.run(300)
    answer = brokers.answer(token)
    assert answer.error_code is NONE
    return answer.producer_id, answer.producer_epoch


def commit(
    brokers: Brokers,
    producer: tuple[int, int],
    offset: int,
    *,
    at: int = 1,
    version: int | None = None,
    **fields: Any,
) -> ErrorCode:
    producer_id, epoch = producer
    request = transactional_request(offset, producer_id=producer_id, producer_epoch=epoch, **fields)
    token = brokers.ask(at, request, api_version=version)
    brokers.run(300)
    error: ErrorCode = brokers.answer(token).topics[0].partitions[0].error_code
    return error


def end(brokers: Brokers, producer: tuple[int, int], *, is_commit: bool = True) -> tuple[int, int]:
    producer_id, epoch = producer
    token = brokers.ask(
        2,
        EndTxnRequest(
            transactional_id="x",
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=is_commit,
        ),
    )
    brokers.run(300)
    answer = brokers.answer(token)
    assert answer.error_code is NONE
    return answer.producer_id, answer.producer_epoch


def fetched(brokers: Brokers, *, at: int = 1) -> int | ErrorCode:
    topics = (OffsetFetchRequestTopics(name="t", partition_indexes=(0,)),)
    groups = (OffsetFetchRequestGroup(group_id="g", topics=topics),)
    token = brokers.ask(at, OffsetFetchRequest(groups=groups, require_stable=True))
    brokers.run(300)
    (group,) = brokers.answer(token).groups
    assert group.error_code is NONE
    told = group.topics[0].partitions[0]
    if told.error_code is not NONE:
        error: ErrorCode = told.error_code
        return error
    offset: int = told.committed_offset
    return offset


def elect(brokers: Brokers, leader: int) -> None:
    brokers.change(OFFSETS_TOPIC, 0, leader=leader)
    brokers.run(1000)


@pytest.mark.parametrize("moves", [(), ("before",), ("ended",), ("before", "ended")])
def test_offsets_count_with_their_transaction_wherever_the_group_is_coordinated(
    brokers: Brokers, moves: tuple[str, ...]
) -> None:
    producer, at = begun(brokers), 1
    assert commit(brokers, producer, 5) is NONE
    assert fetched(brokers) is UNSTABLE
    if "before" in moves:
        at = 3
        elect(brokers, at)
        assert fetched(brokers, at=at) is UNSTABLE
    producer = end(brokers, producer)
    if "ended" in moves:
        at = 2
        elect(brokers, at)
    assert fetched(brokers, at=at) == 5
    assert commit(brokers, producer, 7, at=at) is NONE, "the next transaction, in the next epoch"
    end(brokers, producer, is_commit=False)
    assert fetched(brokers, at=at) == 5


def test_marker_reaches_the_coordinator_that_is_elected_meanwhile(brokers: Brokers) -> None:
    producer = begun(brokers)
    assert commit(brokers, producer, 5) is NONE
    brokers.cut |= {(2, 1)}  # the marker does not get through
    end(brokers, producer)
    assert fetched(brokers) is UNSTABLE
    elect(brokers, 3)
    brokers.run(1000)
    assert fetched(brokers, at=3) == 5


def test_producer_of_a_transaction_that_is_over_commits_nothing(brokers: Brokers) -> None:
    producer = begun(brokers)
    assert commit(brokers, producer, 5) is NONE
    end(brokers, producer)
    assert commit(brokers, producer, 7) is not NONE
    assert fetched(brokers) == 5


@pytest.mark.parametrize("at", [1, 2], ids=["asked elsewhere", "asked here"])
def test_empty_transactional_id_has_no_transaction(brokers: Brokers, at: int) -> None:
    elect(brokers, at)
    error = commit(brokers, begun(brokers), 5, at=at, transactional_id="")
    assert error is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("version", "refusal"), [(3, ErrorCode.INVALID_TXN_STATE), (4, ErrorCode.TRANSACTION_ABORTABLE)]
)
def test_older_client_adds_the_group_before_it_commits(
    brokers: Brokers, version: int, refusal: ErrorCode
) -> None:
    producer_id, epoch = producer = begun(brokers)
    assert commit(brokers, producer, 5, version=version) is refusal
    request = AddOffsetsToTxnRequest(
        transactional_id="x", producer_id=producer_id, producer_epoch=epoch, group_id="g"
    )
    token = brokers.ask(2, request, api_version=version)
    brokers.run(300)
    assert brokers.answer(token).error_code is NONE
    assert commit(brokers, producer, 5, version=version) is NONE
    end(brokers, producer)
    assert fetched(brokers) == 5
