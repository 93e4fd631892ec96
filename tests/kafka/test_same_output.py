"""Apache Kafka's tools say the same of our cluster as of Apache Kafka's: both are asked, side by
side, and what differs by chance (ids, ports, directories, times) is taken out.

What else differs is listed in docs/compatibility.md.
"""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from jepsen_like.real.local_cluster import LocalCluster
from tests.kafka.interop import RELEASE, TOOLS, KafkaBesideUs, needs_kafka, produce
from tests.kafka.kafka_jars import run_tool

pytestmark = needs_kafka

ID = re.compile(r"(?<![\w-])[\w-]{22}(?![\w-])")
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+")
NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One node, of either kind."""

    cluster: LocalCluster

    def says(self, name: str, *arguments: str) -> str:
        """Exit status and output, without what differs by chance."""
        (node,) = self.cluster.layout.nodes
        where = {
            "BROKER": f"127.0.0.1:{node.port}",
            "CONTROLLER": f"127.0.0.1:{node.controller_port}",
            "CLUSTER": self.cluster.layout.cluster_id,
            "DATA": str(node.data),
        }
        words = [where.get(word, word) for word in arguments]
        directory = self.cluster.layout.directory
        done = run_tool(TOOLS[name], words, timeout=60.0, cwd=directory)
        said = f"{done.returncode}\n{done.stdout}"
        for placeholder, value in where.items():
            said = said.replace(value, placeholder)
        said = said.replace(f" {node.port} ", " PORT ").replace(
            f" {node.controller_port} ", " PORT "
        )
        return ID.sub("ID", TIME.sub("TIME", said))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    ours: Asked
    kafka: Asked
    pool: ThreadPoolExecutor

    def says(self, name: str, *arguments: str) -> tuple[str, str]:
        ours = self.pool.submit(self.ours.says, name, *arguments)
        kafka = self.pool.submit(self.kafka.says, name, *arguments)
        return ours.result(), kafka.result()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    directory = tmp_path_factory.mktemp("same")
    clusters = [
        LocalCluster.create(
            directory / name, controllers=1, brokers=1, combined=True, release_version=RELEASE
        )
        for name in ("ours", "kafka")
    ]
    ours, kafka = KafkaBesideUs(clusters[0], []), KafkaBesideUs(clusters[1], [1])
    kafka.format()
    with ours.running(1), kafka.running(1), ThreadPoolExecutor(max_workers=2) as pool:
        for cluster in clusters:
            write_plans(cluster.layout.directory)
        yield Pair(ours=Asked(cluster=clusters[0]), kafka=Asked(cluster=clusters[1]), pool=pool)


def write_plans(directory: Path) -> None:
    partition = {"topic": "orders", "partition": 0}
    plans = {
        "topics.json": {"version": 1, "topics": [{"topic": "orders"}]},
        "plan.json": {"version": 1, "partitions": [{**partition, "replicas": [1]}]},
        "delete.json": {"version": 1, "partitions": [{**partition, "offset": 2}]},
    }
    for name, plan in plans.items():
        (directory / name).write_text(json.dumps(plan))


BROKER = ("--bootstrap-server", "BROKER")
CONTROLLER = ("--bootstrap-controller", "CONTROLLER")
TOPIC = ("--topic", "orders")
ENTITY = ("--entity-type", "topics", "--entity-name", "orders")
VALUES = [b"%d" % number for number in range(9)]
IN_ORDER = [
    ("topics", *BROKER, "--create", *TOPIC, "--config", "retention.ms=100000"),
    ("topics", *BROKER, "--create", *TOPIC),
    ("topics", *BROKER, "--list"),
    ("topics", *BROKER, "--describe"),
    ("configs", *BROKER, "--describe", *ENTITY),
    ("configs", *BROKER, "--describe", "--all", *ENTITY),
    ("configs", *BROKER, "--alter", *ENTITY, "--add-config", "nope=1"),
    ("cluster", "list-endpoints", *BROKER),
    ("cluster", "list-endpoints", *CONTROLLER),
    ("features", *BROKER, "version-mapping"),
    ("reassign", *BROKER, "--generate", "--broker-list", "1",
     "--topics-to-move-json-file", "topics.json"),
    ("reassign", *BROKER, "--execute", "--reassignment-json-file", "plan.json"),
    ("reassign", *BROKER, "--verify", "--reassignment-json-file", "plan.json"),
    ("leader-election", *BROKER, "--election-type", "preferred", "--all-topic-partitions"),
    ("offsets", *BROKER, *TOPIC),
    ("log-dirs", *BROKER, "--describe", "--topic-list", "orders"),
    ("delete-records", *BROKER, "--offset-json-file", "delete.json"),
    ("consumer-groups", *BROKER, "--describe", "--group", "none"),
    ("groups", *BROKER, "--list"),
    ("topics", *BROKER, "--delete", *TOPIC),
]  # fmt: skip


@pytest.mark.long
def test_every_command_is_answered_alike(pair: Pair) -> None:
    different = []
    for number, command in enumerate(IN_ORDER):
        ours, kafka = pair.says(*command)
        if ours != kafka:
            different.append((command, ours, kafka))
        if number == 0:
            for asked in (pair.ours, pair.kafka):
                produce(asked.cluster.layout.bootstrap_servers, "orders", VALUES)
    assert different == []


def test_quorum_features_and_versions_have_the_same_form(pair: Pair) -> None:
    for what in ("--status", "--replication"):
        ours, kafka = pair.says("metadata-quorum", *BROKER, "describe", what)
        # Of a static voter Kafka's leader does not know the directory, unless it was told.
        assert form(ours.replace('"directoryId": "ID", ', "")) == form(kafka), what
    ours, kafka = pair.says("features", *BROKER, "describe")
    assert feature(ours, "kraft.version") == feature(kafka, "kraft.version")
    ours, kafka = pair.says("versions", *BROKER)
    names = re.compile(r"\t(\w+\(\d+\): )")
    assert names.findall(ours) == names.findall(kafka), "what we lack is shown as UNSUPPORTED"


def form(said: str) -> str:
    return re.sub(r" +", " ", NUMBER.sub("N", said))


def feature(said: str, name: str) -> str:
    (line,) = [line for line in said.splitlines() if line.startswith(f"Feature: {name} ")]
    return re.sub(r"Epoch: \d+", "", line)
