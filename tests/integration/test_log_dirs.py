"""Two data directories a broker: retention, stray logs, and one directory that fails."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kafka import KafkaAdminClient
from kafka.errors import (
    LogDirNotFoundError,
    NoError,
    ReplicaNotAvailableError,
    UnsupportedVersionError,
)
from kafka.structs import TopicPartition as ReassignedPartition
from kafka.structs import TopicPartitionReplica

from jepsen_like.real.layout import NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from quorum.log.files.checkpoints import CLEAN_SHUTDOWN, PARTITION_METADATA
from tests.integration.waiting import wait
from tests.started import started

pytestmark = pytest.mark.extra  # waits for segments to grow old

SETTINGS = {
    "log.retention.check.interval.ms": "300",
    "replica.high.watermark.checkpoint.interval.ms": "300",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Each test leaves both brokers running, in sync, and without a log of its own."""
    running = LocalCluster.create(tmp_path_factory.mktemp("dirs"), controllers=1, brokers=2)
    for node in running.layout.brokers:
        node.path.mkdir()
        settings = {**running.settings, **SETTINGS, "log.dirs": ",".join(map(str, dirs(node)))}
        node.config.write_text(running.layout.properties(node, settings))
    with started(running):
        yield running


def dirs(node: NodeLayout) -> tuple[Path, Path]:
    """The first holds the metadata log, too."""
    return node.data, node.path / "more"


def find(node: NodeLayout, pattern: str) -> list[Path]:
    return sorted(path for directory in dirs(node) for path in directory.glob(pattern))


def create(admin: AdminClient, name: str, assignment: list[list[int]], **config: str) -> None:
    new = NewTopic(
        name,
        num_partitions=len(assignment),
        replica_assignment=assignment,
        config={key.replace("_", "."): value for key, value in config.items()},
    )
    admin.create_topics([new])[name].result(15)


def delete(cluster: LocalCluster, admin: AdminClient, name: str) -> None:
    admin.delete_topics([name])[name].result(15)
    nodes = cluster.layout.brokers
    wait(lambda: not any(find(node, f"{name}-0*") for node in nodes), f"the deletion of {name}")


def produce(servers: str, topic: str, partition: int, count: int, size: int) -> list[Any]:
    """The errors, one for each record that was not taken."""
    errors: list[Any] = []
    producer = Producer({"bootstrap.servers": servers, "delivery.timeout.ms": 5000})

    def delivered(error: Any, _message: Any) -> None:
        if error is not None:
            errors.append(error)

    for _ in range(count):
        producer.produce(topic, b"x" * size, partition=partition, on_delivery=delivered)
    producer.flush(10)
    return errors


def partition_of(cluster: LocalCluster, topic: str, index: int = 0) -> dict[str, Any]:
    for node in cluster.layout.brokers:
        if cluster.process(node) is not None:
            code, page = cluster.ask(node, f"/v1/topics/{topic}")
            if code == 200:
                row: dict[str, Any] = page["partitions"][index]
                return row
    return {}


def are_in_sync(cluster: LocalCluster, topic: str, *indexes: int) -> bool:
    found = [partition_of(cluster, topic, index) for index in indexes]
    return all(len(each.get("isr", ())) == 2 for each in found)


def test_old_segments_go_on_every_replica(cluster: LocalCluster) -> None:
    servers = cluster.layout.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    create(admin, "t", [[1, 2]], segment_bytes=str(1 << 20), retention_bytes=str(2 << 20))
    assert produce(servers, "t", 0, 60, 100_000) == []
    brokers = cluster.layout.brokers
    wait(
        lambda: all(int(find(node, "t-0/*.log")[0].stem) > 25 for node in brokers),
        "retention on all replicas",
    )
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "g"})
    low, high = consumer.get_watermark_offsets(TopicPartition("t", 0), timeout=10)
    consumer.close()
    assert 25 < low < high == 60
    delete(cluster, admin, "t")


def test_logs_of_topics_deleted_meanwhile_are_set_aside(cluster: LocalCluster) -> None:
    stays, away = cluster.layout.brokers
    servers = f"{stays.host}:{stays.port}"
    admin = AdminClient({"bootstrap.servers": servers})
    for name in ("kept", "gone", "again"):
        create(admin, name, [[1, 2]])
        assert produce(servers, name, 0, 3, 10) == []
    old_id = (find(away, "again-0")[0] / PARTITION_METADATA).read_text()
    cluster.kill(away.id)
    wait(lambda: partition_of(cluster, "kept").get("isr") == [1], "fencing")
    admin = AdminClient({"bootstrap.servers": servers})  # the other may ask who has gone
    for name in ("gone", "again"):
        admin.delete_topics([name])[name].result(15)
    create(admin, "again", [[1, 2]])
    assert produce(servers, "again", 0, 5, 10) == []
    cluster.start(away.id)
    cluster.wait_ready(nodes=(away.id,))
    wait(lambda: all(are_in_sync(cluster, topic, 0) for topic in ("kept", "again")), "sync")
    assert find(away, "gone-0") == []
    (gone,) = find(away, "gone-0.*-stray")
    assert (gone / f"{0:020d}.log").stat().st_size > 0
    assert (find(away, "again-0")[0] / PARTITION_METADATA).read_text() != old_id
    (again,) = find(away, "again-0.*-stray")
    assert (again / PARTITION_METADATA).read_text() == old_id
    assert len(find(away, "kept-0")) == 1
    for stray in (gone, again):
        shutil.rmtree(stray)
    delete(cluster, admin, "kept")
    delete(cluster, admin, "again")


def test_replica_is_created_in_the_directory_that_was_asked_for(cluster: LocalCluster) -> None:
    servers = cluster.layout.bootstrap_servers
    node = cluster.layout.node(1)
    admin = AdminClient({"bootstrap.servers": servers})
    with KafkaAdminClient(bootstrap_servers=servers) as asking:

        def altered(index: int, directory: Path) -> type[Exception]:
            replica = TopicPartitionReplica("chosen", index, node.id)
            error: type[Exception] = asking.alter_replica_log_dirs({replica: str(directory)})[
                replica
            ]
            return error

        def ask_for(place: Path) -> None:
            """As soon as node 1 knows of the topic, whose replicas lie elsewhere."""
            wait(lambda: altered(3, place) is ReplicaNotAvailableError, "it knows of the topic")
            for index in range(3):
                assert altered(index, place) is ReplicaNotAvailableError

        for place in dirs(node):
            create(admin, "chosen", [[2]] * 4)
            ask_for(place)
            to_one = {ReassignedPartition("chosen", index): [1] for index in range(4)}
            assert set(asking.alter_partition_reassignments(to_one).values()) == {None}
            wait(lambda: len(find(node, "chosen-*")) == 4, "the logs are created")
            assert {path.parent for path in find(node, "chosen-*")} == {place}
            assert altered(0, place) is NoError
            (other,) = {*dirs(node)} - {place}
            assert altered(0, other) is UnsupportedVersionError
            assert altered(0, node.path) is LogDirNotFoundError
            admin.delete_topics(["chosen"])["chosen"].result(15)
            wait(lambda: not find(node, "chosen-*"), "the deletion")


def test_broker_goes_on_without_a_directory_that_failed(cluster: LocalCluster) -> None:
    servers = cluster.layout.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    hurt = cluster.layout.node(1)
    create(admin, "t", [[1, 2], [1, 2]])
    metadata_dir, other = dirs(hurt)
    wait(lambda: len(find(hurt, "t-*")) == 2, "the logs are created")
    assert len(list(metadata_dir.glob("t-*"))) == 1, "each directory has one"
    (lost,) = (int(path.name.removeprefix("t-")) for path in other.glob("t-*"))
    assert [produce(servers, "t", index, 3, 10) for index in (0, 1)] == [[], []]

    other.rename(other.with_name("pulled"))  # as if the disk had gone
    create(admin, "u", [[1, 2], [1, 2]])  # one of them is placed there
    wait(lambda: partition_of(cluster, "t", lost).get("isr") == [2], "the controller hears of it")
    assert partition_of(cluster, "t", lost)["leader"] == 2
    assert partition_of(cluster, "t", 1 - lost)["leader"] == 1
    assert [produce(servers, "t", index, 3, 10) for index in (0, 1)] == [[], []]
    assert cluster.process(hurt) is not None

    other.with_name("pulled").rename(other)
    cluster.stop(hurt.id)
    assert [(each / CLEAN_SHUTDOWN).exists() for each in dirs(hurt)] == [True, False]
    cluster.start(hurt.id)
    cluster.wait_ready(nodes=(hurt.id,))
    wait(lambda: all(are_in_sync(cluster, topic, 0, 1) for topic in ("t", "u")), "sync again")
