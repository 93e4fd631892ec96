"""kafka-reassign-partitions and kafka-leader-election on our cluster: they say what they say of
Apache Kafka's.

The texts are those that release 4.3.1 printed for the same calls on a cluster of its own, in the
same situations; only the order of in-sync replicas differs (ours is that of the replicas).
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

from jepsen_like.real.local_cluster import LocalCluster
from tests.kafka.interop import (
    TOOLS,
    KafkaBesideUs,
    create_topic,
    log_bytes,
    needs_kafka,
    produce,
    tool,
    wait,
)
from tests.kafka.kafka_jars import run_tool

pytestmark = needs_kafka


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBesideUs]:
    directory: Path = tmp_path_factory.mktemp("tools")
    cluster = LocalCluster.create(directory / "cluster", controllers=3, brokers=3)
    beside = KafkaBesideUs(cluster, [])
    with beside.running(*(node.id for node in cluster.layout.nodes)):
        yield beside


@pytest.fixture
def ours(running: KafkaBesideUs) -> KafkaBesideUs:
    """With every broker, also behind a test that failed."""
    for node in running.cluster.layout.brokers:
        if running.cluster.process(node) is None:
            running.start(node.id)
    return running


def server(ours: KafkaBesideUs, broker_id: int = 2) -> str:
    node = ours.cluster.layout.node(broker_id)
    return f"{node.host}:{node.port}"


def ask(ours: KafkaBesideUs, name: str, *arguments: str) -> str:
    return tool(name, "--bootstrap-server", server(ours), *arguments)


def described(ours: KafkaBesideUs, topic: str) -> list[str]:
    """The lines of the partitions, as kafka-topics has them."""
    lines = ask(ours, "topics", "--describe", "--topic", topic).splitlines()
    return [line.strip() for line in lines[1:]]


def plan(path: Path, topic: str, *targets: list[int]) -> str:
    partitions = [
        {"topic": topic, "partition": index, "replicas": target}
        for index, target in enumerate(targets)
    ]
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(path)


def fenced(ours: KafkaBesideUs, broker_id: int, topic: str) -> None:
    """Kill a broker, and wait until the others know."""
    ours.cluster.kill(broker_id)

    def is_gone() -> bool:
        rows = ours.partitions(topic)
        return all(row["leader"] != broker_id for row in rows) and not any(
            broker_id in row["isr"] for row in rows if len(row["isr"]) > 1
        )

    wait(is_gone, f"broker {broker_id} leads nothing of {topic} any more")


def test_reassignment_from_beginning_to_end(ours: KafkaBesideUs, tmp_path: Path) -> None:
    create_topic(server(ours), "orders", [[1, 2], [2, 3]])
    produce(server(ours), "orders", [b"x" * 100] * 200)
    data = {node.id: node.data for node in ours.cluster.layout.brokers}
    now = (
        '{"version":1,"partitions":['
        '{"topic":"orders","partition":0,"replicas":[1,2],'
        f'"log_dirs":["{data[1]}","{data[2]}"]}},'
        '{"topic":"orders","partition":1,"replicas":[2,3],'
        f'"log_dirs":["{data[2]}","{data[3]}"]}}]}}'
    )
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": "orders"}]}))
    generated = ask(
        ours,
        "reassign",
        "--generate",
        "--topics-to-move-json-file",
        str(topics),
        "--broker-list",
        "1,2,3",
    )
    current, proposed = generated.split("\n\n")
    assert current == f"Current partition replica assignment\n{now}"
    heading, proposal = proposed.strip().split("\n")
    assert heading == "Proposed partition reassignment configuration"
    assert [len(row["replicas"]) for row in json.loads(proposal)["partitions"]] == [2, 2]

    target = plan(tmp_path / "target.json", "orders", [3, 2], [1, 3])
    executed = ask(ours, "reassign", "--execute", "--reassignment-json-file", target)
    assert executed == (
        f"Current partition replica assignment\n\n{now}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback\n"
        "Successfully started partition reassignments for orders-0,orders-1\n"
    )
    wait(lambda: ours.leaders("orders") == [3, 1], "the first of the new replicas leads")

    assert ask(ours, "reassign", "--verify", "--reassignment-json-file", target) == (
        "Status of partition reassignment:\n"
        "Reassignment of partition orders-0 is completed.\n"
        "Reassignment of partition orders-1 is completed.\n\n"
        "Clearing broker-level throttles on brokers 1,2,3\n"
        "Clearing topic-level throttles on topic orders\n"
    )
    assert described(ours, "orders") == [
        "Topic: orders\tPartition: 0\tLeader: 3\tReplicas: 3,2\tIsr: 3,2\tElr: \tLastKnownElr:",
        "Topic: orders\tPartition: 1\tLeader: 1\tReplicas: 1,3\tIsr: 1,3\tElr: \tLastKnownElr:",
    ]
    assert log_bytes(data[3] / "orders-0") == log_bytes(data[2] / "orders-0") != b""
    wait(lambda: not (data[1] / "orders-0").exists(), "the removed replica's log is gone")


def test_reassignment_that_waits_for_a_broker_is_listed_and_cancelled(
    ours: KafkaBesideUs, tmp_path: Path
) -> None:
    create_topic(server(ours), "parcels", [[3, 2], [1, 2]])
    fenced(ours, 1, "parcels")
    admin = KafkaAdminClient(bootstrap_servers=server(ours))
    moved = TopicPartition("parcels", 0)
    assert admin.alter_partition_reassignments({moved: [1, 2]}) == {moved: None}
    assert admin.list_partition_reassignments() == {
        moved: {"replicas": [1, 2, 3], "adding_replicas": [1], "removing_replicas": [3]}
    }
    assert ask(ours, "reassign", "--list") == (
        "Current partition reassignments:\nparcels-0: replicas: 1,2,3. adding: 1. removing: 3.\n"
    )
    target = plan(tmp_path / "target.json", "parcels", [1, 2])
    preserving = ("--reassignment-json-file", target, "--preserve-throttles")
    assert ask(ours, "reassign", "--verify", *preserving).strip() == (
        "Status of partition reassignment:\n"
        "Reassignment of partition parcels-0 is still in progress."
    )
    assert ask(ours, "reassign", "--cancel", *preserving) == (
        "Successfully cancelled partition reassignment for: parcels-0\n"
        "None of the specified partition moves are active."
    )
    assert ask(ours, "reassign", "--list") == "No partition reassignments found.\n"
    assert described(ours, "parcels")[0] == (
        "Topic: parcels\tPartition: 0\tLeader: 3\tReplicas: 2,3\tIsr: 2,3\tElr: \tLastKnownElr:"
    )

    assert admin.alter_partition_reassignments({moved: [1, 2]}) == {moved: None}
    ours.start(1)
    wait(lambda: not admin.list_partition_reassignments(), "the broker that came back catches up")
    admin.close()
    assert described(ours, "parcels")[0] == (
        "Topic: parcels\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\tElr: \tLastKnownElr:"
    )


def test_elections_from_the_command_line(ours: KafkaBesideUs) -> None:
    create_topic(server(ours), "letters", [[1, 3]])
    one = ("--topic", "letters", "--partition", "0")
    fenced(ours, 1, "letters")
    refused = run_tool(
        TOOLS["leader-election"],
        ["--bootstrap-server", server(ours), "--election-type", "preferred", *one],
    )
    assert refused.returncode == 1
    assert refused.stdout == (
        "Error completing leader election (PREFERRED) for partition: letters-0: "
        "org.apache.kafka.common.errors.PreferredLeaderNotAvailableException: "
        "The preferred leader was not available.\n"
    )
    ours.start(1)
    ours.wait_in_sync("letters")
    preferred = ("leader-election", "--election-type", "preferred")
    assert ask(ours, *preferred, *one) == (
        "Successfully completed leader election (PREFERRED) for partitions letters-0\n"
    )
    assert ask(ours, *preferred, *one) == (
        "Valid replica already elected for partitions letters-0\n"
    )
    assert ours.leaders("letters") == [1]

    fenced(ours, 1, "letters")
    fenced(ours, 3, "letters")
    ours.start(1)
    assert ours.leaders("letters") == [-1], "1 may lack what 3 has"
    unclean = ask(ours, "leader-election", "--election-type", "unclean", *one)
    assert unclean == "Successfully completed leader election (UNCLEAN) for partitions letters-0\n"
    assert described(ours, "letters") == [
        "Topic: letters\tPartition: 0\tLeader: 1\tReplicas: 1,3\tIsr: 1\tElr: \tLastKnownElr:"
    ]
    ours.start(3)
    ours.wait_in_sync("letters")


def test_eligible_leader_replicas_are_shown(ours: KafkaBesideUs) -> None:
    """Last: the feature stays."""
    ask(ours, "features", "upgrade", "--feature", "eligible.leader.replicas.version=1")
    tool(
        "configs",
        "--bootstrap-server",
        server(ours),
        "--alter",
        "--topic",
        "letters",
        "--add-config",
        "min.insync.replicas=2",
    )
    fenced(ours, 1, "letters")
    assert described(ours, "letters") == [
        "Topic: letters\tPartition: 0\tLeader: 3\tReplicas: 1,3\tIsr: 3\tElr: 1\tLastKnownElr:"
    ]
    ours.start(1)
    ours.wait_in_sync("letters")
    assert described(ours, "letters") == [
        "Topic: letters\tPartition: 0\tLeader: 3\tReplicas: 1,3\tIsr: 1,3\tElr: \tLastKnownElr:"
    ]
