"""A cluster on a ZooKeeper of three servers that is not its own, one of which dies."""

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.zookeeper import ZooKeeper, missing_reason
from tests.integration.real_zookeeper import started
from tests.integration.writing import Writer, everything

NO_ZOOKEEPER = missing_reason()
pytestmark = [
    pytest.mark.extra,
    pytest.mark.skipif(NO_ZOOKEEPER is not None, reason=NO_ZOOKEEPER or ""),
]


@pytest.fixture
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    with started(tmp_path_factory.mktemp("zookeeper"), count=3) as running:
        yield running


def test_cluster_outlives_the_leader_of_another_ones_ensemble(
    zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cluster = LocalCluster.create(
        tmp_path_factory.mktemp("brokers"),
        brokers=3,
        design="zk-kip497",
        zookeeper_connect=zookeeper.connect,
        settings={"offsets.topic.num.partitions": "3"},
    )
    try:
        cluster.start_all()
        cluster.wait_ready()
        servers = cluster.layout.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers})
        admin.create_topics([NewTopic("orders", 3, 3)])["orders"].result(20)
        writer = Writer(servers)
        writer.write("orders", 200)

        leading = next(each for each in zookeeper.servers if zookeeper.role(each) == "leader")
        zookeeper.kill(leading.id)
        writer.write("orders", 200)
        cluster.wait_ready()
        admin.create_topics([NewTopic("later", 1, 3)])["later"].result(20)
        writer.write("later", 1)

        assert len(everything(servers, "orders", 400)) == 400
    finally:
        cluster.stop_all()
