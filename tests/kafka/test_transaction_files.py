"""What transactions leave in our files, in Apache Kafka's hands: it reads them, and goes on."""

import re
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place

from jepsen_like.real.local_cluster import LocalCluster
from tests.kafka.interop import RELEASE, KafkaBesideUs, create_topic, needs_kafka, tool, wait

pytestmark = [*needs_kafka, pytest.mark.long]

TOPIC = "orders"
_ABORTED = re.compile(r"producerId: (\d+) firstOffset: 3 lastOffset: 4 lastStableOffset: 5")
_PRODUCER = re.compile(
    r"producerId: (\d+) producerEpoch: (\d+) coordinatorEpoch: (-?\d+) currentTxnFirstOffset:"
    r" (\S+) .*lastOffset: (-?\d+)"
)


def transactional(servers: str, transactional_id: str) -> Producer:
    producer = Producer(
        {"bootstrap.servers": servers, "transactional.id": transactional_id, "log_level": 2}
    )
    producer.init_transactions(20)
    return producer


def send(producer: Producer, *values: bytes) -> None:
    producer.begin_transaction()
    for value in values:
        producer.produce(TOPIC, value, partition=0)
        producer.flush(10)  # each in a batch of its own


def committed(servers: str) -> list[bytes]:
    """All that a reader of committed records is given by now."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([Place(TOPIC, 0, 0)])
    found: list[bytes] = []
    is_ended = False
    while not is_ended:
        for message in consumer.consume(100, 10.0):
            is_ended = message.error() is not None
            if not is_ended:
                found.append(message.value() or b"")
    consumer.close()
    return found


def test_kafka_goes_on_where_ours_was_with_a_transaction_open(tmp_path: Path) -> None:
    cluster = LocalCluster.create(
        tmp_path / "cluster", controllers=1, brokers=1, combined=True, release_version=RELEASE
    )
    servers = cluster.layout.bootstrap_servers
    data = cluster.layout.node(1).data / f"{TOPIC}-0"
    cluster.start_all()
    try:
        cluster.wait_ready()
        create_topic(servers, TOPIC, [[1]])
        producer, other = transactional(servers, "ended"), transactional(servers, "open")
        send(producer, b"a", b"b")
        producer.commit_transaction(10)  # 0 to 2
        send(producer, b"c")
        producer.abort_transaction(10)  # 3 and 4
        send(other, b"d")  # 5
        send(producer, b"e")
        producer.abort_transaction(10)  # 6 and 7
        assert committed(servers) == [b"a", b"b"]
        cluster.stop(1)
        (snapshot,) = data.glob("*8.snapshot")
        (index,) = data.glob("*.txnindex")
        files = ",".join(map(str, (index, snapshot)))
        dump = tool("dump-log", "--files", files)
        assert _ABORTED.search(dump), dump
        assert "firstOffset: 6 lastOffset: 7 lastStableOffset: 5" in dump
        open_since = {match[5]: match[4] for match in _PRODUCER.finditer(dump)}  # by batch
        nothing = dict.fromkeys(("0", "1", "3", "6"), "OptionalLong.empty")
        assert open_since == nothing | {"5": "OptionalLong[5]"}, dump
        with KafkaBesideUs(cluster, [1]).kafka[1] as kafka:
            kafka.wait_ready()
            assert committed(servers) == [b"a", b"b"]
            send(transactional(servers, "open"), b"f")  # which aborts what was open
            wait(lambda: committed(servers) == [b"a", b"b"], "records of the next are not stable")
            producer = transactional(servers, "ended")
            send(producer, b"g")
            producer.commit_transaction(10)
            transactional(servers, "open")
            assert committed(servers) == [b"a", b"b", b"g"]
            kafka.stop()
        cluster.start(1)
        cluster.wait_ready()
        assert committed(servers) == [b"a", b"b", b"g"]
    finally:
        cluster.stop_all()
