"""Clusters of our nodes and Apache Kafka's: they elect, replicate, and survive each other's death.

One test for a Kafka broker among our nodes, one for our brokers and one of our controllers beside
Kafka's controllers. The quorum's voters are static (kraft.version 0).
"""

from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.inspection.stream import whole_entries
from quorumlab.workload import SteadyProducer, read_back
from tests.kafka.interop import LINES, KafkaBesideUs, create_topic, log_bytes, needs_kafka, wait
from tests.kafka.kafka_jars import KafkaNode, format_storage
from wire.metadata_records import FeatureLevelRecord, TopicRecord

pytestmark = needs_kafka

TOPIC = "orders"
# Two cores may serve three Java machines here: do not fence a broker for being slow.
SETTINGS = {"broker.session.timeout.ms": "4000"}


def wait_for_more(producer: SteadyProducer, count: int = 50) -> None:
    """Until that many further records are acknowledged: writing goes on."""
    enough = len(producer.account.acknowledged) + count
    wait(lambda: len(producer.account.acknowledged) >= enough, f"{count} acknowledgements")


def finish(producer: SteadyProducer, servers: str) -> None:
    assert producer.finish() == 0, "records without any answer"
    assert producer.account.failed == 0
    _, broken = read_back(servers, TOPIC, producer.account)
    assert broken == []


@pytest.mark.parametrize("line", LINES)
def test_a_kafka_broker_beside_ours(tmp_path: Path, line: str) -> None:
    cluster = LocalCluster.create(
        tmp_path / "cluster", controllers=1, brokers=3, combined=True, settings=SETTINGS
    )
    mixed = KafkaBesideUs(cluster, [3], line=line)
    mixed.format()
    with mixed.running(1, 2, 3):
        create_topic(mixed.servers, TOPIC, [[3, 1], [1, 3], [2, 3]])
        producer = SteadyProducer(mixed.servers, TOPIC, 3, rate=200)
        producer.start()
        wait_for_more(producer)

        mixed.kafka[3].kill()
        wait(lambda: mixed.leaders(TOPIC) == [1, 1, 2], "leaders without Kafka's broker")
        wait_for_more(producer)
        mixed.start(3)
        mixed.wait_in_sync(TOPIC)

        cluster.kill(2)
        wait(lambda: mixed.leaders(TOPIC) == [1, 1, 3], "Kafka's broker leads in our place")
        wait_for_more(producer)
        mixed.start(2)
        mixed.wait_in_sync(TOPIC)
        wait_for_more(producer)

        finish(producer, mixed.servers)
        assert mixed.kafka[3].stop() == 143, "a controlled shutdown, then the end by SIGTERM"
        wait(lambda: mixed.leaders(TOPIC) == [1, 1, 2], "leaders after its controlled shutdown")
    theirs = cluster.layout.node(3).data
    for partition, ours in enumerate((1, 1, 2)):
        name = f"{TOPIC}-{partition}"
        assert log_bytes(cluster.layout.node(ours).data / name) == log_bytes(theirs / name)
    metadata = log_bytes(theirs / "__cluster_metadata-0")
    assert log_bytes(cluster.layout.node(1).data / "__cluster_metadata-0").startswith(metadata)


@pytest.mark.parametrize("line", LINES)
def test_our_nodes_beside_kafkas_controllers(tmp_path: Path, line: str) -> None:
    """Voters 101 and 102 are Kafka's; voter 103 and both brokers are ours. Kafka's formatted their
    directories with its own defaults, so that it finalizes features that we do not serve."""
    cluster = LocalCluster.create(tmp_path / "cluster", controllers=3, brokers=2, settings=SETTINGS)
    mixed = KafkaBesideUs(cluster, [101, 102], line=line)
    mixed.format()
    with mixed.running(101, 102, 1, 2):
        create_topic(mixed.servers, TOPIC, [[1, 2], [2, 1]])
        producer = SteadyProducer(mixed.servers, TOPIC, 2, rate=200)
        producer.start()
        our_broker_dies_under_kafkas_controller(mixed, producer)
        mixed.start(103)
        our_controller_takes_over(mixed)
        wait_for_more(producer)
        kafkas_controller_takes_over(mixed)
        wait_for_more(producer)
        finish(producer, mixed.servers)
        for node_id in (1, 2, 103):
            cluster.stop(node_id)
        for kafka in mixed.kafka.values():
            kafka.stop()
    assert_one_metadata_log(cluster)
    levels = finalized(cluster, 103)
    newest = {"4": (30, 1), "4.4": (33, 2)}[line]
    assert (levels["metadata.version"], levels["share.version"]) == newest


def finalized(cluster: LocalCluster, node_id: int) -> dict[str, int]:
    """What the node's metadata log says of features."""
    return {
        entry.content.name: entry.content.feature_level
        for entry in whole_entries(cluster.layout.node(node_id).data)
        if isinstance(entry.content, FeatureLevelRecord)
    }


def test_our_controller_is_elected_by_a_voter_that_knows_no_pre_votes(tmp_path: Path) -> None:
    """Voter 101 is Kafka 3.9's, which takes its time before it stands; both votes are needed."""
    cluster = LocalCluster.create(tmp_path / "cluster", controllers=2, brokers=1)
    kafkas = cluster.layout.node(101).config
    mixed = KafkaBesideUs(cluster, [101])
    with kafkas.open("a") as file:
        file.write("controller.quorum.election.timeout.ms=60000\n")
        file.write("controller.quorum.fetch.timeout.ms=60000\n")
    format_storage(kafkas, cluster.layout.cluster_id, line="3.9")
    with KafkaNode(kafkas, tmp_path / "kafka.log", line="3.9", ready_pattern=None):
        cluster.start(102)
        try:
            wait(lambda: quorum(mixed, 102)["role"] == "leader", "the election of our controller")
        finally:
            cluster.stop(102)


def our_broker_dies_under_kafkas_controller(mixed: KafkaBesideUs, producer: SteadyProducer) -> None:
    wait_for_more(producer)
    mixed.cluster.kill(2)
    wait(lambda: mixed.leaders(TOPIC) == [1, 1], "Kafka's controller moves the leadership")
    wait_for_more(producer)
    mixed.start(2)
    mixed.wait_in_sync(TOPIC)


def our_controller_takes_over(mixed: KafkaBesideUs) -> None:
    """Kafka's standby misses records, so that it must not be elected: only ours may."""
    leader = quorum(mixed, 103)["leader_id"]
    assert leader in mixed.kafka
    standby = next(node_id for node_id in mixed.kafka if node_id != leader)
    mixed.kafka[standby].kill()
    create_topic(mixed.servers, "by-kafka-and-us", [[1]])  # takes our controller's acknowledgement
    mixed.kafka[leader].kill()
    mixed.start(standby)
    wait(lambda: quorum(mixed, 103)["role"] == "leader", "the election of our controller")
    create_topic(mixed.servers, "by-us", [[2, 1]])
    mixed.start(leader)


def kafkas_controller_takes_over(mixed: KafkaBesideUs) -> None:
    """It replayed what ours wrote, and goes on from there."""
    mixed.cluster.stop(103)
    wait(lambda: quorum(mixed, 1)["leader_id"] in mixed.kafka, "the election of Kafka's")
    create_topic(mixed.servers, "by-kafka-again", [[1, 2]], is_asked_again=True)
    with pytest.raises(KafkaException, match="TOPIC_ALREADY_EXISTS"):
        create_topic(mixed.servers, "by-us", [[1]])
    mixed.start(103)


def quorum(mixed: KafkaBesideUs, node_id: int) -> dict[str, object]:
    page = mixed.page(node_id, "/v1/node")
    return {"role": None, "leader_id": None} if page is None else dict(page["quorum"])


def assert_one_metadata_log(cluster: LocalCluster) -> None:
    nodes = cluster.layout.nodes
    logs = [log_bytes(node.data / "__cluster_metadata-0") for node in nodes]
    longest = max(logs, key=len)
    assert [
        node.id for node, log in zip(nodes, logs, strict=True) if log != longest[: len(log)]
    ] == []
    topics = [
        entry.content.name
        for entry in whole_entries(cluster.layout.node(103).data)
        if isinstance(entry.content, TopicRecord) and not entry.content.name.startswith("__")
    ]
    assert topics == [TOPIC, "by-kafka-and-us", "by-us", "by-kafka-again"]
