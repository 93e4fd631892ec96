"""A cluster of real processes on a real ZooKeeper: produced to and read while brokers die.

One design belongs to the fast suite; the others, with the same tests, to `make chaos`.
"""

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from jepsen_like.real.layout import NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.zookeeper import missing_reason
from quorumlab import cluster_status as status
from tests.integration.waiting import wait
from tests.integration.writing import Writer, everything
from wire.zk.designs import DESIGNS

NO_ZOOKEEPER = missing_reason()
pytestmark = pytest.mark.skipif(NO_ZOOKEEPER is not None, reason=NO_ZOOKEEPER or "")


FAST = "zk-kip497"


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=() if name == FAST else pytest.mark.long) for name in DESIGNS],
)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalCluster]:
    design: str = request.param
    made = LocalCluster.create(
        tmp_path_factory.mktemp(design),
        brokers=3,
        design=design,
        settings={"offsets.topic.num.partitions": "3", "auto.create.topics.enable": "false"},
    )
    try:
        made.start_all()
        made.wait_ready()
        yield made
    finally:
        made.stop_all()


def until_controlled(cluster: LocalCluster, *, but: int) -> int:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        active = status.describe(cluster)["active_controller"]
        if active not in (None, but):
            return int(active)
        time.sleep(0.05)
    raise AssertionError("nobody became the controller")


def test_status_names_zookeepers_and_a_broker_as_the_controller_if_there_is_one(
    cluster: LocalCluster,
) -> None:
    described = status.describe(cluster)
    assert described["controllers"] == []
    has_controller = DESIGNS[cluster.layout.design].has_controller
    assert described["active_controller"] in ((1, 2, 3) if has_controller else (None,))
    assert [server["role"] for server in described["zookeepers"]] == ["standalone"]
    assert json.dumps(described)


def test_nodes_tell_their_milestones_and_what_they_have_asked_of_zookeeper(
    cluster: LocalCluster,
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.layout.bootstrap_servers})
    admin.create_topics([NewTopic("counted", 3, 3)])["counted"].result(20)

    def reached(step: str) -> int:
        found = (each for node in cluster.layout.nodes for each in milestones(cluster, node))
        return sum(
            each["count"]
            for each in found
            if each["step"] == step and each["about"].get("id") == "counted"
        )

    wait(lambda: reached("persisted") == 3, "all three have a leader")
    assert reached("decided") >= 3
    counts = Counter[str]()
    for node in cluster.layout.nodes:
        counts.update(cluster.ask(node, "/v1/ledger", 5.0)[1]["counts"])
    assert "fsyncs" in counts, "making a log costs none"
    for name in ("zk.get", "zk.watches_armed", "zk.bytes_sent", "zk.bytes_received"):
        assert counts[name] > 0, name
    assert (counts["zk.check"] > 0) is DESIGNS[cluster.layout.design].guards_writes


def milestones(cluster: LocalCluster, node: NodeLayout) -> list[dict[str, Any]]:
    _, told = cluster.ask(node, "/v1/milestones", 5.0)
    return list(told["milestones"])


@pytest.mark.extra
def test_zookeeper_that_is_far_away_makes_each_write_take_that_long(tmp_path: Path) -> None:
    delay_ms, partitions = 10, 20
    made = LocalCluster.create(tmp_path, brokers=1, design="zk-v3", zookeeper_delay_ms=delay_ms)
    try:
        made.start_all()
        made.wait_ready()
        admin = AdminClient({"bootstrap.servers": made.layout.bootstrap_servers})
        admin.create_topics([NewTopic("t", partitions, 1)])["t"].result(20)
        (node,) = made.layout.nodes
        at_ns: dict[str, int] = {}

        def is_persisted() -> bool:
            found = milestones(made, node)
            at_ns.update({e["step"]: e["at_ns"] for e in found if e["about"].get("id") == "t"})
            return "persisted" in at_ns

        wait(is_persisted, "all are written")
        took_ms = (at_ns["persisted"] - at_ns["decided"]) / 1e6
        assert took_ms > partitions * delay_ms, "one write after the other"
    finally:
        made.stop_all()


def test_what_was_acknowledged_outlives_leader_and_controller(cluster: LocalCluster) -> None:
    """Without a controller, two leaders."""
    servers = cluster.layout.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic("orders", 3, 3)])["orders"].result(20)
    writer = Writer(servers)
    writer.write("orders", 300)

    controller = status.describe(cluster)["active_controller"]
    partitions = admin.list_topics("orders", timeout=10).topics["orders"].partitions
    leader = next(each.leader for each in partitions.values() if each.leader != controller)
    cluster.kill(leader)
    writer.write("orders", 300)
    cluster.start(leader)
    cluster.wait_ready()
    # Designs that truncate to the high watermark lose records if a replica leads before it has
    # fetched again what it cut off (docs/zookeeper-mode.md): that is not what is tested here.
    writer.write_to_each("orders", 3)

    second = (
        next(each for each in (1, 2, 3) if each != leader) if controller is None else controller
    )
    cluster.kill(second)
    if controller is not None:
        until_controlled(cluster, but=controller)
    writer.write("orders", 300)
    cluster.start(second)
    cluster.wait_ready()

    found = everything(servers, "orders", len(writer.acknowledged))
    assert sorted(found) == sorted(writer.acknowledged)


def test_orderly_stop_moves_leaderships_before_the_broker_goes(cluster: LocalCluster) -> None:
    servers = cluster.layout.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    writer = Writer(servers)
    controller = status.describe(cluster)["active_controller"]
    leaving = next(node.id for node in cluster.layout.nodes if node.id != controller)
    cluster.stop(leaving)
    log = Path(cluster.layout.node(leaving).log).read_text()
    assert "has left the cluster in order" in log
    partitions = admin.list_topics("orders", timeout=10).topics["orders"].partitions
    assert leaving not in [each.leader for each in partitions.values()]
    writer.write("orders", 100)
    cluster.start(leaving)
    cluster.wait_ready()


def test_reassigned_partition_moves_to_the_brokers_that_a_client_names(
    cluster: LocalCluster,
) -> None:
    from kafka import TopicPartition
    from kafka.admin import KafkaAdminClient

    if not DESIGNS[cluster.layout.design].has_controller:
        pytest.skip("there, leaders reassign")
    servers = cluster.layout.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic("moving", 1, 2)])["moving"].result(20)
    writer = Writer(servers)
    writer.write("moving", 200)

    def replicas() -> list[int]:
        return admin.list_topics("moving", timeout=10).topics["moving"].partitions[0].replicas

    first, second = replicas()
    wanted = [second, next(each for each in (1, 2, 3) if each not in (first, second))]
    other = KafkaAdminClient(bootstrap_servers=servers)
    try:
        partition = TopicPartition("moving", 0)
        assert other.alter_partition_reassignments({partition: wanted}) == {partition: None}
        writer.write("moving", 200)
        deadline = time.monotonic() + 20
        while (
            other.list_partition_reassignments([partition])
            or replicas() != wanted
            or (cluster.layout.node(first).data / "moving-0").exists()
        ):
            assert time.monotonic() < deadline, (replicas(), wanted)
            time.sleep(0.1)
    finally:
        other.close()
    writer.write("moving", 200)
    found = everything(servers, "moving", len(writer.acknowledged))
    assert sorted(found) == sorted(writer.acknowledged)


def test_deleted_topic_is_gone_from_every_disk(cluster: LocalCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.layout.bootstrap_servers})
    admin.delete_topics(["orders"])["orders"].result(20)
    deadline = time.monotonic() + 20
    while any(list(node.data.glob("orders-?")) for node in cluster.layout.nodes):
        assert time.monotonic() < deadline, "logs of a deleted topic are still there"
        time.sleep(0.1)
    assert "orders" not in admin.list_topics(timeout=10).topics
