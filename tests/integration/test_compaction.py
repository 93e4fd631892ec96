"""Compacted topics of two brokers: clients see the last values, replicas fetch what is left."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.cimpl import NewTopic

from jepsen_like.real.layout import NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from quorum.log.files.checkpoints import CLEANED_OFFSETS
from tests.integration.waiting import wait
from tests.started import started

pytestmark = pytest.mark.extra  # waits for segments to be rolled

SETTINGS = {
    "log.cleaner.backoff.ms": "200",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "2",
}
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "50",
    "min.cleanable.dirty.ratio": "0.01",
}
KEYS = [b"key-%d" % number for number in range(10)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    running = LocalCluster.create(
        tmp_path_factory.mktemp("compaction"), controllers=1, brokers=2, settings=SETTINGS
    )
    with started(running):
        yield running


def cleaned_to(node: NodeLayout, topic: str) -> int:
    path = node.data / CLEANED_OFFSETS
    lines = path.read_text().splitlines()[2:] if path.exists() else []
    offsets = [int(line.split()[2]) for line in lines if line.split()[0] == topic]
    return offsets[0] if offsets else 0


def produce(servers: str, topic: str, rounds: int) -> dict[bytes, bytes]:
    """Each round in a segment of its own, with a tombstone now and then."""
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    values: dict[bytes, bytes] = {}
    for number in range(rounds):
        for key in KEYS:
            value = None if (number + len(values)) % 7 == 3 else b"%d" % number
            producer.produce(topic, key=key, value=value, partition=0)
            values.pop(key, None)
            if value is not None:
                values[key] = value
        assert producer.flush(20) == 0
        time.sleep(0.06)
    return values


def read(servers: str, topic: str) -> tuple[int, dict[bytes, bytes]]:
    """How many records there are, and the last values."""
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "reader", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    count = 0
    values: dict[bytes, bytes] = {}
    while True:
        message = consumer.poll(20)
        assert message is not None
        if message.error():
            break
        count += 1
        key, value = message.key(), message.value()
        assert isinstance(key, bytes)
        values.pop(key, None)
        if value is not None:
            assert isinstance(value, bytes)
            values[key] = value
    consumer.close()
    return count, values


def test_a_client_sees_the_last_values_of_either_replica(cluster: LocalCluster) -> None:
    servers = cluster.layout.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    first, second = cluster.layout.brokers
    assignment = [[first.id, second.id]]
    new = NewTopic("t", 1, replica_assignment=assignment, config=COMPACTED)
    admin.create_topics([new])["t"].result(15)
    values = produce(servers, "t", 30)
    wait(lambda: min(cleaned_to(node, "t") for node in (first, second)) >= 280, "both are cleaned")
    count, found = read(servers, "t")
    assert found == values
    assert count <= 3 * len(KEYS), "of 300"

    cluster.stop(second.id)
    shutil.rmtree(second.data / "t-0")
    later = produce(servers, "t", 3)
    cluster.start(second.id)
    cluster.wait_ready()
    in_sync(cluster, "t")
    cluster.stop(first.id)
    wait(lambda: leads(cluster, second, "t"), "the other replica leads")
    assert read(servers, "t")[1] == later, "each key was written once more"
    cluster.start(first.id)
    cluster.wait_ready()
    in_sync(cluster, "t")


def rows(cluster: LocalCluster, topic: str) -> list[dict[str, object]]:
    for node in cluster.layout.brokers:
        if cluster.process(node) is not None:
            status, page = cluster.ask(node, f"/v1/topics/{topic}")
            if status == 200:
                return list(page["partitions"])
    return []


def in_sync(cluster: LocalCluster, topic: str) -> None:
    wait(
        lambda: all(set(row["isr"]) == set(row["replicas"]) for row in rows(cluster, topic)),  # type: ignore[call-overload]
        "all in sync",
    )


def leads(cluster: LocalCluster, node: NodeLayout, topic: str) -> bool:
    return [row["leader"] for row in rows(cluster, topic)] == [node.id]


def test_committed_offsets_outlive_the_compaction_of_their_topic(cluster: LocalCluster) -> None:
    servers = cluster.layout.bootstrap_servers
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "g"})

    def commit(offset: int) -> None:
        consumer.commit(offsets=[TopicPartition("t", 0, offset)], asynchronous=False)

    commit(1)
    resource = ConfigResource(
        "topic",
        "__consumer_offsets",
        incremental_configs=[
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in COMPACTED.items()
            if key != "cleanup.policy"
        ],
    )
    admin = AdminClient({"bootstrap.servers": servers})
    admin.incremental_alter_configs([resource])[resource].result(15)
    for offset in range(2, 40):
        commit(offset)
        time.sleep(0.02)
    nodes = cluster.layout.brokers
    wait(
        lambda: min(cleaned_to(node, "__consumer_offsets") for node in nodes) > 20, "it is cleaned"
    )
    for node in nodes:
        sizes = [p.stat().st_size for p in Path(node.data, "__consumer_offsets-0").glob("*.log")]
        assert sum(sizes) < 40 * 100, "39 commits have more"
    for node in cluster.layout.brokers:
        cluster.stop(node.id)
        cluster.start(node.id)
        cluster.wait_ready()
        in_sync(cluster, "__consumer_offsets")
    (found,) = consumer.committed([TopicPartition("t", 0)], 20)
    assert found.offset == 39
    consumer.close()
