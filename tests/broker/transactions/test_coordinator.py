"""The coordinator over real brokers: steps, markers, fail-over, time-outs."""

from collections.abc import Callable
from typing import Any

import pytest

from broker.config import TransactionConfig
from broker.transactions.transactions_topic import TRANSACTIONS_TOPIC
from tests.broker.transactions.scenes import ID, PLACES, TIMEOUT_MS, Scene, scene
from wire.errors import ErrorCode
from wire.messages.groups import FindCoordinatorRequest
from wire.messages.producing import InitProducerIdRequest
from wire.messages.topics import CreateTopicsRequest
from wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    DescribeTransactionsRequest,
    EndTxnResponse,
    ListTransactionsRequest,
)

COMMITTED = {(place, True) for place in PLACES}
ABORTED = {(place, False) for place in PLACES}


def test_a_commit_is_told_to_each_partition_and_then_complete() -> None:
    on = scene()
    producer = on.begun()
    assert on.described().transaction_state == "Ongoing"
    on.holds = True
    answer = on.end(producer)
    assert (answer.error_code, answer.producer_id) == (ErrorCode.NONE, producer[0])
    assert answer.producer_epoch == producer[1] + 1
    assert on.described().transaction_state == "PrepareCommit"
    assert {node_id for node_id, _ in on.held} == {2, 3}
    on.release()
    assert on.markers() == COMMITTED
    assert {told.producer for told in on.told} == {(producer[0], producer[1] + 1)}
    on.cluster.run(100)
    assert on.described().transaction_state == "CompleteCommit"
    assert set(on.add((producer[0], producer[1] + 1)).values()) == {ErrorCode.NONE}


def test_with_an_older_client_the_epoch_stays() -> None:
    on = scene(version=0)
    producer = on.begun()
    answer = on.call(on.end_request(producer, committed=False), api_version=4)
    assert answer.error_code is ErrorCode.NONE
    on.cluster.run(100)
    assert {told.producer for told in on.told} == {producer}
    assert on.markers() == ABORTED
    assert on.described().transaction_state == "CompleteAbort"


def test_one_step_at_a_time() -> None:
    on = scene()
    producer = on.begun()
    on.holds = True
    on.end(producer)
    later = (producer[0], producer[1] + 1)
    assert set(on.add(later).values()) == {ErrorCode.CONCURRENT_TRANSACTIONS}
    assert on.end(producer).error_code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert on.init().error_code is ErrorCode.CONCURRENT_TRANSACTIONS


def test_a_marker_is_told_again_until_the_leader_takes_it() -> None:
    on = scene()
    producer = on.begun()
    on.errors[PLACES[0]] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    on.end(producer)
    on.cluster.run(1000)
    assert on.markers() == {(PLACES[1], True)}
    assert on.described().transaction_state == "PrepareCommit"
    on.errors.clear()
    on.cluster.run(200)
    assert on.markers() == COMMITTED
    assert len(on.told) == 2  # nobody is told twice
    assert on.described().transaction_state == "CompleteCommit"


def test_a_marker_follows_its_partition() -> None:
    on = scene()
    producer = on.begun()
    on.cluster.cut.add((1, 2))
    on.end(producer)
    on.cluster.run(300)
    on.cluster.change("t", 0, leader=3)
    on.cluster.run(300)
    assert {(told.node_id, told.place) for told in on.told} == {(3, PLACES[0]), (3, PLACES[1])}
    assert on.described().transaction_state == "CompleteCommit"


def test_a_deleted_partition_needs_no_marker() -> None:
    on = scene()
    producer = on.begun()
    on.errors[PLACES[0]] = on.errors[PLACES[1]] = ErrorCode.NOT_ENOUGH_REPLICAS
    on.end(producer)
    on.cluster.run(200)
    on.cluster.delete_topic("t")
    on.cluster.run(200)
    assert on.described().transaction_state == "CompleteCommit"


def test_a_fenced_coordinator_says_nothing_more() -> None:
    on = scene()
    producer = on.begun()
    on.errors[PLACES[0]] = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    on.end(producer)
    on.errors.clear()
    on.cluster.run(1000)
    assert on.markers() == {(PLACES[1], True)}
    assert on.described().transaction_state == "PrepareCommit"


def between_steps() -> list[tuple[str, Callable[[Scene, tuple[int, int]], None]]]:
    """How far an EndTxn has come when its coordinator fails."""

    def not_asked(_on: Scene, _producer: tuple[int, int]) -> None: ...

    def decided(on: Scene, producer: tuple[int, int]) -> None:
        """The answer is lost, and no leader has heard anything."""
        on.cluster.cut |= {(1, 2), (1, 3)}
        on.cluster.ask(1, on.end_request(producer))

    def half_told(on: Scene, producer: tuple[int, int]) -> None:
        on.errors[PLACES[1]] = ErrorCode.NOT_ENOUGH_REPLICAS
        assert on.end(producer).error_code is ErrorCode.NONE
        on.errors.clear()
        assert len(on.told) == 1

    def all_told(on: Scene, producer: tuple[int, int]) -> None:
        """They have the marker; their answers do not arrive."""
        on.holds = True
        assert on.end(producer).error_code is ErrorCode.NONE
        on.cluster.kill(1)
        on.release()

    def complete(on: Scene, producer: tuple[int, int]) -> None:
        assert on.end(producer).error_code is ErrorCode.NONE
        on.cluster.run(100)

    steps = (not_asked, decided, half_told, all_told, complete)
    return [(step.__name__, step) for step in steps]


@pytest.mark.parametrize(("_name", "until"), between_steps())
def test_the_next_coordinator_goes_on_from_any_step(
    _name: str, until: Callable[[Scene, tuple[int, int]], None]
) -> None:
    on = scene()
    producer = on.begun()
    until(on, producer)
    if 1 in on.cluster.brokers:
        on.cluster.kill(1)
    on.cluster.change(TRANSACTIONS_TOPIC, 0, isr=(2, 3), leader=2)
    on.cluster.run(1000)
    answer = ended(on, producer)
    assert (answer.producer_id, answer.producer_epoch) == (producer[0], producer[1] + 1)
    assert on.markers() == COMMITTED
    assert on.described().transaction_state == "CompleteCommit"
    assert set(on.add((producer[0], producer[1] + 1)).values()) == {ErrorCode.NONE}


def ended(on: Scene, producer: tuple[int, int]) -> EndTxnResponse:
    """As a client does: it asks until it is over."""
    for _ in range(20):
        answer = on.end(producer)
        if answer.error_code is not ErrorCode.CONCURRENT_TRANSACTIONS:
            assert answer.error_code is ErrorCode.NONE, answer
            on.cluster.run(100)
            return answer
        on.cluster.run(100)
    raise AssertionError("it never ended")


def test_a_step_that_the_log_refuses_changes_nothing() -> None:
    on = scene()
    producer = on.begun()
    on.refuse_writes()
    assert on.end(producer).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert on.described().transaction_state == "Ongoing"
    on.take_writes()
    assert on.end(producer).error_code is ErrorCode.NONE


def test_completion_is_written_again_when_the_log_takes_it() -> None:
    on = scene()
    producer = on.begun()
    on.holds = True
    on.end(producer)
    on.refuse_writes()
    on.release()
    on.cluster.run(300)
    assert on.described().transaction_state == "PrepareCommit"
    on.take_writes()
    on.cluster.run(300)
    assert on.described().transaction_state == "CompleteCommit"
    assert len(on.told) == 2


def test_a_late_step_counts_when_it_is_committed() -> None:
    on = scene(config=TransactionConfig(write_timeout_ms=100))
    producer = on.begun()
    on.cluster.run(600)
    on.cluster.cut |= {(2, 1), (3, 1)}  # nobody fetches
    token = on.cluster.ask(1, on.end_request(producer))
    on.cluster.run(200)
    assert on.cluster.answer(token).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert on.end(producer).error_code is ErrorCode.CONCURRENT_TRANSACTIONS
    on.cluster.cut.clear()
    on.cluster.run(2000)
    assert on.markers() == COMMITTED
    assert on.end(producer).error_code is ErrorCode.NONE  # the retry hears what became of it


@pytest.mark.parametrize("version", [0, 2])
def test_a_transaction_is_aborted_when_its_time_is_up(version: int) -> None:
    on = scene(version=version)
    producer = on.begun()
    on.cluster.run(TIMEOUT_MS - 1000)
    assert on.described().transaction_state == "Ongoing"
    on.cluster.run(2000)
    assert on.markers() == ABORTED
    assert on.described().transaction_state == "CompleteAbort"
    late = on.call(on.end_request(producer), api_version=5 if version else 4)
    expected = ErrorCode.INVALID_TXN_STATE if version else ErrorCode.PRODUCER_FENCED
    assert late.error_code is expected


def test_its_time_runs_on_under_the_next_coordinator() -> None:
    on = scene()
    on.begun()
    on.cluster.run(TIMEOUT_MS - 2000)
    on.elect(2)
    on.cluster.run(2000)
    assert on.described().transaction_state == "CompleteAbort"


def test_a_producer_that_begins_again_aborts_what_was_open() -> None:
    on = scene()
    producer = on.begun()
    assert on.init().error_code is ErrorCode.CONCURRENT_TRANSACTIONS
    on.cluster.run(100)
    assert on.markers() == ABORTED
    again = on.init()
    assert (again.producer_id, again.producer_epoch) == (producer[0], producer[1] + 2)
    assert set(on.add(producer).values()) == {ErrorCode.PRODUCER_FENCED}


def test_an_idle_id_is_forgotten() -> None:
    config = TransactionConfig(expiration_ms=5000, expiration_check_interval_ms=1000)
    on = scene(config=config)
    assert on.init().error_code is ErrorCode.NONE
    on.cluster.run(4000)
    assert on.described().error_code is ErrorCode.NONE
    on.cluster.run(3000)
    assert on.described().error_code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    on.elect(2)
    assert on.described().error_code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


# --- doors ----------------------------------------------------------------------------------


def test_the_coordinator_is_found_and_its_topic_made() -> None:
    on = scene()
    request = FindCoordinatorRequest(key_type=1, coordinator_keys=(ID,))
    (found,) = on.cluster.call(3, request).coordinators
    assert (found.error_code, found.node_id) == (ErrorCode.NONE, 1)
    on.cluster.delete_topic(TRANSACTIONS_TOPIC)
    on.cluster.holds_controller = True
    (found,) = on.cluster.call(3, request).coordinators
    assert found.error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    asked = [send.body for send, _ in on.cluster.held]
    (topic,) = [body.topics[0] for body in asked if isinstance(body, CreateTopicsRequest)]
    assert (topic.name, topic.num_partitions, topic.replication_factor) == (
        TRANSACTIONS_TOPIC,
        50,
        3,
    )


def test_other_brokers_are_not_the_coordinator() -> None:
    on = scene()
    request = InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=TIMEOUT_MS)
    assert on.cluster.call(2, request).error_code is ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"transaction_timeout_ms": 900_001}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"transaction_timeout_ms": 0}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"producer_id": 7}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_a_producer_asks_for_is_checked(fields: dict[str, Any], error: ErrorCode) -> None:
    on = scene()
    given: dict[str, Any] = {"transactional_id": ID, "transaction_timeout_ms": 1000, **fields}
    assert on.call(InitProducerIdRequest(**given)).error_code is error


def test_older_clients_hear_of_an_invalid_epoch() -> None:
    on = scene()
    producer = on.begun()
    request = on.end_request((producer[0], producer[1] + 5))
    assert on.call(request, api_version=1).error_code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert on.call(request, api_version=2).error_code is ErrorCode.PRODUCER_FENCED


def test_no_partition_is_added_if_one_is_unknown() -> None:
    on = scene()
    answer = on.init()
    producer = (answer.producer_id, answer.producer_epoch)
    errors = on.add(producer, PLACES[0], ("t", 9))
    assert errors == {
        PLACES[0]: ErrorCode.OPERATION_NOT_ATTEMPTED,
        ("t", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert on.described().transaction_state == "Empty"


def test_clients_add_no_internal_topic_but_brokers_do() -> None:
    on = scene()
    answer = on.init()
    producer = (answer.producer_id, answer.producer_epoch)
    internal = ("__consumer_offsets", 0)
    assert on.add(producer, PLACES[0], internal, api_version=3) == {
        PLACES[0]: ErrorCode.OPERATION_NOT_ATTEMPTED,
        internal: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
    assert on.add(producer, PLACES[0], internal) == {
        PLACES[0]: ErrorCode.NONE,
        internal: ErrorCode.NONE,
    }


def test_topics_without_partitions_are_not_answered() -> None:
    on = scene()
    producer = on.begun()
    asked = AddPartitionsToTxnTransaction(
        transactional_id=ID,
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=(AddPartitionsToTxnTopic(name="t", partitions=()),),
    )
    answer = on.call(AddPartitionsToTxnRequest(transactions=(asked,)))
    assert answer.results_by_transaction[0].topic_results == ()


def test_verifying_adds_nothing() -> None:
    on = scene()
    producer = on.begun()
    answer = on.add(producer, PLACES[0], ("__consumer_offsets", 0), verify_only=True)
    assert answer == {
        PLACES[0]: ErrorCode.NONE,
        ("__consumer_offsets", 0): ErrorCode.TRANSACTION_ABORTABLE,
    }


def test_offsets_add_the_partition_of_their_group() -> None:
    on = scene()
    producer = on.begun()
    request = AddOffsetsToTxnRequest(
        transactional_id=ID, producer_id=producer[0], producer_epoch=producer[1], group_id="g"
    )
    assert on.call(request).error_code is ErrorCode.NONE
    assert {topic.topic for topic in on.described().topics} == {"t", "__consumer_offsets"}


def test_offsets_are_added_before_anybody_looked_for_a_group() -> None:
    """kafka-python adds them first; without an answer it never looks for the group either."""
    on = scene(has_groups=False)
    producer = on.begun()
    request = AddOffsetsToTxnRequest(
        transactional_id=ID, producer_id=producer[0], producer_epoch=producer[1], group_id="g"
    )
    assert on.call(request).error_code is ErrorCode.NONE
    by_topic = {topic.topic: topic.partitions for topic in on.described().topics}
    assert by_topic["__consumer_offsets"] == (ord("g") % 50,)
    assert on.end(producer, committed=False).error_code is ErrorCode.NONE
    on.cluster.run(100)
    assert on.described().transaction_state == "CompleteAbort"


def test_transactions_are_listed_by_filters() -> None:
    on = scene()
    producer = on.begun()
    on.cluster.run(500)

    def listed(**filters: Any) -> list[str]:
        answer = on.call(ListTransactionsRequest(**filters))
        assert answer.error_code is ErrorCode.NONE
        return [state.transactional_id for state in answer.transaction_states]

    assert listed() == [ID]
    assert listed(state_filters=("Ongoing",)) == [ID]
    assert listed(state_filters=("Empty",)) == []
    assert listed(producer_id_filters=(producer[0],)) == [ID]
    assert listed(producer_id_filters=(1,)) == []
    assert listed(duration_filter=400) == [ID]
    assert listed(duration_filter=10_000) == []
    running_ms = on.cluster.now_ms - on.described().transaction_start_time_ms
    assert listed(duration_filter=running_ms) == []
    on.cluster.now_ms -= 10_000  # as by the clock of another coordinator
    assert listed() == [ID]
    on.cluster.now_ms += 10_000
    assert listed(transactional_id_pattern="p.y") == [ID]
    assert listed(transactional_id_pattern="p") == []  # the whole id
    answer = on.call(ListTransactionsRequest(state_filters=("Odd", "PrepareEpochFence")))
    assert answer.unknown_state_filters == ("Odd",)
    answer = on.call(ListTransactionsRequest(transactional_id_pattern="("))
    assert answer.error_code is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_what_is_unknown_is_described_as_such() -> None:
    on = scene()
    answer = on.call(DescribeTransactionsRequest(transactional_ids=("", "nobody")))
    assert [state.error_code for state in answer.transaction_states] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    ]
