"""The coordinator where its log is slow, refuses, or moves, and where the version changes."""

import pytest

from broker.config import TransactionConfig
from broker.transactions.transaction_records import decode_change
from broker.transactions.transactions_topic import TRANSACTIONS_TOPIC
from tests.broker.transactions.scenes import ID, PLACES, TIMEOUT_MS, scene
from wire.batch import records_of
from wire.errors import ErrorCode
from wire.messages.producing import InitProducerIdRequest
from wire.metadata_records import FeatureLevelRecord

_LOADED = "transactions-loaded"
COMMITTED = {(place, True) for place in PLACES}
ABORTED = {(place, False) for place in PLACES}


@pytest.mark.parametrize(("version", "value_version"), [(0, 0), (1, 1), (2, 1)])
def test_a_cluster_of_version_0_writes_records_that_each_kafka_reads(
    version: int, value_version: int
) -> None:
    on = scene(version=version)
    on.begun()
    log = on.cluster.disks[1].logs[f"{TRANSACTIONS_TOPIC}-0"]
    values = [record.value for batch in log.batches for record in records_of(batch)]
    assert len(values) == 2
    assert {value[:2] for value in values if value} == {value_version.to_bytes(2)}


def test_completion_that_takes_its_time_is_written_once() -> None:
    on = scene()
    producer = on.begun()
    on.holds = True
    assert on.end(producer).error_code is ErrorCode.NONE
    on.cluster.cut |= {(2, 1), (3, 1)}
    on.cluster.run(600)  # nobody fetches
    on.release()
    on.cluster.run(500)
    log = on.cluster.disks[1].logs[f"{TRANSACTIONS_TOPIC}-0"]
    changes = [decode_change(record) for batch in log.batches for record in records_of(batch)]
    states = [each.transaction.state.label for each in changes if each and each.transaction]
    assert states == ["Empty", "Ongoing", "PrepareCommit", "CompleteCommit"]


def test_a_transaction_that_is_too_large_is_not_opened_and_one_that_is_open_can_end() -> None:
    """With the last partition its record may have just fitted, and its end has a few bytes more."""
    on = scene()
    producer = on.begun()
    on.cluster.configure(TRANSACTIONS_TOPIC, "max.message.bytes", "200")
    on.cluster.run(100)
    on.cluster.create_topic("x" * 200, (1, 2, 3))
    refused = on.add(producer, ("x" * 200, 0))
    assert set(refused.values()) == {ErrorCode.UNKNOWN_SERVER_ERROR}
    on.cluster.configure(TRANSACTIONS_TOPIC, "max.message.bytes", "100")
    on.cluster.run(100)
    assert on.end(producer).error_code is ErrorCode.NONE
    on.cluster.run(300)
    assert on.markers() == COMMITTED
    assert on.described().transaction_state == "CompleteCommit"


@pytest.mark.parametrize("moves", [False, True], ids=["here", "moves"])
@pytest.mark.parametrize(("before", "after"), [(0, 2), (2, 0)])
@pytest.mark.parametrize(("client", "raises"), [(4, 0), (5, 1), (None, 1)])
def test_a_transaction_ends_though_the_version_has_changed_meanwhile(
    client: int | None, raises: int, before: int, after: int, moves: bool
) -> None:
    """It is ended by a client of that version of EndTxn, or as its time is up."""
    on = scene(version=before)
    producer_id, epoch = producer = on.begun()
    level = FeatureLevelRecord(name="transaction.version", feature_level=after)
    on.cluster.write(level)
    on.cluster.settle()
    if moves:
        on.elect(2)
    if client is None:
        on.cluster.run(TIMEOUT_MS)
    else:
        told = on.call(on.end_request(producer), api_version=client)
        assert told.error_code is ErrorCode.NONE
    on.cluster.run(300)
    assert on.markers() == (ABORTED if client is None else COMMITTED)
    assert {each.producer for each in on.told} == {(producer_id, epoch + raises)}
    assert on.init().producer_epoch == epoch + raises + 1


def test_an_abort_that_the_log_refuses_is_tried_again() -> None:
    on = scene(config=TransactionConfig(time_out_check_interval_ms=5000))
    on.begun()
    on.refuse_writes()
    on.cluster.run(TIMEOUT_MS + 1000)
    on.take_writes()
    assert on.described().transaction_state == "Ongoing"
    on.cluster.run(5000)
    assert on.markers() == ABORTED


def test_a_step_in_flight_is_refused_when_the_coordinator_moves() -> None:
    on = scene()
    on.cluster.cut |= {(2, 1), (3, 1)}
    on.cluster.run(600)  # nobody fetches
    request = InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=TIMEOUT_MS)
    token = on.cluster.ask(1, request)
    on.elect(2)
    assert on.cluster.answer(token).error_code is ErrorCode.NOT_COORDINATOR


def test_a_coordinator_may_move_before_it_has_loaded() -> None:
    on = scene()
    on.init()
    on.cluster.cut |= {(1, 2), (3, 2)}  # nobody fetches from the next one
    on.elect(2)
    assert on.init().error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    on.elect(3)
    assert on.init().producer_epoch == 1


def test_a_new_id_is_refused_when_the_controller_gives_none_in_time() -> None:
    on = scene()
    on.cluster.holds_controller = True
    request = InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=TIMEOUT_MS)
    token = on.cluster.ask(1, request)
    on.cluster.run(31_000)
    assert on.cluster.answer(token).error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_whatever_is_asked_while_markers_are_written_comes_too_early() -> None:
    on = scene()
    producer = on.begun()
    on.holds = True
    assert on.end(producer).error_code is ErrorCode.NONE
    assert on.end(producer, committed=False).error_code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert on.init().error_code is ErrorCode.CONCURRENT_TRANSACTIONS


def test_a_coordinator_says_how_many_transactions_it_has_loaded() -> None:
    on = scene()
    on.init()
    on.elect(2)
    on.elect(3)
    traces = [(node, trace) for node, trace in on.cluster.traces]
    loaded = [(node, dict(each.fields)) for node, each in traces if each.event == _LOADED]
    assert [(node, fields["count"]) for node, fields in loaded] == [(2, 1), (3, 1)]


def test_an_id_that_is_about_to_be_used_again_is_not_forgotten() -> None:
    """A tombstone behind the step that is in flight would take it."""
    config = TransactionConfig(expiration_ms=5000, expiration_check_interval_ms=1000)
    on = scene(config=config)
    before = on.init()
    on.cluster.run(4000)
    on.cluster.cut |= {(2, 1), (3, 1)}
    on.cluster.run(500)  # nobody fetches
    request = InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=TIMEOUT_MS)
    token = on.cluster.ask(1, request)
    on.cluster.run(1800)
    on.cluster.cut.clear()
    on.cluster.run(1000)
    assert on.cluster.answer(token).producer_epoch == before.producer_epoch + 1
    assert on.described().error_code is ErrorCode.NONE
