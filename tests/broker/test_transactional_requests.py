"""Transactions in partitions, over brokers: Produce, WriteTxnMarkers, Fetch, ListOffsets.

The coordinator is scripted: what it is asked is kept until the test answers.
"""

import pytest

from broker.requests.produced_transactions import unverified
from broker.verifying import TransactionAsked
from quorum.core.producers import AbortedTransaction
from tests.broker.brokers import batch_of, produce_request
from tests.broker.transactional_brokers import (
    PLACE,
    READ_COMMITTED,
    Cluster,
    marker,
    transactional,
)
from wire.batch import read_header
from wire.capabilities import lacking
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages import fetching
from wire.messages.fetching import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from wire.messages.producing import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from wire.messages.transactions import (
    ActiveProducer,
    DescribedProducers,
    DescribeProducersRequest,
    DescribeProducersTopic,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from wire.transaction_markers import Marker, build_marker


@pytest.fixture
def alone() -> Cluster:
    return Cluster(1)


@pytest.fixture
def three() -> Cluster:
    return Cluster(3)


# --- Produce --------------------------------------------------------------------------------


def test_the_first_batch_waits_for_the_coordinator_and_the_next_does_not(alone: Cluster) -> None:
    token = alone.send(transactional())
    assert token not in alone.answers
    assert alone.coordinator.asked == [
        TransactionAsked(
            transactional_id="tx", producer_id=7, producer_epoch=0, places=(PLACE,), adds=True
        )
    ]
    alone.coordinator.answer(alone)
    assert alone.produced(token).base_offset == 0
    token = alone.send(transactional(sequence=1))
    assert alone.produced(token).base_offset == 1


def test_older_producers_have_added_the_partition_before(alone: Cluster) -> None:
    alone.send(transactional(), api_version=11)
    assert not alone.coordinator.asked[0].adds


def test_a_marker_that_is_written_meanwhile_voids_the_verification(alone: Cluster) -> None:
    token = alone.send(transactional())
    assert alone.end(epoch=0, is_commit=False) is ErrorCode.NONE
    alone.coordinator.answer(alone)
    assert alone.produced(token).error_code is ErrorCode.INVALID_TXN_STATE
    assert alone.log().last_stable_offset == 1, "nothing hangs"


def test_leadership_that_is_lost_meanwhile_is_told(three: Cluster) -> None:
    token = three.send(transactional())
    three.change("t", 0, leader=2)
    three.coordinator.answer(three)
    assert three.produced(token).error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_another_epoch_of_the_same_leader_voids_the_verification(three: Cluster) -> None:
    token = three.send(transactional())
    three.change("t", 0, leader=2)
    three.change("t", 0, leader=1)
    three.coordinator.answer(three)
    assert three.produced(token).error_code is ErrorCode.INVALID_TXN_STATE


def test_what_has_timed_out_is_not_written_when_the_coordinator_agrees(alone: Cluster) -> None:
    token = alone.send(transactional())
    alone.run(1100)
    assert alone.produced(token).error_code is ErrorCode.REQUEST_TIMED_OUT
    alone.coordinator.answer(alone)
    assert alone.log().end_offset == 0


def test_batches_that_were_sent_together_are_written_in_their_order(alone: Cluster) -> None:
    first, second = alone.send(transactional()), alone.send(transactional(sequence=1))
    alone.coordinator.answer(alone, at=1)
    assert second not in alone.answers  # its turn comes behind the first
    alone.coordinator.answer(alone)
    assert [alone.produced(token).base_offset for token in (first, second)] == [0, 1]


def test_a_batch_that_need_not_wait_stays_behind_one_that_does(alone: Cluster) -> None:
    first, second = alone.send(transactional()), alone.send(transactional(sequence=1))
    alone.coordinator.answer(alone)
    third = alone.send(transactional(sequence=2))  # the first has begun the transaction
    assert (first in alone.answers, third in alone.answers) == (True, False)
    alone.coordinator.answer(alone)
    assert [alone.produced(token).base_offset for token in (second, third)] == [1, 2]


def test_the_partitions_of_a_request_are_verified_together(alone: Cluster) -> None:
    alone.create_topic("u", (1,), (1,))
    data = PartitionProduceData(index=1, records=transactional())
    body = replace(produce_request("t", 0, transactional()), transactional_id="tx")
    body = replace(
        body, topic_data=(*body.topic_data, TopicProduceData(name="u", partition_data=(data,)))
    )
    token = alone.ask(1, body)
    assert alone.coordinator.asked[0].places == (PLACE, ("u", 1))
    alone.coordinator._waiting.pop()(
        {PLACE: ErrorCode.NONE, ("u", 1): ErrorCode.INVALID_TXN_STATE}, alone.now_ms
    )
    alone.settle()
    errors = [each.partition_responses[0].error_code for each in alone.answer(token).responses]
    assert errors == [ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE]


def refused(cluster: Cluster, body: ProduceRequest) -> PartitionProduceResponse:
    assert not cluster.coordinator.asked
    return cluster.produced(cluster.ask(1, body))


def test_requests_that_are_of_no_one_transaction_are_refused(alone: Cluster) -> None:
    nameless = produce_request("t", 0, transactional())
    error = refused(alone, nameless).error_code
    assert error is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    control = build_marker(Marker(7, 0, True, 0), timestamp_ms=0)
    error = refused(alone, produce_request("t", 0, control)).error_code
    assert error is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    other = PartitionProduceData(index=0, records=transactional(8))
    named = replace(
        nameless,
        transactional_id="tx",
        topic_data=(*nameless.topic_data, TopicProduceData(name="u", partition_data=(other,))),
    )
    alone.create_topic("u", (1,))
    assert refused(alone, named).error_code is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert alone.log().end_offset == 0


def test_whose_batches_for_unknown_partitions_are_does_not_matter(alone: Cluster) -> None:
    known = produce_request("t", 0, transactional())
    other = PartitionProduceData(index=0, records=transactional(8))
    unknown = TopicProduceData(name="none", partition_data=(other,))
    body = replace(known, transactional_id="tx", topic_data=(*known.topic_data, unknown))
    token = alone.ask(1, body)
    alone.coordinator.answer(alone, ErrorCode.INVALID_TXN_STATE)
    errors = [each.partition_responses[0].error_code for each in alone.answer(token).responses]
    assert errors == [ErrorCode.INVALID_TXN_STATE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_batch_outside_of_the_transaction_is_refused_while_it_goes_on(alone: Cluster) -> None:
    alone.begin()
    plain = batch_of(b"x", producer_id=7, producer_epoch=0, base_sequence=1)
    token = alone.produce(1, "t", 0, plain)
    assert alone.produced(token).error_code is ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize(
    ("version", "told", "error"),
    [
        (12, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
        (12, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
        (11, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
        (10, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE),
        (12, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS),
        (11, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_ENOUGH_REPLICAS),
        (12, ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_ENOUGH_REPLICAS),
        (12, ErrorCode.NETWORK_EXCEPTION, ErrorCode.NOT_ENOUGH_REPLICAS),
        (12, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_ENOUGH_REPLICAS),
        (12, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_ENOUGH_REPLICAS),
        (12, ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_what_the_coordinator_says_in_words_of_producers(
    version: int, told: ErrorCode, error: ErrorCode
) -> None:
    """As Kafka's ReplicaManager.handleProduceAppend."""
    assert unverified(told, lacking(ProduceRequest, version)).error is error


def test_the_coordinator_is_asked_again_while_it_ends_the_transaction_before(
    alone: Cluster,
) -> None:
    token = alone.send(transactional())
    for _ in range(3):
        alone.coordinator.answer(alone, ErrorCode.CONCURRENT_TRANSACTIONS)
        assert not alone.coordinator.asked
        alone.run(20)
    alone.coordinator.answer(alone)
    assert alone.produced(token).error_code is ErrorCode.NONE


def test_a_producer_is_told_when_that_takes_too_long(alone: Cluster) -> None:
    token = alone.send(transactional())
    times = 0
    while token not in alone.answers:
        alone.coordinator.answer(alone, ErrorCode.CONCURRENT_TRANSACTIONS)
        alone.run(20)
        times += 1
    assert alone.produced(token).error_code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert times == 6


# --- WriteTxnMarkers ------------------------------------------------------------------------


def test_a_marker_is_answered_when_all_that_are_in_sync_have_it(three: Cluster) -> None:
    three.begin()
    three.cut |= {(2, 1), (3, 1)}
    three.run(1000)
    token = three.ask(1, marker())
    three.run(100)
    assert token not in three.answers
    assert three.log().last_stable_offset == 0
    three.cut.clear()
    three.run(2000)
    assert three.marked(token) is ErrorCode.NONE
    assert [three.log(each).last_stable_offset for each in (1, 2, 3)] == [2, 2, 2]


def test_a_marker_for_another_leader_or_no_topic_is_refused(three: Cluster) -> None:
    assert three.end(node_id=2) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    topic = WritableTxnMarkerTopic(name="none", partition_indexes=(0,))
    (asked,) = marker().markers
    token = three.ask(1, WriteTxnMarkersRequest(markers=(replace(asked, topics=(topic,)),)))
    assert three.marked(token) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_marker_that_is_not_committed_is_answered_in_time_and_when_its_leader_goes(
    three: Cluster,
) -> None:
    three.begin()
    three.cut |= {(2, 1), (3, 1)}
    three.run(1000)
    first = three.ask(1, marker())
    three.run(40_000)
    assert three.marked(first) is ErrorCode.REQUEST_TIMED_OUT
    second = three.ask(1, marker())
    three.change("t", 0, leader=2)
    assert three.marked(second) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_marker_that_is_cut_off_is_written_again_by_the_next_leader(three: Cluster) -> None:
    """With transaction.version 2: the epoch that the first has raised must be as it was."""
    three.begin()
    three.cut |= {(2, 1), (3, 1)}
    three.run(1000)
    lost = three.ask(1, marker(is_commit=True))
    assert three.log().end_offset == 2
    three.change("t", 0, leader=2, isr=(2, 3))
    three.cut.clear()
    three.run(2000)
    assert three.marked(lost) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert three.log().producers.entry(7).open_since == 0
    three.change("t", 0, leader=1, isr=(1, 2, 3))
    assert three.end(is_commit=False) is ErrorCode.NONE
    for node_id in (1, 2, 3):
        three.run(1000)
        aborted = three.disks[node_id].logs["t-0"].aborted
        assert aborted == [AbortedTransaction(7, 0, 1, last_stable_offset=2)], node_id


def test_a_committed_marker_that_an_unclean_leader_never_had_leaves_the_transaction_open(
    three: Cluster,
) -> None:
    """Below its high watermark a replica knows of no transaction that has ended. It reads them."""
    three.begin(8)
    three.end(8)
    three.begin()
    three.cut = {(2, 1)}
    three.run(1000)
    three.ask(1, marker())
    three.run(60_000)
    assert three.log().high_watermark == 4, "broker 2 has left the ISR"
    three.send(transactional(7, epoch=1))
    three.coordinator.answer(three)
    three.run(500)
    assert latest(three, READ_COMMITTED) == 4
    three.cut.clear()
    three.rewrite_ms = 100
    three.change("t", 0, leader=2, isr=(2,))
    three.run(50)
    assert three.log().is_rewriting
    assert three.log().last_stable_offset == 0, "nothing is certain"
    three.run(3000)
    three.change("t", 0, leader=1, isr=(1, 2, 3))
    three.run(500)
    assert latest(three, READ_COMMITTED) == 2
    assert three.end(is_commit=False) is ErrorCode.NONE
    data = three.fetched(three.fetch(0))
    assert data.last_stable_offset == 4
    assert data.aborted_transactions == (
        fetching.AbortedTransaction(producer_id=7, first_offset=2),
    )


def test_fenced_coordinators_and_producers_write_no_marker(alone: Cluster) -> None:
    alone.begin()
    assert alone.end(coordinator_epoch=3) is ErrorCode.NONE
    assert alone.end(epoch=2, coordinator_epoch=2) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert alone.end(epoch=0, coordinator_epoch=3) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert alone.end(coordinator_epoch=3) is ErrorCode.NONE, "repeated"


def test_a_marker_of_no_producer_or_epoch_fails_all_of_its_request(alone: Cluster) -> None:
    good, broken = marker().markers[0], marker(epoch=-1).markers[0]
    token = alone.ask(1, WriteTxnMarkersRequest(markers=(good, broken)))
    assert [each.topics[0].partitions[0].error_code for each in alone.answer(token).markers] == [
        ErrorCode.UNKNOWN_SERVER_ERROR
    ] * 2
    assert alone.end(-1) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert alone.log().end_offset == 0
    nowhere = replace(broken, topics=(WritableTxnMarkerTopic(name="none", partition_indexes=(0,)),))
    token = alone.ask(1, WriteTxnMarkersRequest(markers=(nowhere,)))
    assert alone.marked(token) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_marker_has_the_timestamps_of_its_topic_and_is_not_compressed(alone: Cluster) -> None:
    alone.configure("t", "message.timestamp.type", "LogAppendTime")
    alone.configure("t", "compression.type", "gzip")
    assert alone.end() is ErrorCode.NONE
    header = read_header(alone.fetched(alone.fetch(0)).records or b"")
    assert header.attributes == 0b111000


# --- readers --------------------------------------------------------------------------------


def test_readers_of_committed_records_wait_for_the_marker(alone: Cluster) -> None:
    alone.begin()
    waits = alone.fetch(0, max_wait_ms=60_000)
    assert waits not in alone.answers
    data = alone.fetched(alone.fetch(0, level=0))
    assert (data.high_watermark, data.last_stable_offset) == (1, 0)
    assert data.records
    assert data.aborted_transactions is None
    alone.end(is_commit=False)
    data = alone.fetched(waits)
    assert (data.high_watermark, data.last_stable_offset) == (2, 2)
    assert data.records
    assert data.aborted_transactions == (
        fetching.AbortedTransaction(producer_id=7, first_offset=0),
    )


def test_records_of_others_behind_an_open_transaction_wait_too(alone: Cluster) -> None:
    alone.begin(7)
    alone.begin(8)
    alone.end(8)
    assert alone.fetched(alone.fetch(0)).last_stable_offset == 0
    alone.end(7)
    data = alone.fetched(alone.fetch(0))
    assert data.last_stable_offset == 4
    assert data.aborted_transactions == ()


def latest(cluster: Cluster, isolation_level: int, timestamp: int = -1) -> int:
    asked = ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=timestamp)
    body = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=(ListOffsetsTopic(name="t", partitions=(asked,)),),
    )
    offset: int = cluster.call(1, body).topics[0].partitions[0].offset
    return offset


def test_the_latest_offset_of_readers_of_committed_records_is_the_last_stable_one(
    alone: Cluster,
) -> None:
    alone.begin()
    assert [latest(alone, level) for level in (0, READ_COMMITTED)] == [1, 0]
    assert [latest(alone, level, timestamp=0) for level in (0, READ_COMMITTED)] == [0, -1]
    alone.end()
    assert [latest(alone, level) for level in (0, READ_COMMITTED)] == [2, 2]
    assert latest(alone, READ_COMMITTED, timestamp=0) == 0


def test_transactions_are_known_after_a_restart(alone: Cluster) -> None:
    alone.begin(7)
    alone.begin(8)
    alone.end(8, is_commit=False)
    alone.kill(1)
    alone.start(1)
    alone.run(1000)
    assert alone.log().last_stable_offset == 0
    assert alone.end(7) is ErrorCode.NONE
    assert alone.log().last_stable_offset == alone.log().end_offset == 4


def test_logs_are_cleaned_below_the_last_stable_offset(alone: Cluster) -> None:
    alone.configure("t", "cleanup.policy", "compact")
    alone.begin(7)
    alone.begin(8)
    alone.end(7)
    alone.run(20_000)
    order = alone.disks[1].cleaned[-1].order
    assert order.end_offset == 1
    assert order.last_batches == {(8, 1)}
    assert order.last_epochs == {(7, 1)}


def test_what_an_orderly_stop_notes_is_all_that_has_to_be_known(alone: Cluster) -> None:
    """An entry with something earlier would not fit into the file, and the log would be read."""
    alone.begin(7)
    alone.begin(8)
    alone.end(8)
    assert alone.log().producers.entry(8).earlier
    alone.log().save_producers()
    alone.settle()
    open_one, ended = alone.disks[1].saved_producers["t-0"].producers
    assert (open_one.open_since, ended.producer_epoch) == (0, 1)
    assert not ended.earlier
    assert not ended.transactions


def test_producers_are_described(alone: Cluster) -> None:
    alone.begin(7)
    alone.begin(8)
    alone.end(8, coordinator_epoch=5)
    asked = DescribeProducersTopic(name="t", partition_indexes=(0, 1))
    none, odd = (
        DescribeProducersTopic(name=name, partition_indexes=(0,)) for name in ("none", "a b")
    )
    body = DescribeProducersRequest(topics=(asked, none, odd))
    topic, *refused = alone.call(1, body).topics
    told = [(each.partitions[0].error_code, each.partitions[0].error_message) for each in refused]
    assert told[0] == (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "This server does not host this topic-partition.",
    )
    assert told[1][0] is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert "'a b'" in told[1][1]
    known, unknown = topic.partitions
    assert unknown == DescribedProducers(
        partition_index=1, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )
    assert known.active_producers == (
        ActiveProducer(
            producer_id=7,
            producer_epoch=0,
            last_sequence=0,
            last_timestamp=1_000_000,
            current_txn_start_offset=0,
        ),
        ActiveProducer(
            producer_id=8,
            producer_epoch=1,
            last_timestamp=known.active_producers[1].last_timestamp,
            coordinator_epoch=5,
        ),
    )
    assert known.active_producers[1].last_timestamp > 1_000_000


def test_a_follower_describes_the_producers_that_it_knows() -> None:
    """As Kafka's: `kafka-transactions find-hanging --broker-id` asks a broker of all it has."""
    cluster = Cluster(2)
    cluster.begin(7)
    asked = DescribeProducersTopic(name="t", partition_indexes=(0,))
    request = DescribeProducersRequest(topics=(asked,))
    leader, follower = (cluster.call(node, request).topics[0].partitions[0] for node in (1, 2))
    assert leader == follower
    assert [each.producer_id for each in leader.active_producers] == [7]
