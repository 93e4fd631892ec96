"""A transaction over real leaders, while a broker fails at every moment of its end.

The producer does as clients do: it asks for the end until it is told, of whoever coordinates then.
"""

import pytest

from broker.transactions.transactions_topic import TRANSACTIONS_TOPIC
from tests.broker.brokers import Brokers, batch_of
from tests.broker.transactions.scenes import ID, TIMEOUT_MS, Scene
from wire import metadata_records as records
from wire.batch import read_header
from wire.errors import ErrorCode
from wire.messages.producing import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.transaction_markers import read_marker

MOMENTS_MS = range(0, 60, 5)  # a message takes 5 ms, and all is over after 50
PLACES = (("t", 0), ("t", 1))


def running() -> Scene:
    cluster = Brokers(3, replica_lag_time_max_ms=1000)
    cluster.write(records.FeatureLevelRecord(name="transaction.version", feature_level=2))
    cluster.start()
    cluster.create_topic("t", (2, 3, 1), (3, 2, 1))
    cluster.create_topic(TRANSACTIONS_TOPIC, (1, 2, 3))
    cluster.run(600)
    return Scene(cluster)


def leader(cluster: Brokers, topic: str, index: int) -> int:
    return cluster.states[(cluster.topics[topic], index)].leader


def write(on: Scene, producer: tuple[int, int], value: bytes, sequence: int = 0) -> None:
    """To both partitions, which their leaders add."""
    for topic, index in PLACES:
        batch = batch_of(
            value,
            is_transactional=True,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=sequence,
        )
        data = PartitionProduceData(index=index, records=batch)
        request = ProduceRequest(
            transactional_id=ID,
            acks=-1,
            timeout_ms=1000,
            topic_data=(TopicProduceData(name=topic, partition_data=(data,)),),
        )
        token = on.cluster.ask(leader(on.cluster, topic, index), request)
        on.cluster.run(500)
        assert on.cluster.produced(token).error_code is ErrorCode.NONE, on.cluster.produced(token)


def initialized(on: Scene) -> tuple[int, int]:
    answer = on.init()
    on.cluster.run(100)
    return answer.producer_id, answer.producer_epoch


def fail(on: Scene, node_id: int) -> None:
    """The broker is gone, and another leads what it led."""
    on.cluster.kill(node_id)
    for name, topic_id in on.cluster.topics.items():
        for topic, index in tuple(on.cluster.states):
            if topic == topic_id:
                state = on.cluster.states[(topic, index)]
                isr = tuple(each for each in state.isr if each != node_id)
                leads = state.leader == node_id
                on.cluster.change(name, index, isr=isr, leader=isr[0] if leads else -2)


def end(on: Scene, producer: tuple[int, int], *, committed: bool) -> tuple[int, int]:
    for _ in range(50):
        token = on.cluster.ask(on.coordinator, on.end_request(producer, committed=committed))
        on.cluster.run(200)
        answer = on.cluster.answer(token)
        if answer.error_code is ErrorCode.NONE:
            return answer.producer_id, answer.producer_epoch
        assert answer.error_code in (
            ErrorCode.CONCURRENT_TRANSACTIONS,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ErrorCode.NOT_COORDINATOR,
        ), answer
    raise AssertionError("it never ended")


def stable(on: Scene, topic: str, index: int) -> bool:
    """Nothing holds readers of committed records back."""
    partition = on.cluster.partition(leader(on.cluster, topic, index), topic, index)
    log = partition.open_log
    return log.last_stable_offset == log.high_watermark == log.end_offset


def ends(on: Scene, topic: str, index: int, producer: tuple[int, int]) -> set[bool]:
    """What the markers of the producer's transaction say: is it committed?"""
    log = on.cluster.disks[leader(on.cluster, topic, index)].logs[f"{topic}-{index}"]
    found = [read_marker(batch, read_header(batch)) for batch in log.batches]
    epochs = (producer[1], producer[1] + 1)
    return {marker.is_commit for marker in found if marker and marker.producer_epoch in epochs}


@pytest.mark.parametrize("node_id", [1, 2])
@pytest.mark.parametrize("moment_ms", MOMENTS_MS)
def test_a_transaction_ends_as_it_was_told_to(moment_ms: int, node_id: int) -> None:
    """Broker 1 coordinates, and 2 leads a partition."""
    committed = moment_ms % 2 == 0
    on = running()
    producer = initialized(on)
    write(on, producer, b"first")
    on.cluster.latency_ms = lambda: 5
    on.cluster.ask(1, on.end_request(producer, committed=committed))
    on.cluster.run(moment_ms)
    fail(on, node_id)
    on.cluster.run(2000)
    following = end(on, producer, committed=committed)
    assert following == (producer[0], producer[1] + 1)
    on.cluster.run(2000)
    for topic, index in PLACES:
        assert stable(on, topic, index)
        assert ends(on, topic, index, producer) == {committed}
    write(on, following, b"second")
    end(on, following, committed=True)
    on.cluster.run(1000)
    assert all(stable(on, *place) for place in PLACES)


@pytest.mark.parametrize("moment_ms", MOMENTS_MS[::2])
def test_a_transaction_without_its_producer_is_aborted(moment_ms: int) -> None:
    on = running()
    producer = initialized(on)
    write(on, producer, b"lost")
    on.cluster.latency_ms = lambda: 5
    on.cluster.run(TIMEOUT_MS - 500 - 30 + moment_ms)
    fail(on, 1)
    on.cluster.run(5000)
    assert all(stable(on, *place) for place in PLACES)
    assert all(ends(on, *place, producer) == {False} for place in PLACES)


def test_the_next_transaction_may_begin_before_the_marker_of_the_last_arrives() -> None:
    """Its first batch is verified again once the coordinator has ended the last one (KIP-890)."""
    on = running()
    producer = initialized(on)
    write(on, producer, b"first")
    on.cluster.latency_ms = lambda: 5
    token = on.cluster.ask(1, on.end_request(producer, committed=True))
    while token not in on.cluster.answers:
        on.cluster.run(1)
    write(on, (producer[0], producer[1] + 1), b"second")
    end(on, (producer[0], producer[1] + 1), committed=False)
    on.cluster.run(1000)
    for place in PLACES:
        assert stable(on, *place)
        assert ends(on, *place, producer) == {True}
