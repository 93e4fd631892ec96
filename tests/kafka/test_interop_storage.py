"""Snapshots, trimmed logs and several log.dirs of ours in Apache Kafka's hands, and back."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from jepsen_like.real.layout import NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from quorum.log.files.checkpoints import CLEAN_SHUTDOWN, LOG_STARTS
from tests.kafka.interop import (
    RELEASE,
    KafkaBesideUs,
    create_topic,
    image_in_the_shell,
    needs_kafka,
    produce,
    tool,
    wait,
)
from tests.kafka.kafka_jars import run_tool
from tests.started import started

pytestmark = needs_kafka

SETTINGS = {
    "metadata.log.max.record.bytes.between.snapshots": "5000",
    "metadata.max.retention.bytes": "30000",
    "metadata.log.segment.ms": "1000",  # Kafka refuses small segment sizes
    "replica.high.watermark.checkpoint.interval.ms": "300",
}
VALUES = [b"%d" % number * 100 for number in range(200)]
PARTITIONS = 40


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """One node with two data directories, whose metadata log is compacted all the time."""
    directory = tmp_path_factory.mktemp("storage")
    running = LocalCluster.create(
        directory,
        controllers=1,
        brokers=1,
        combined=True,
        settings=SETTINGS,
        release_version=RELEASE,
    )
    node = running.layout.node(1)
    node.path.mkdir()
    settings = {**running.settings, "log.dirs": ",".join(map(str, dirs(node)))}
    node.config.write_text(running.layout.properties(node, settings))
    with started(running):
        yield running


def dirs(node: NodeLayout) -> tuple[Path, Path]:
    return node.data, node.path / "more"


def checkpoints(node: NodeLayout) -> list[Path]:
    return sorted((node.data / "__cluster_metadata-0").glob("*.checkpoint"))


def first_offset(node: NodeLayout) -> int:
    return min(int(path.stem) for path in (node.data / "__cluster_metadata-0").glob("*.log"))


def watermarks(servers: str, topic: str) -> tuple[int, int]:
    """The watermarks of the first partition; (-1, -1) while nobody leads it."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "g"})
    try:
        found: tuple[int, int] = consumer.get_watermark_offsets(TopicPartition(topic, 0), 10)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION:
            raise
        return -1, -1
    finally:
        consumer.close()
    return found


def test_kafkas_tools_read_what_lies_in_our_directories(cluster: LocalCluster) -> None:
    servers, node = cluster.layout.bootstrap_servers, cluster.layout.node(1)
    create_topic(servers, "data", [[1]])
    produce(servers, "data", VALUES)
    admin = AdminClient({"bootstrap.servers": servers})
    for number in range(8):
        name = f"many-{number}"
        admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(15)
    wait(lambda: first_offset(node) > 0, "the metadata log to be trimmed")

    asked = node.path / "delete.json"
    partitions = [{"topic": "data", "partition": 0, "offset": 150}]
    asked.write_text(json.dumps({"version": 1, "partitions": partitions}))
    deleted = run_tool(
        "org.apache.kafka.tools.DeleteRecordsCommand",
        ["--bootstrap-server", servers, "--offset-json-file", str(asked)],
    ).stdout
    assert re.search(r"partition: data-0\s+low_watermark: 150", deleted)
    assert watermarks(servers, "data") == (150, 200)
    wait(
        lambda: any("data 0 150" in (each / LOG_STARTS).read_text() for each in dirs(node)
                    if (each / LOG_STARTS).exists()),
        "the start to be noted",
    )  # fmt: skip

    described = run_tool(
        "org.apache.kafka.tools.LogDirsCommand",
        ["--bootstrap-server", servers, "--describe", "--topic-list", "many-0"],
    ).stdout
    found = json.loads(next(line for line in described.splitlines() if line.startswith("{")))
    (broker,) = found["brokers"]
    assert {each["logDir"] for each in broker["logDirs"]} == set(map(str, dirs(node)))
    counts = [len(each["partitions"]) for each in broker["logDirs"]]
    assert sum(counts) == PARTITIONS
    assert max(counts) - min(counts) <= 1, "each directory has half of them"

    cluster.stop(1)
    newest = checkpoints(node)[-1]
    dump = tool("dump-log", "--cluster-metadata-decoder", "--files", str(newest))
    assert "SnapshotHeader" in dump
    assert "SnapshotFooter" in dump
    assert "isvalid: false" not in dump
    assert '"name":"many-0"' in dump
    assert re.search(r"name:\s+data\n", image_in_the_shell(newest))
    assert all((each / CLEAN_SHUTDOWN).exists() for each in dirs(node))


def test_kafka_runs_on_our_snapshots_and_we_on_its(cluster: LocalCluster) -> None:
    servers, node = cluster.layout.bootstrap_servers, cluster.layout.node(1)
    ours = set(checkpoints(node))
    assert ours, "the first test has made them"
    kafka = KafkaBesideUs(cluster, [1]).kafka[1]
    with kafka:
        wait(lambda: watermarks(servers, "data") == (150, 200), "Kafka leads where we left off")
        create_topic(servers, "kafkas", [[1]])
        produce(servers, "kafkas", VALUES)
        wait(lambda: set(checkpoints(node)) - ours, "a snapshot of Kafka's")
        kafka.stop()
    cluster.start(1)
    cluster.wait_ready()
    assert watermarks(servers, "data") == (150, 200)
    assert watermarks(servers, "kafkas") == (0, 200)
    admin = AdminClient({"bootstrap.servers": servers})
    assert {f"many-{number}" for number in range(8)} <= set(admin.list_topics(timeout=10).topics)
    log = cluster.layout.node(1).log.read_text()
    assert "stray" not in log
    assert not [path for each in dirs(node) for path in each.glob("*-stray")]
