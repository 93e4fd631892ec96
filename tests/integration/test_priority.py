"""A flood of clients delays neither heartbeats, nor follower fetches, nor commands of a controller.

The flood is more than the nodes can serve: every connection always has as many requests
outstanding as it may. Without priority they would stand before all that keeps the cluster alive.
"""

import json
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from jepsen_like.real.kafka_client import Client
from jepsen_like.real.layout import NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.zookeeper import missing_reason
from quorumlab.cluster_status import active_controller, describe
from quorumlab.compare.flood import METADATA_OF_ALL, Flood
from tests.integration.waiting import wait
from tests.started import started
from wire.errors import ErrorCode
from wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

pytestmark = pytest.mark.extra  # a flood takes the whole machine

TOPIC = "flooded"
PARTITIONS = 300  # what a Metadata response has to tell, each time
FLOOD_SECONDS = 6.0  # more than two sessions
DESCRIBE_CLUSTER = struct.pack(">hhih", 60, 0, 1, -1) + b"\0\0\0"


def page(cluster: LocalCluster, node: NodeLayout) -> dict[str, Any]:
    status, value = cluster.ask(node, "/v1/node", timeout_seconds=10)
    assert status == 200
    assert isinstance(value, dict), json.dumps(value)
    return value


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    directory = tmp_path_factory.mktemp("flooded")
    # Longer than a machine may take that is busy with other tests, too.
    patient = {"controller.quorum.fetch.timeout.ms": "2500", "broker.session.timeout.ms": "2500"}
    with started(
        LocalCluster.create(directory, controllers=3, brokers=2, settings=patient)
    ) as running:
        admin = AdminClient({"bootstrap.servers": running.layout.bootstrap_servers})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 2)])[TOPIC].result(15)
        yield running


def test_flood_of_clients_does_not_delay_the_control_plane(cluster: LocalCluster) -> None:
    brokers = cluster.layout.brokers
    controller = next(
        node
        for node in cluster.layout.controllers
        if page(cluster, node)["quorum"]["role"] == "leader"
    )
    producer = Producer(
        {"bootstrap.servers": cluster.layout.bootstrap_servers, "acks": "all", "linger.ms": 20}
    )
    producer.produce(TOPIC, b"first")
    assert producer.flush(15) == 0
    before = {node.id: page(cluster, node) for node in cluster.layout.nodes}
    failed: list[object] = []
    with (
        Flood(brokers[0].port, METADATA_OF_ALL),
        Flood(brokers[1].port, METADATA_OF_ALL),
        Flood(controller.port, DESCRIBE_CLUSTER),
    ):
        until = time.monotonic() + FLOOD_SECONDS
        while time.monotonic() < until:
            for number in range(100):
                producer.produce(
                    TOPIC,
                    b"%d" % number,
                    partition=number % PARTITIONS,
                    on_delivery=lambda error, _: failed.append(error) if error else None,
                )
            producer.poll(0.2)
        after = {node.id: page(cluster, node) for node in cluster.layout.nodes}
    assert producer.flush(30) == 0
    assert failed == []

    active = after[controller.id]
    assert active["quorum"]["epoch"] == before[controller.id]["quorum"]["epoch"], "an election"
    assert active["metadata"]["fenced_brokers"] == 0
    assert active["metadata"]["under_replicated_partitions"] == 0
    log = controller.log.read_text()
    assert "fenced broker=" not in log, "not even for a moment"
    assert_control_requests_were_served(active["driver"], before[controller.id]["driver"])
    for broker in brokers:
        driver = after[broker.id]["driver"]
        assert driver["client_queue_longest"] > 1000, "the flood was none"
        fetches = driver["answered"]["fetch"] - before[broker.id]["driver"]["answered"]["fetch"]
        assert fetches > 5, "of the follower"


def assert_control_requests_were_served(after: dict[str, Any], before: dict[str, Any]) -> None:
    """Two brokers, a heartbeat each 400 ms: most of them came, and all were answered soon."""
    served = after["answered"]["broker_heartbeat"] - before["answered"]["broker_heartbeat"]
    assert served > FLOOD_SECONDS / 0.4

    def mean_seconds(api: str) -> float:
        return float(after["request_seconds"][api] / after["answered"][api])

    assert mean_seconds("broker_heartbeat") < mean_seconds("describe_cluster"), "clients waited"


# --- ZooKeeper ------------------------------------------------------------------------------

PRIORITISED = ("leader_and_isr", "update_metadata", "stop_replica")
BACKLOG = 1000  # requests of clients that wait in a broker


def ask(broker: NodeLayout, request: object, expected: type[Any]) -> Any:
    with Client([(broker.host, broker.port)], timeout_seconds=60) as client:
        return client.ask(request, expected)


def create(broker: NodeLayout, name: str, replicas: tuple[int, ...], partitions: int = 1) -> None:
    placed = tuple(
        CreatableReplicaAssignment(partition_index=index, broker_ids=replicas)
        for index in range(partitions)
    )
    request = CreateTopicsRequest(
        topics=(CreatableTopic(name=name, assignments=placed),), timeout_ms=1000
    )
    (told,) = ask(broker, request, CreateTopicsResponse).topics
    assert told.error_code in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT), told


def delete(broker: NodeLayout, name: str) -> None:
    request = DeleteTopicsRequest(topics=(DeleteTopicState(name=name),), timeout_ms=1000)
    (told,) = ask(broker, request, DeleteTopicsResponse).responses
    assert told.error_code in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT), told


@pytest.mark.skipif(missing_reason() is not None, reason=missing_reason() or "")
@pytest.mark.parametrize("without", ["", "prioritised-commands"], ids=["with", "without"])
def test_commands_of_a_zookeeper_controller_overtake_a_backlog_of_clients(
    tmp_path: Path, without: str
) -> None:
    """The controller itself is left alone: what is measured is how long two brokers let it wait."""
    with started(
        LocalCluster.create(
            tmp_path,
            brokers=3,
            design="zk-redesign",
            settings={
                "zookeeper.session.timeout.ms": "20000",
                "controller.socket.timeout.ms": "30000",
                "quorumlab.zk.without": without,
            },
        )
    ) as cluster:
        assert describe(cluster)["without"] == [without] * bool(without)
        waited, clients_waited = seconds_waited(cluster)
    for api in PRIORITISED:
        if without:
            assert waited[api] > clients_waited / 2, (waited, clients_waited)
        else:
            assert waited[api] < clients_waited / 4, (waited, clients_waited)


def seconds_waited(cluster: LocalCluster) -> tuple[dict[str, float], float]:
    """The longest mean time of two flooded brokers to answer each command, and the clients."""
    controller = cluster.layout.node(active_controller(cluster) or -1)
    flooded = [node for node in cluster.layout.brokers if node is not controller]
    create(controller, TOPIC, (controller.id,), PARTITIONS)
    replicas = tuple(node.id for node in flooded)
    before: dict[int, dict[str, Any]] = {}

    def drivers() -> dict[int, dict[str, Any]]:
        return {node.id: page(cluster, node)["driver"] for node in flooded}

    def have_answered(*apis: str) -> bool:
        now = drivers()
        return all(
            now[node]["answered"].get(api, 0) > before[node]["answered"].get(api, 0)
            for node in now
            for api in apis
        )

    wait(lambda: all(each["answered"].get("update_metadata") for each in drivers().values()), TOPIC)
    with ExitStack() as floods:
        for node in flooded:
            floods.enter_context(Flood(node.port))
        wait(
            lambda: min(each["client_queue_longest"] for each in drivers().values()) > BACKLOG,
            "a backlog",
        )
        before = drivers()
        create(controller, "asked", replicas)
        wait(lambda: have_answered("leader_and_isr", "update_metadata"), "a leader", 60)
        delete(controller, "asked")
        wait(lambda: have_answered("stop_replica"), "stopped", 60)
        after = drivers()

    def mean_seconds(node: int, api: str) -> float:
        spent, count = (
            after[node][key].get(api, 0) - before[node][key].get(api, 0)
            for key in ("request_seconds", "answered")
        )
        return float(spent / count)

    means = {api: max(mean_seconds(each, api) for each in after) for api in PRIORITISED}
    return means, min(mean_seconds(each, "metadata") for each in after)
