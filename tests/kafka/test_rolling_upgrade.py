"""A quorum of Kafka 4.3.1 with nodes of ours in it becomes one of 4.4.0, node by node."""

from pathlib import Path

import pytest

from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.workload import SteadyProducer, read_back
from tests.kafka.interop import (
    TOOLS,
    KafkaBesideUs,
    create_topic,
    log_bytes,
    needs_kafka,
    needs_kafka_4_4,
    wait,
)
from tests.kafka.kafka_jars import KafkaNode, run_tool
from tests.kafka.test_interop_mixed import finalized, quorum, wait_for_more

pytestmark = [*needs_kafka, needs_kafka_4_4, pytest.mark.long]

TOPIC = "orders"
# Two cores may serve four Java machines here: do not fence a broker for being slow.
SETTINGS = {"broker.session.timeout.ms": "6000"}
KAFKAS, OURS = (101, 102, 1), (103, 2)


def upgraded(mixed: KafkaBesideUs, node_id: int) -> None:
    """The node stops in order, and goes on as the newer release on its directory."""
    mixed.kafka[node_id].stop()
    node = mixed.cluster.layout.node(node_id)
    mixed.kafka[node_id] = KafkaNode(node.config, node.path / "newer.log", line="4.4")
    mixed.start(node_id)


def refused_upgrade(mixed: KafkaBesideUs) -> str:
    asked = ("--bootstrap-server", mixed.servers, "upgrade", "--release-version", "4.4")
    done = run_tool(TOOLS["features"], asked, line="4.4")
    return done.stdout + done.stderr if done.returncode else ""


def test_a_rolling_upgrade_with_ours_among_them(tmp_path: Path) -> None:
    cluster = LocalCluster.create(tmp_path / "cluster", controllers=3, brokers=2, settings=SETTINGS)
    mixed = KafkaBesideUs(cluster, KAFKAS)
    mixed.format()
    with mixed.running(*KAFKAS, *OURS):
        create_topic(mixed.servers, TOPIC, [[1, 2], [2, 1]])
        producer = SteadyProducer(mixed.servers, TOPIC, 2, rate=100)
        producer.start()
        wait_for_more(producer)
        before = refused_upgrade(mixed)
        for node_id in KAFKAS:
            upgraded(mixed, node_id)
            mixed.wait_in_sync(TOPIC)
            wait_for_more(producer)
        assert "only supports versions" in before, "4.3.1 keeps the others from going on"
        wait(lambda: not refused_upgrade(mixed), "everybody's registration as 4.4")
        create_topic(mixed.servers, "newer", [[2, 1]])
        wait_for_more(producer)
        assert producer.finish() == 0, "records without any answer"
        _, broken = read_back(mixed.servers, TOPIC, producer.account)
        assert broken == []
        leader = quorum(mixed, 103)["leader_id"]
        assert leader in (101, 102, 103)
        for node_id in OURS:
            cluster.stop(node_id)
        for kafka in mixed.kafka.values():
            kafka.stop()
    levels = finalized(cluster, 103)
    assert (levels["metadata.version"], levels["share.version"]) == (33, 2)
    logs = [log_bytes(node.data / "__cluster_metadata-0") for node in cluster.layout.nodes]
    longest = max(logs, key=len)
    assert [log for log in logs if not longest.startswith(log)] == []
