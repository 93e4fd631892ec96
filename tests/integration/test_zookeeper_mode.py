"""Each ZooKeeper design as real processes: used, broken and mended; all of them on one ZooKeeper.

The tests are one story in their order, told of one cluster a design. The peaceful part of one
design belongs to the fast suite, all else to `make extra`.
"""

import http.client
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

from jepsen_like.real.layout import NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.zookeeper import ZooKeeper, missing_reason
from quorumlab import cluster_status as status
from tests.integration.real_zookeeper import started
from tests.integration.waiting import wait
from tests.integration.writing import Writer, everything
from wire.zk.designs import DESIGNS

NO_ZOOKEEPER = missing_reason()
pytestmark = pytest.mark.skipif(NO_ZOOKEEPER is not None, reason=NO_ZOOKEEPER or "")

FAST = "zk-kip497"
SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "auto.create.topics.enable": "false",
    "zookeeper.session.timeout.ms": "1500",
    "replica.lag.time.max.ms": "800",
}


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    with started(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=() if name == FAST else pytest.mark.extra) for name in DESIGNS
    ],
)
def cluster(
    request: pytest.FixtureRequest, zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalCluster]:
    design: str = request.param
    made = LocalCluster.create(
        tmp_path_factory.mktemp(design),
        brokers=3,
        design=design,
        zookeeper_connect=f"{zookeeper.connect}/{design}",
        settings=SETTINGS,
    )
    try:
        made.start_all()
        made.wait_ready()
        yield made
    finally:
        made.kill_all()


@pytest.fixture(scope="module")
def admin(cluster: LocalCluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.layout.bootstrap_servers})


@pytest.fixture(scope="module")
def orders(cluster: LocalCluster, admin: AdminClient) -> Writer:
    """What is written to the topic `orders`, whose three partitions each broker has."""
    admin.create_topics([NewTopic("orders", 3, 3)])["orders"].result(20)
    return Writer(cluster.layout.bootstrap_servers)


def controller_of(cluster: LocalCluster) -> int | None:
    active = status.active_controller(cluster)
    return None if active is None else int(active)


def leaders(admin: AdminClient) -> list[int]:
    partitions = admin.list_topics("orders", timeout=10).topics["orders"].partitions
    return [partitions[index].leader for index in range(3)]


def start(cluster: LocalCluster, *node_ids: int) -> None:
    """Start them, and wait until every replica has all that any has.

    Designs that truncate to the high watermark lose records if a replica leads before it has
    fetched again what it cut off (docs/zookeeper-mode.md): that is not what is tested here.
    """
    for node_id in node_ids:
        cluster.start(node_id)
    cluster.wait_ready(nodes=node_ids)
    wait(lambda: have_all(cluster), "all replicas are alike")


def have_all(cluster: LocalCluster) -> bool:
    """Are the logs of each partition of one length, and committed?

    Who is in sync, brokers hear late in zk-redesign.
    """
    pages = [cluster.page(node, "/v1/topics/orders") for node in cluster.layout.nodes]
    told = [each for page in pages for each in page.get("partitions", ())]
    ends = {(each["partition"], each.get("log_end"), each.get("high_watermark")) for each in told}
    are_alike = len(told) == 3 * len(pages) and len(ends) == 3
    return are_alike and all(end == committed for _, end, committed in ends)


def test_status_names_a_broker_as_the_controller_if_there_is_one(cluster: LocalCluster) -> None:
    described = status.describe(cluster)
    assert described["controllers"] == []
    has_controller = DESIGNS[cluster.layout.design].has_controller
    assert described["active_controller"] in ((1, 2, 3) if has_controller else (None,))
    assert described["zookeepers"] == [], "none of its own"
    assert json.dumps(described)


def test_nodes_tell_their_milestones_and_what_they_have_asked_of_zookeeper(
    cluster: LocalCluster, admin: AdminClient
) -> None:
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


def test_nodes_tell_which_znodes_they_saw_change(cluster: LocalCluster, admin: AdminClient) -> None:
    nodes = cluster.layout.nodes
    before = {node.id: znode_changes(cluster, node)["next"] - 1 for node in nodes}
    asked_ms = time.time() * 1000
    admin.create_topics([NewTopic("seen", 1, 3)])["seen"].result(20)

    def of_topic() -> list[dict[str, Any]]:
        pages = [znode_changes(cluster, node, before[node.id]) for node in nodes]
        assert [page["node_id"] for page in pages] == [node.id for node in nodes]
        return [each for page in pages for each in page["changes"] if "/seen" in each["path"]]

    wait(lambda: any("/seen/" in each["path"] for each in of_topic()), "its partition")
    told = of_topic()
    assert all(-1000 < each["at_ms"] - asked_ms < 60_000 for each in told), "by the wall clock"
    assert any(each["path"].endswith("/topics/seen") and each["value"] for each in told)
    node = nodes[0]
    page = znode_changes(cluster, node)
    assert any(each["path"].endswith(f"/brokers/ids/{node.id}") for each in page["changes"])
    numbers = [each["number"] for each in page["changes"]]
    assert numbers == list(range(page["first"], page["next"]))
    assert cluster.ask(node, "/v1/znode-changes?after=x", 5.0)[0] == 400
    assert cluster.ask(node, "/v1/applied?offsets=1", 5.0)[0] == 404


def znode_changes(cluster: LocalCluster, node: NodeLayout, after: int = 0) -> dict[str, Any]:
    status, page = cluster.ask(node, f"/v1/znode-changes?after={after}", 5.0)
    assert status == 200
    return dict(page)


def test_page_of_a_node_runs_over_the_znode_changes_that_it_saw(
    cluster: LocalCluster, admin: AdminClient
) -> None:
    admin.create_topics([NewTopic("paged", 1, 3)])["paged"].result(20)
    node = cluster.layout.node(controller_of(cluster) or 1)
    wait(lambda: "paged" in whole_page(node)["rows"], "the topic on the page")
    whole = whole_page(node)
    assert whole["source"]["unit"] == "change"
    assert whole["source"]["note"].startswith(f"{cluster.layout.design} has no metadata log")
    assert (whole["controllers"], whole["problem"]) == ([], "")
    assert whole["active"] == controller_of(cluster)
    made = min(number for number, text, _ in whole["log"] if "/brokers/topics/paged" in text)
    past = cluster.ask(node, f"/v1/page/past?offset={made - 1}", 10.0)[1]
    assert "paged" not in past["rows"]
    (leader, _, replicas, _) = whole["rows"]["paged"]["0"]
    assert leader in whole["lists"][replicas]

    def story() -> list[dict[str, Any]]:
        return list(cluster.ask(node, "/v1/page/story?subject=paged-0", 10.0)[1]["events"])

    def tells_of_the_leader() -> bool:
        """By its znode, which the node may read after it heard of it, or of the next one."""
        now = whole_page(node)["rows"]["paged"]["0"][0]
        return any(f"leader {now}" in each["text"] for each in story())

    wait(tells_of_the_leader, "a story that names the leader")
    assert story()[0]["offset"] == made


def whole_page(node: NodeLayout) -> dict[str, Any]:
    """Where a page begins: the first event that a browser hears."""
    connection = http.client.HTTPConnection(node.host, node.http_port, timeout=20)
    try:
        connection.request("GET", "/v1/page/events")
        stream = connection.getresponse()
        line = next(line for line in iter(stream.readline, b"") if line.startswith(b"data:"))
    finally:
        connection.close()
    return dict(json.loads(line.removeprefix(b"data:")))


def test_reassigned_partition_moves_to_the_brokers_that_a_client_names(
    cluster: LocalCluster, admin: AdminClient
) -> None:
    servers = cluster.layout.bootstrap_servers
    admin.create_topics([NewTopic("moving", 1, 2)])["moving"].result(20)
    writer = Writer(servers)
    writer.write("moving", 200)

    def replicas() -> list[int]:
        return admin.list_topics("moving", timeout=10).topics["moving"].partitions[0].replicas

    first, second = replicas()
    wanted = [second, next(each for each in (1, 2, 3) if each not in (first, second))]
    partition = TopicPartition("moving", 0)
    other = KafkaAdminClient(bootstrap_servers=servers)
    try:
        assert other.alter_partition_reassignments({partition: wanted}) == {partition: None}
        writer.write("moving", 200)
        wait(lambda: replicas() == wanted, f"a move to {wanted}")
        wait(lambda: not other.list_partition_reassignments([partition]), "its end")
    finally:
        other.close()
    left = cluster.layout.node(first).data / "moving-0"
    wait(lambda: not left.exists(), "the end of the replica that was left")
    writer.write("moving", 200)
    found = everything(servers, "moving", len(writer.acknowledged))
    assert sorted(found) == sorted(writer.acknowledged)


def test_deleted_topic_is_gone_from_every_disk(cluster: LocalCluster, admin: AdminClient) -> None:
    admin.delete_topics(["moving"])["moving"].result(20)

    def logs() -> list[Path]:
        return [log for node in cluster.layout.nodes for log in node.data.glob("moving-?")]

    wait(lambda: not logs(), "the end of all logs of a deleted topic")
    assert "moving" not in admin.list_topics(timeout=10).topics


@pytest.mark.extra
def test_partitions_outlive_a_broker_that_is_killed_and_it_comes_back(
    cluster: LocalCluster, admin: AdminClient, orders: Writer
) -> None:
    orders.write("orders", 200)
    controller = controller_of(cluster)
    killed = next(each for each in leaders(admin) if each != controller)
    cluster.kill(killed)
    orders.write("orders", 200)
    wait(lambda: killed not in leaders(admin), f"the end of {killed} as a leader")
    start(cluster, killed)


@pytest.mark.extra
def test_partitions_outlive_their_controller_or_without_one_another_leader(
    cluster: LocalCluster, admin: AdminClient, orders: Writer
) -> None:
    controller = controller_of(cluster)
    killed = leaders(admin)[0] if controller is None else controller
    cluster.kill(killed)
    if controller is not None:
        wait(lambda: controller_of(cluster) not in (None, killed), "another controller")
    orders.write("orders", 200)
    wait(lambda: killed not in leaders(admin), f"the end of {killed} as a leader")
    start(cluster, killed)


@pytest.mark.extra
def test_orderly_stop_moves_leaderships_before_the_broker_goes(
    cluster: LocalCluster, admin: AdminClient, orders: Writer
) -> None:
    controller = controller_of(cluster)
    leaving = next(each for each in leaders(admin) if each != controller)
    cluster.stop(leaving)
    assert "has left the cluster in order" in cluster.layout.node(leaving).log.read_text()
    assert leaving not in leaders(admin)
    living = [node for node in cluster.layout.nodes if node.id != leaving]
    about = [each["about"] for node in living for each in milestones(cluster, node)]
    asked = [each["id"] for each in about if each.get("what") == "controlled-shutdown"]
    assert set(asked) == ({leaving} if DESIGNS[cluster.layout.design].has_controller else set())
    orders.write("orders", 100)
    start(cluster, leaving)


@pytest.mark.extra
def test_all_that_was_acknowledged_is_there_when_all_have_stopped_and_started(
    cluster: LocalCluster, orders: Writer
) -> None:
    assert cluster.stop_all() == []
    start(cluster, 1, 2, 3)
    found = everything(cluster.layout.bootstrap_servers, "orders", len(orders.acknowledged))
    assert sorted(found) == sorted(orders.acknowledged)


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
