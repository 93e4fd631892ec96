"""A directory that Kafka formatted with its own defaults, on which our node is the first to run."""

from pathlib import Path

import pytest

from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.workload import SteadyProducer, read_back
from tests.kafka.interop import LINES, create_topic, needs_kafka
from tests.kafka.kafka_jars import format_storage
from tests.kafka.test_interop_mixed import finalized, wait_for_more
from tests.started import started

pytestmark = needs_kafka

BY_DEFAULT = {
    "4": {"metadata.version": 30, "share.version": 1},
    "4.4": {"metadata.version": 33, "share.version": 2},
}
BOTH = {
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("first_voters", [0, 1], ids=["static voters", "voters in the log"])
def test_our_node_begins_as_kafka_said(tmp_path: Path, line: str, first_voters: int) -> None:
    """Since 4.4 the first records stand in the first snapshot, voters or not (KIP-1170)."""
    cluster = LocalCluster.create(
        tmp_path / "cluster", controllers=1, brokers=1, combined=True, first_voters=first_voters
    )
    node = cluster.layout.node(1)
    cluster.configure(node)
    voters = ("--initial-controllers", cluster.layout.initial_controllers) if first_voters else ()
    format_storage(node.config, cluster.layout.cluster_id, *voters, line=line)
    servers = cluster.layout.bootstrap_servers
    with started(cluster):
        create_topic(servers, "t", [[1]])
        producer = SteadyProducer(servers, "t", 1, rate=100)
        producer.start()
        wait_for_more(producer)
        assert producer.finish() == 0
        cluster.stop(1)
        cluster.start(1)  # on a log that is not empty, beside the first snapshot
        cluster.wait_ready()
        assert read_back(servers, "t", producer.account)[1] == []
    assert finalized(cluster, 1) == BY_DEFAULT[line] | BOTH
