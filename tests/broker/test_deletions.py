"""DeleteRecords: what is refused, whom the answer waits for, and what it says."""

import pytest

from tests.broker.brokers import Brokers, batch_of
from wire.errors import ErrorCode
from wire.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)


def asking(*offsets: int, topic: str = "t", timeout_ms: int = 5000) -> DeleteRecordsRequest:
    """The first partition up to the first offset, and so on."""
    partitions = tuple(
        DeleteRecordsPartition(partition_index=index, offset=offset)
        for index, offset in enumerate(offsets)
    )
    return DeleteRecordsRequest(
        topics=(DeleteRecordsTopic(name=topic, partitions=partitions),), timeout_ms=timeout_ms
    )


def results(brokers: Brokers, token: int) -> list[DeleteRecordsPartitionResult]:
    return list(brokers.answer(token).topics[0].partitions)


def led(brokers: Brokers) -> list[int]:
    return [brokers.partition(node, "t", 0).open_log.start_offset for node in brokers.brokers]


@pytest.fixture
def brokers() -> Brokers:
    """Broker 1 leads one partition of two replicas, and one alone; both have five records."""
    cluster = Brokers(2).start()
    cluster.create_topic("t", (1, 2), (1,))
    for index in (0, 1):
        for _ in range(5):
            cluster.produce(1, "t", index, batch_of(b"x"))
    cluster.run(1000)
    return cluster


def test_answer_waits_until_all_replicas_start_there(brokers: Brokers) -> None:
    token = brokers.ask(1, asking(3))
    assert token not in brokers.answers
    brokers.run(2000)
    assert results(brokers, token) == [
        DeleteRecordsPartitionResult(partition_index=0, low_watermark=3)
    ]
    assert led(brokers) == [3, 3]


def test_answer_comes_at_once_if_nobody_follows(brokers: Brokers) -> None:
    request = DeleteRecordsRequest(
        topics=(
            DeleteRecordsTopic(
                name="t", partitions=(DeleteRecordsPartition(partition_index=1, offset=-1),)
            ),
        ),
        timeout_ms=5000,
    )
    token = brokers.ask(1, request)
    assert results(brokers, token) == [
        DeleteRecordsPartitionResult(partition_index=1, low_watermark=5)
    ]


def test_answer_does_not_wait_for_a_broker_that_is_fenced(brokers: Brokers) -> None:
    brokers.kill(2)
    brokers.fence(2)
    brokers.settle()
    token = brokers.ask(1, asking(2))
    assert results(brokers, token)[0].low_watermark == 2


def test_offsets_that_are_gone_already_are_no_error(brokers: Brokers) -> None:
    brokers.ask(1, asking(3))
    brokers.run(2000)
    token = brokers.ask(1, asking(1))
    assert results(brokers, token)[0].low_watermark == 3


def test_nothing_may_be_deleted(brokers: Brokers) -> None:
    token = brokers.ask(1, asking(0))
    assert results(brokers, token)[0] == DeleteRecordsPartitionResult(
        partition_index=0, low_watermark=0
    )


@pytest.mark.parametrize("offset", [-2, 6])
def test_offset_beyond_the_high_watermark_is_refused(brokers: Brokers, offset: int) -> None:
    token = brokers.ask(1, asking(offset))
    (result,) = results(brokers, token)
    assert result.error_code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert result.low_watermark == -1


def test_records_of_a_compacted_topic_are_not_deleted(brokers: Brokers) -> None:
    brokers.configure("t", "cleanup.policy", "compact")
    token = brokers.ask(1, asking(3))
    assert results(brokers, token)[0].error_code is ErrorCode.POLICY_VIOLATION
    brokers.configure("t", "cleanup.policy", "")  # nothing cleans it but its clients (KIP-1161)
    token = brokers.ask(1, asking(3))
    brokers.run(2000)
    assert results(brokers, token)[0].error_code is ErrorCode.NONE


def test_only_the_leader_deletes(brokers: Brokers) -> None:
    token = brokers.ask(2, asking(3))
    assert results(brokers, token)[0].error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    token = brokers.ask(1, asking(3, topic="unknown"))
    assert results(brokers, token)[0].error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_who_does_not_wait_is_answered_at_once(brokers: Brokers, timeout_ms: int) -> None:
    token = brokers.ask(1, asking(3, timeout_ms=timeout_ms))
    brokers.run(0)
    assert results(brokers, token)[0].error_code is ErrorCode.REQUEST_TIMED_OUT


def test_answer_waits_for_the_last_of_all() -> None:
    brokers = Brokers(3).start()
    brokers.create_topic("t", (1, 2, 3))
    for _ in range(5):
        brokers.produce(1, "t", 0, batch_of(b"x"))
    brokers.run(1000)
    brokers.cut.add((3, 1))
    token = brokers.ask(1, asking(3))
    brokers.run(1000)
    assert token not in brokers.answers
    brokers.cut.clear()
    brokers.run(1000)
    assert results(brokers, token)[0].low_watermark == 3


def test_answer_says_so_when_the_time_is_up(brokers: Brokers) -> None:
    brokers.cut.add((2, 1))
    brokers.run(2000)
    token = brokers.ask(1, asking(3, timeout_ms=100))
    brokers.run(200)
    assert results(brokers, token)[0].error_code is ErrorCode.REQUEST_TIMED_OUT


def test_answer_says_so_when_the_leader_changes(brokers: Brokers) -> None:
    brokers.cut.add((2, 1))
    brokers.run(2000)
    token = brokers.ask(1, asking(3))
    brokers.change("t", 0, leader=2)
    assert results(brokers, token)[0].error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_partition_that_is_asked_for_twice_is_answered_twice(brokers: Brokers) -> None:
    asked = [DeleteRecordsPartition(partition_index=0, offset=offset) for offset in (3, 1, 9)]
    topics = (DeleteRecordsTopic(name="t", partitions=tuple(asked)),)
    token = brokers.ask(1, DeleteRecordsRequest(topics=topics, timeout_ms=5000))
    assert token not in brokers.answers
    brokers.run(2000)
    assert [(result.low_watermark, result.error_code) for result in results(brokers, token)] == [
        (3, ErrorCode.NONE),
        (3, ErrorCode.NONE),
        (-1, ErrorCode.OFFSET_OUT_OF_RANGE),
    ]
