"""Apache Kafka's own command-line tools against a running cluster of ours."""

import re
from collections.abc import Iterator

import pytest

from jepsen_like.real.local_cluster import LocalCluster
from tests.kafka.interop import RELEASE, needs_kafka, tool, tools
from tests.started import started

pytestmark = needs_kafka


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    directory = tmp_path_factory.mktemp("interop") / "cluster"
    with started(
        LocalCluster.create(
            directory, controllers=1, brokers=3, combined=True, release_version=RELEASE
        )
    ) as running:
        yield running


@pytest.fixture
def broker(cluster: LocalCluster) -> tuple[str, str]:
    return "--bootstrap-server", cluster.layout.bootstrap_servers.split(",")[0]


@pytest.fixture
def controller(cluster: LocalCluster) -> tuple[str, str]:
    (node,) = cluster.layout.controllers
    return "--bootstrap-controller", f"{node.host}:{node.controller_port}"


def rows(table: str) -> list[list[str]]:
    return [line.split() for line in table.splitlines()]


def test_topics_and_their_configs(broker: tuple[str, str]) -> None:
    topic = ("--topic", "life")
    entity = ("--entity-type", "topics", "--entity-name", "life")
    created = tool(
        "topics", *broker, "--create", *topic, "--partitions", "2", "--replication-factor", "3",
        "--config", "retention.ms=1000",
    )  # fmt: skip
    assert created == "Created topic life.\n"
    tools(
        ("topics", *broker, "--alter", *topic, "--partitions", "4"),
        ("configs", *broker, "--alter", *entity, "--add-config", "cleanup.policy=[compact,delete]"),
    )
    described, configs, listed = tools(
        ("topics", *broker, "--describe", *topic),
        ("configs", *broker, "--describe", *entity),
        ("topics", *broker, "--list"),
    )
    assert "PartitionCount: 4\tReplicationFactor: 3\tConfigs: " in described
    assert "cleanup.policy=compact,delete,retention.ms=1000" in described.splitlines()[0]
    replicas = re.findall(r"Leader: (\d)\tReplicas: (\S+)\tIsr: (\S+)\t", described)
    assert len(replicas) == 4
    for leader, assigned, in_sync in replicas:
        assert assigned[0] == leader, "the preferred replica leads"
        assert sorted(in_sync.split(",")) == sorted(assigned.split(",")) == ["1", "2", "3"]
    assert re.findall(r"^  (\S+) .*DYNAMIC_TOPIC_CONFIG", configs, re.MULTILINE) == [
        "cleanup.policy=compact,delete",
        "retention.ms=1000",
    ]
    assert "life" in listed.split()
    tool("topics", *broker, "--delete", *topic)
    assert "life" not in tool("topics", *broker, "--list").split()


def test_the_quorum_is_described_by_brokers_and_by_controllers(
    broker: tuple[str, str], controller: tuple[str, str], cluster: LocalCluster
) -> None:
    answers = tools(
        *(
            ("metadata-quorum", *where, "describe", what)
            for what in ("--status", "--replication")
            for where in (broker, controller)
        )
    )
    for status in answers[:2]:
        assert f"ClusterId:              {cluster.layout.cluster_id}\n" in status
        assert "LeaderId:               1\n" in status
        assert '"endpoints": ["CONTROLLER://127.0.0.1:' in status
    for replication in answers[2:]:
        _, *members = rows(replication)
        assert [(row[0], row[-1]) for row in members] == [
            ("1", "Leader"),
            ("2", "Observer"),
            ("3", "Observer"),
        ]


def test_versions_features_and_the_cluster(
    broker: tuple[str, str], controller: tuple[str, str], cluster: LocalCluster
) -> None:
    versions, features, controllers_id = tools(
        ("versions", *broker),
        ("features", *controller, "describe"),
        ("cluster", "cluster-id", *controller),
    )
    # Kafka's client would use its own newest version of each of these.
    for api in ("Produce(0): 0 to 13 [usable: 13]", "Fetch(1): 4 to 18 [usable: 18]"):
        assert versions.count(api) == 3, "each broker offers it"
    assert re.search(r"metadata.version\s.*FinalizedVersionLevel: 4.3-IV0", features)
    assert controllers_id == f"Cluster ID: {cluster.layout.cluster_id}\n"


def test_java_clients_write_and_read(broker: tuple[str, str]) -> None:
    sizes = ("--num-records", "5000", "--record-size", "100", "--throughput", "-1")
    tool("topics", *broker, "--create", "--topic", "java", "--replication-factor", "3")
    sent, _ = tools(
        ("producer-performance", *broker, "--topic", "java", *sizes, "--command-property",
         "acks=all", "enable.idempotence=true", "compression.type=lz4"),
        ("topics", *broker, "--create", "--topic", "lines", "--replication-factor", "3"),
    )  # fmt: skip
    assert "5000 records sent" in sent
    lines = [f"line {number}" for number in range(50)]
    tool(
        "producer", *broker, "--topic", "lines", "--command-property", "acks=all",
        stdin="\n".join(lines) + "\n",
    )  # fmt: skip
    by_hand = ("--partition", "0", "--offset", "earliest", "--max-messages")
    read, counted, offsets = tools(
        ("consumer", *broker, "--topic", "lines", *by_hand, "50"),
        ("consumer", *broker, "--topic", "java", *by_hand, "5000"),
        ("offsets", *broker, "--topic", "java"),
    )
    assert read.splitlines() == lines
    assert [len(value) for value in counted.splitlines()] == [100] * 5000
    assert offsets == "java:0:5000\n"
