"""kill -9 each role in turn under load: nothing acknowledged is lost, and the replicas agree."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jepsen_like.real.layout import NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab import cluster_status as status
from quorumlab.workload import SteadyProducer, read_back
from tests.integration.waiting import wait
from tests.started import started
from wire import batch

PARTITIONS = 3
TOPIC = "orders"


@pytest.fixture
def fragile(tmp_path: Path) -> Iterator[LocalCluster]:
    with started(LocalCluster.create(tmp_path / "cluster", controllers=3, brokers=3)) as running:
        yield running


def partitions(cluster: LocalCluster) -> list[dict[str, Any]]:
    for node in cluster.layout.brokers:
        if cluster.process(node) is not None:
            code, page = cluster.ask(node, f"/v1/topics/{TOPIC}")
            if code == 200:
                rows: list[dict[str, Any]] = page["partitions"]
                return rows
    return []


def all_in_sync(cluster: LocalCluster) -> bool:
    rows = partitions(cluster)
    return bool(rows) and all(len(row["isr"]) == 3 for row in rows)


def revive(cluster: LocalCluster, node_id: int) -> None:
    cluster.start(node_id)
    cluster.wait_ready(nodes=(node_id,))
    wait(lambda: all_in_sync(cluster), f"replicas in sync after the restart of {node_id}")


def test_no_acknowledged_record_is_lost_when_each_role_is_killed(
    fragile: LocalCluster, make_topic: Callable[..., str]
) -> None:
    servers = fragile.layout.bootstrap_servers
    make_topic(servers, TOPIC, PARTITIONS, min_insync_replicas="2")
    producer = SteadyProducer(servers, TOPIC, PARTITIONS, rate=300)
    producer.start()
    wait(lambda: len(producer.account.acknowledged) > 50, "the first acknowledgements")

    leader = int(partitions(fragile)[0]["leader"])
    fragile.kill(leader)
    wait(lambda: partitions(fragile)[0]["leader"] not in (leader, -1), "a new leader")
    during = status.describe(fragile)
    assert not status.is_healthy(during)
    assert during["under_replicated_partitions"] == PARTITIONS
    dead = next(broker for broker in during["brokers"] if broker["id"] == leader)
    assert dead["state"] == "dead", "a dead broker is still listed"
    revive(fragile, leader)

    active = int(status.describe(fragile)["active_controller"])
    fragile.kill(active)
    wait(lambda: status.describe(fragile)["active_controller"] not in (active, None), "election")
    revive(fragile, active)

    standby = next(
        node.id
        for node in fragile.layout.controllers
        if node.id != status.describe(fragile)["active_controller"]
    )
    fragile.kill(standby)
    revive(fragile, standby)

    follower = next(
        node.id for node in fragile.layout.brokers if node.id != partitions(fragile)[0]["leader"]
    )
    fragile.kill(follower)
    revive(fragile, follower)

    assert producer.finish() == 0, "records without any answer"
    account = producer.account
    assert len(account.acknowledged) > 500, "too little was written for the test to mean anything"
    _, broken = read_back(servers, TOPIC, account)
    assert broken == []
    wait(lambda: status.is_healthy(status.describe(fragile)), "a healthy cluster")
    fragile.stop_all()
    assert_replicas_agree(fragile.layout.brokers, account.acknowledged)


def stored(node: NodeLayout, partition: int) -> dict[int, bytes]:
    """Offset -> the batch that holds it, of one replica."""
    found: dict[int, bytes] = {}
    for segment in sorted((node.data / f"{TOPIC}-{partition}").glob("*.log")):
        content = segment.read_bytes()
        for position, header in batch.headers(content):
            whole = content[position : position + header.size_bytes]
            for offset in range(header.base_offset, header.next_offset):
                found[offset] = whole
    return found


def assert_replicas_agree(
    brokers: tuple[NodeLayout, ...], acknowledged: dict[tuple[int, int], bytes]
) -> None:
    for partition in range(PARTITIONS):
        logs = [stored(node, partition) for node in brokers]
        for place, offset in acknowledged:
            if place == partition:
                assert all(offset in log for log in logs), (partition, offset)
        for offset in set(logs[0]) & set(logs[1]) & set(logs[2]):
            assert logs[0][offset] == logs[1][offset] == logs[2][offset], (partition, offset)


@pytest.fixture
def led(tmp_path: Path) -> Iterator[LocalCluster]:
    with started(LocalCluster.create(tmp_path / "cluster", controllers=3, brokers=1)) as running:
        yield running


def test_a_controller_without_a_majority_does_not_tell_what_it_has_not_read(
    led: LocalCluster, make_topic: Callable[..., str]
) -> None:
    make_topic(led.layout.bootstrap_servers, TOPIC, 1, replicas=1)
    first, *others = led.layout.controllers
    wait(lambda: led.ask(first, "/v1/topics") == (200, {"topics": [TOPIC]}), "the topic")
    for controller in led.layout.controllers:
        led.kill(controller.id)
    led.start(first.id)
    unread = {"error": "this node has not read yet what is committed"}
    wait(lambda: led.ask(first, "/v1/topics") == (503, unread), "an answer without topics")
    assert led.ask(first, f"/v1/topics/{TOPIC}") == (503, unread)
    for controller in others:
        led.start(controller.id)
    wait(lambda: led.ask(first, "/v1/topics") == (200, {"topics": [TOPIC]}), "the topic again")
