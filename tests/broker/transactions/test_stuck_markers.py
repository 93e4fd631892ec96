"""What clients can have written, and what is left of an earlier coordinator, stops nothing."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from broker.transactions.markers import Markers, Unwritten
from broker.transactions.transaction import Transaction, TransactionState
from broker.transactions.transaction_coordinator import Contents
from broker.transactions.transaction_records import TransactionChange, encode_change
from quorum.core.effects import Event, Response
from quorum.core.types import Endpoint, Token
from wire.batch import Record, build_batch, read_header
from wire.errors import ErrorCode
from wire.messages.transactions import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from wire.transaction_markers import Marker, build_marker

DEAD = TransactionState.DEAD


def prepared(id_: str, producer_id: int, *, count: int = 1) -> Transaction:
    return Transaction(
        id=id_,
        producer_id=producer_id,
        producer_epoch=1,
        timeout_ms=1000,
        state=TransactionState.PREPARE_COMMIT,
        places=frozenset(("t", index) for index in range(count)),
        update_ms=0,
    )


def test_a_marker_in_the_log_of_transactions_does_not_stop_their_coordinator() -> None:
    """Whoever may write there can add a partition of `__transaction_state` to a transaction."""
    change = TransactionChange(transactional_id="pay", transaction=prepared("pay", 7))
    kept = build_batch([encode_change(change)], timestamp_ms=0)
    marker = build_marker(Marker(7, 1, True, 0), timestamp_ms=0)
    contents = Contents()
    contents.take([(read_header(batch), batch) for batch in (kept, marker)])
    assert set(contents.transactions) == {"pay"}


def test_a_transaction_that_is_written_as_dead_is_forgotten() -> None:
    """Kafka knows the state, and writes a tombstone instead. No step leads out of it."""
    batches = []
    for transaction in (prepared("pay", 7), replace(prepared("pay", 7), state=DEAD)):
        change = TransactionChange(transactional_id="pay", transaction=transaction)
        batch = build_batch([encode_change(change)], timestamp_ms=0)
        batches.append((read_header(batch), batch))
    contents = Contents()
    for each in batches:
        contents.take([each])
    assert contents.transactions == {}


def test_records_of_kinds_that_nobody_knows_are_passed_over() -> None:
    batch = build_batch([Record(key=b"\0\7pay", value=b"x")], timestamp_ms=0)
    contents = Contents()
    contents.take([(read_header(batch), batch)])
    assert contents.transactions == {}


class Leaders:
    """All partitions are led by broker 2, which takes its time. Plays cluster and outbox."""

    config = SimpleNamespace(inter_broker_listener_name="x")

    def __init__(self) -> None:
        self.asked: list[tuple[Any, Any]] = []
        self.deleted: set[int] = set()
        self.is_fenced = False
        self.leader_id = 2
        self.markers = Markers(cluster=cast(Any, self), outbox=cast(Any, self), timeout_ms=1000)

    def topic_with(self, _name: str, index: int) -> int | None:
        return None if index in self.deleted else 1

    def leader_of(self, *_place: object) -> tuple[int, int]:
        return (self.leader_id, 0)

    def endpoint(self, node_id: int, _listener: str) -> Endpoint | None:
        return None if self.is_fenced else Endpoint(node_id, "h", 1)

    def ask(self, _endpoint: Endpoint, body: object, *, answered: Any, **_rest: object) -> None:
        self.asked.append((body, answered))

    def start(self, id_: str, producer_id: int, *, count: int = 1) -> None:
        transaction = prepared(id_, producer_id, count=count)
        unwritten = Unwritten(
            transaction, index=0, coordinator_epoch=0, written=lambda _now_ms: None
        )
        self.markers.start(unwritten, 0)

    def fail(self) -> None:
        self.asked.pop(0)[1](cast(Event, None), 0)

    def trace(self, event: str, **_fields: object) -> None:
        assert event == "marker-fenced"

    def take(self, *errors: ErrorCode) -> None:
        """The first request is answered, partition by partition."""
        body, answered = self.asked.pop(0)
        partitions = tuple(
            WritableTxnMarkerPartitionResult(partition_index=index, error_code=error)
            for index, error in enumerate(errors)
        )
        marker = WritableTxnMarkerResult(
            producer_id=body.markers[0].producer_id,
            topics=(WritableTxnMarkerTopicResult(name="t", partitions=partitions),),
        )
        response = WriteTxnMarkersResponse(markers=(marker,))
        answered(Response(token=Token("broker", 1), body=response), 0)


def test_what_a_coordinator_left_in_the_queue_does_not_hold_up_the_next() -> None:
    """It is elected again while a slow leader has as many requests as it may have."""
    leaders = Leaders()
    for producer_id in range(4):
        leaders.start(f"busy-{producer_id}", producer_id)
    leaders.start("pay", 7)
    leaders.markers.stop(0)
    leaders.start("pay", 7)
    leaders.fail()
    assert leaders.asked[-1][0].markers[0].producer_id == 7


def test_what_was_queued_for_a_transaction_that_is_over_is_not_sent() -> None:
    leaders = Leaders()
    for producer_id in range(5):
        leaders.start(f"busy-{producer_id}", producer_id)
    leaders.markers.stop(0)
    leaders.start("pay", 7)
    leaders.fail()
    assert [marker.producer_id for marker in leaders.asked[-1][0].markers] == [7]


def test_a_coordinator_that_one_leader_has_fenced_asks_no_other_again() -> None:
    leaders = Leaders()
    leaders.start("pay", 7, count=2)
    leaders.take(ErrorCode.TRANSACTION_COORDINATOR_FENCED, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert leaders.markers.deadline_ms() is None


def test_a_coordinator_that_is_elsewhere_tells_nobody_any_more() -> None:
    leaders = Leaders()
    leaders.start("pay", 7, count=2)
    leaders.take(ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert leaders.markers.deadline_ms() == 50
    leaders.markers.stop(0)
    leaders.markers.tick(50)
    assert leaders.asked == []


def test_nothing_is_kept_of_what_has_been_told() -> None:
    leaders = Leaders()
    leaders.start("pay", 7, count=2)
    leaders.take(ErrorCode.NONE, ErrorCode.NONE)
    leaders.start("empty", 8, count=0)
    assert leaders.markers._unwritten == {0: {}}
    assert leaders.markers.deadline_ms() is None


def test_a_marker_has_the_epochs_of_its_producer_and_of_the_coordinator() -> None:
    leaders = Leaders()
    transaction = replace(prepared("pay", 7), producer_epoch=4, client_version=2)
    unwritten = Unwritten(transaction, 0, coordinator_epoch=3, written=lambda _now_ms: None)
    leaders.markers.start(unwritten, 0)
    (marker,) = leaders.asked[0][0].markers
    assert (marker.producer_id, marker.producer_epoch) == (7, 4)
    assert (marker.coordinator_epoch, marker.transaction_version) == (3, 2)
    assert marker.transaction_result


def test_a_leader_that_is_fenced_is_told_when_it_is_back() -> None:
    leaders = Leaders()
    leaders.is_fenced = True
    leaders.start("pay", 7)
    due_ms = leaders.markers.deadline_ms()
    assert (leaders.asked, due_ms) == ([], 50)
    leaders.is_fenced = False
    leaders.markers.tick(49)
    assert leaders.asked == []
    leaders.markers.tick(50)
    assert leaders.asked[0][0].markers[0].producer_id == 7


def test_a_partition_without_a_leader_is_looked_at_until_it_has_one() -> None:
    leaders = Leaders()
    leaders.leader_id = -1
    leaders.start("pay", 7)
    for now_ms in (50, 100):
        assert (leaders.asked, leaders.markers.deadline_ms()) == ([], now_ms)
        leaders.markers.tick(now_ms)
    leaders.leader_id = 2
    leaders.markers.tick(150)
    assert len(leaders.asked) == 1


def test_a_partition_that_is_deleted_is_not_looked_at_again() -> None:
    leaders = Leaders()
    leaders.deleted = {0}
    leaders.start("pay", 7, count=2)
    assert leaders.asked[0][0].markers[0].topics[0].partition_indexes == (1,)
    assert leaders.markers.deadline_ms() is None


def test_a_request_tells_a_leader_of_so_many_partitions_at_most() -> None:
    """A transaction of thousands would else become a request that no leader reads."""
    leaders = Leaders()
    leaders.start("pay", 7, count=2500)
    counts = [
        sum(len(topic.partition_indexes) for marker in body.markers for topic in marker.topics)
        for body, _ in leaders.asked
    ]
    assert counts == [1000, 1000, 500]
