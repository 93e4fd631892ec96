"""Offsets that are committed in transactions: who may, when they count, and what is told meanwhile.

The coordinator runs alone on its partition, of which the test says how far it is committed.
"""

from typing import Any

import pytest

from broker.groups import transactional_offsets
from broker.groups.group import Group, GroupState
from broker.groups.offsets_topic import OFFSETS_TOPIC
from quorum.core.producers import ProducerEntry, ProducerTransaction
from tests.broker.brokers import Brokers
from tests.broker.groups.led import PLACE, TOPIC_ID, Led, transactional_request
from tests.broker.groups.scenes import NOW, group_in
from wire.batch import headers
from wire.capabilities import lacking
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages.group_offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from wire.messages.transactions import TxnOffsetCommitRequest, TxnOffsetCommitRequestTopic

NONE = ErrorCode.NONE
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT
NOT_HERE = ErrorCode.NOT_COORDINATOR
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
INVALID_STATE = ErrorCode.INVALID_TXN_STATE
ABORTABLE = ErrorCode.TRANSACTION_ABORTABLE


def pending(offset: int = 9) -> Led:
    """The group has committed offset 3, and `offset` in a transaction that is going on."""
    led = Led()
    led.commit_offset(3)
    led.commit()
    led.answers.clear()
    led.commit_in_transaction(offset)
    led.commit()
    assert led.told() is NONE
    return led


# --- when they count


def test_offset_counts_when_the_commit_marker_is_committed() -> None:
    led = pending()
    assert (led.fetched(), led.fetched(require_stable=True)) == (3, UNSTABLE)
    led.end()
    assert led.fetched() == 3
    assert led.fetched(require_stable=True) is None, "what is being written is waited for"
    led.commit()
    assert (led.fetched(), led.fetched(require_stable=True)) == (9, 9)


def test_abort_marker_leaves_the_offset_before() -> None:
    led = pending()
    led.end(is_commit=False)
    led.commit()
    assert led.fetched(require_stable=True) == 3


def test_commit_is_answered_when_it_is_committed() -> None:
    led = Led()
    led.commit_in_transaction(9)
    assert led.answers == []
    led.commit()
    assert led.told() is NONE


@pytest.mark.parametrize("is_commit", [True, False])
def test_next_coordinator_finds_the_transaction_as_far_as_it_went(is_commit: bool) -> None:
    led = pending().next()
    assert (led.fetched(), led.fetched(require_stable=True)) == (3, UNSTABLE)
    led.end(is_commit=is_commit)
    led.commit()
    assert led.fetched(require_stable=True) == (9 if is_commit else 3)
    assert led.next().fetched(require_stable=True) == (9 if is_commit else 3)


def test_marker_that_comes_while_the_log_is_read_ends_what_is_read() -> None:
    led = Led(pending().log, high_watermark=0)
    assert led.coordinator.error is LOADING
    led.end()
    led.partition.open_log.high_watermark = led.partition.open_log.end_offset
    led.coordinator.progressed(0)
    assert led.coordinator.error is LOADING, "the piece is still being read"
    led.settle()
    assert led.fetched(require_stable=True) == 9


def test_batch_names_the_producer_and_no_sequence() -> None:
    led = Led()
    led.commit_in_transaction(9, producer_id=5, epoch=2)
    ((_, header),) = headers(led.log)
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 2, -1)


# --- verification


def test_transaction_is_verified_before_the_write() -> None:
    led = Led()
    led.ask_in_transaction(transactional_request(9))
    (asked,) = led.verifier.asked
    assert (asked.transactional_id, asked.producer_id, asked.places) == ("x", 1, (PLACE,))
    assert led.log == b""
    led.verifier.answer()
    led.settle()
    assert led.log != b""


@pytest.mark.parametrize(
    ("answered", "told"),
    [
        (ABORTABLE, ABORTABLE),
        (ErrorCode.NETWORK_EXCEPTION, LOADING),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, NOT_HERE),
        (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS),
    ],
)
def test_what_is_not_verified_is_refused(answered: ErrorCode, told: ErrorCode) -> None:
    led = Led()
    led.ask_in_transaction(transactional_request(9))
    led.verifier.answer(answered)
    led.settle()
    assert (led.told(), led.log) == (told, b"")


@pytest.mark.parametrize(("producer_id", "told"), [(1, INVALID_STATE), (2, None)])
def test_marker_voids_the_verification_of_its_producer(
    producer_id: int, told: ErrorCode | None
) -> None:
    """Written behind the marker, the offset would be unstable for ever."""
    led = Led()
    led.ask_in_transaction(transactional_request(9))
    led.end(producer_id=producer_id)
    led.verifier.answer()
    led.settle()
    assert led.answers == ([] if told is None else [told])


def test_verification_that_outlives_the_leadership_is_refused() -> None:
    led = Led()
    led.ask_in_transaction(transactional_request(9))
    led.coordinator.close(NOT_HERE, 0)
    led.verifier.answer()
    led.settle()
    assert (led.told(), led.log) == (NOT_HERE, b"")


@pytest.mark.parametrize(
    ("epoch", "marker_offset", "asks"), [(4, -1, False), (4, 3, True), (5, -1, True)]
)
def test_only_the_first_write_in_a_transaction_is_verified(
    epoch: int, marker_offset: int, asks: bool
) -> None:
    transactions = (ProducerTransaction(2, marker_offset),)
    led = Led(producers=(ProducerEntry(1, 4, (), transactions=transactions),))
    led.ask_in_transaction(transactional_request(9, producer_epoch=epoch))
    assert (bool(led.verifier.asked), led.log == b"") == (asks, asks)


def test_producer_of_an_earlier_epoch_is_fenced() -> None:
    led = Led(producers=(ProducerEntry(1, 4, ()),))
    led.commit_in_transaction(9, epoch=3)
    assert (led.told(), led.log) == (ErrorCode.INVALID_PRODUCER_EPOCH, b"")


# --- members (KIP-447)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"generation_id": 1, "member_id": "a"}, NONE),
        ({}, NONE),
        ({"generation_id": 0, "member_id": "a"}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": -1, "member_id": "a"}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": 1, "member_id": "b"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation_id": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation_id": 0}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_producer_that_names_a_member_has_to_name_its_generation(
    fields: dict[str, Any], error: ErrorCode
) -> None:
    assert (
        transactional_offsets.check_commit(
            group_in(GroupState.STABLE, "a"), transactional_request(9, **fields)
        )
        is error
    )


@pytest.mark.parametrize(("generation", "error"), [(-1, NONE), (1, ErrorCode.ILLEGAL_GENERATION)])
def test_group_that_is_not_there_has_no_generation(generation: int, error: ErrorCode) -> None:
    request = transactional_request(9, generation_id=generation)
    assert transactional_offsets.check_commit(None, request) is error
    empty = Group(id="g", state_since_ms=NOW)
    request = transactional_request(9, member_id="a")
    assert transactional_offsets.check_commit(empty, request) is NONE
    request = transactional_request(9, member_id="a", generation_id=0)
    assert transactional_offsets.check_commit(empty, request) is ErrorCode.UNKNOWN_MEMBER_ID


def test_commit_of_no_producer_is_an_ordinary_one_if_nothing_is_verified() -> None:
    """Nobody would ever end a transaction of producer -1. Kafka 4.3.1 answers likewise."""
    led = Led()
    led.commit_in_transaction(9, producer_id=-1)
    led.commit()
    assert led.told() is NONE
    led.commit_in_transaction(10, producer_id=1, epoch=-1)
    assert led.told() is ErrorCode.UNKNOWN_SERVER_ERROR
    led.commit()
    for each in (led, led.next()):
        assert each.fetched(require_stable=True) == 9


def test_members_are_checked_when_the_transaction_is_verified() -> None:
    """The group may have gone on meanwhile."""
    led = Led()
    led.ask_in_transaction(transactional_request(9, generation_id=1, member_id="a"))
    assert led.answers == []
    led.verifier.answer()
    assert led.told() is ErrorCode.ILLEGAL_GENERATION


# --- what goes


def unstable(led: Led) -> bool:
    led.commit()
    return led.fetched(require_stable=True) is UNSTABLE


def test_group_with_an_offset_in_a_transaction_does_not_expire() -> None:
    led = pending()
    led.coordinator.expire(10_000)
    assert unstable(led)
    assert (led.fetched(), list(led.coordinator.groups)) == (3, ["g"])
    led.end(is_commit=False)
    led.commit()
    led.coordinator.expire(10_000)
    led.commit()
    assert (led.fetched(), list(led.coordinator.groups)) == (-1, [])


def test_group_with_nothing_but_an_offset_in_a_transaction_does_not_expire() -> None:
    led = Led()
    led.commit_in_transaction(9)
    led.commit()
    led.coordinator.expire(10_000)
    assert unstable(led)
    assert list(led.next().coordinator.groups) == ["g"]


@pytest.mark.parametrize("in_transaction", [True, False])
def test_offset_that_is_being_written_does_not_expire_with_the_one_before(
    in_transaction: bool,
) -> None:
    led = Led()
    led.commit_offset(3)
    led.commit()
    if in_transaction:
        led.commit_in_transaction(9)
    else:
        led.commit_offset(9)
    led.coordinator.expire(10_000)
    led.end()
    led.commit()
    assert (led.fetched(), led.next().fetched()) == (9, 9)


def test_what_is_deleted_takes_what_waits_along() -> None:
    def delete_group(led: Led) -> None:
        led.coordinator.delete("g", lambda error, now_ms: None, 0)

    def delete_offsets(led: Led) -> None:
        partitions = (OffsetDeleteRequestPartition(partition_index=0),)
        topics = (OffsetDeleteRequestTopic(name="t", partitions=partitions),)
        led.coordinator.offset_requests.delete_offsets(
            0, OffsetDeleteRequest(group_id="g", topics=topics), 0
        )

    def delete_topic(led: Led) -> None:
        led.coordinator.topics_deleted(frozenset({"t"}), 0)

    for delete in (delete_group, delete_offsets, delete_topic):
        led = Led()
        led.commit_in_transaction(9)
        led.commit()
        delete(led)
        assert not unstable(led), delete
        led.end()
        led.commit()
        assert (led.fetched(), led.next().fetched()) == (-1, -1), delete


# --- answers


@pytest.mark.parametrize(
    ("error", "version", "told"),
    [
        (LOADING, 1, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (LOADING, 2, LOADING),
        (ABORTABLE, 3, INVALID_STATE),
        (ABORTABLE, 4, ABORTABLE),
    ],
)
def test_error_is_told_in_words_of_the_version(
    error: ErrorCode, version: int, told: ErrorCode
) -> None:
    words = lacking(TxnOffsetCommitRequest, version)
    request = transactional_request(9)
    answer = transactional_offsets.refused_commit(
        request, error, words, lambda name, index: TOPIC_ID
    )
    assert answer.topics[0].partitions[0].error_code is told


def test_request_is_refused_where_its_group_is_not() -> None:
    brokers = Brokers(2).start()
    brokers.create_topic("t", (1, 2))
    brokers.create_topic(OFFSETS_TOPIC, (1, 2))

    def told(at: int, **fields: Any) -> ErrorCode:
        body = brokers.call(at, transactional_request(9, **fields))
        error: ErrorCode = body.topics[0].partitions[0].error_code
        return error

    assert told(2) is NOT_HERE
    assert told(1, group_id="") is ErrorCode.INVALID_GROUP_ID
    assert told(1, topic="other") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_topic_without_partitions_is_not_answered() -> None:
    request = replace(
        transactional_request(9), topics=(TxnOffsetCommitRequestTopic(name="t", partitions=()),)
    )
    answer = transactional_offsets.refused_commit(
        request, ErrorCode.NOT_COORDINATOR, lacking(type(request), 5), lambda name, index: TOPIC_ID
    )
    assert answer.topics == ()
