"""A flood of clients delays neither heartbeats, nor follower fetches, nor elections.

The flood is more than the nodes can serve: every connection always has as many requests
outstanding as it may. Without priority they would stand before all that keeps the cluster alive.
"""

import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Self

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from jepsen_like.real.layout import NodeLayout
from jepsen_like.real.local_cluster import LocalCluster

pytestmark = pytest.mark.extra  # a flood takes the whole machine

TOPIC = "flooded"
PARTITIONS = 300  # what a Metadata response has to tell, each time
FLOOD_SECONDS = 6.0  # more than two sessions
CONNECTIONS = 40  # of a flood, each with as many requests outstanding as a node accepts
METADATA_OF_ALL = struct.pack(">hhihi", 3, 1, 1, -1, -1)
DESCRIBE_CLUSTER = struct.pack(">hhih", 60, 0, 1, -1) + b"\0\0\0"


class Flood:
    """One request again and again, on many connections, as fast as the node takes it."""

    def __init__(self, port: int, request: bytes) -> None:
        self._frames = (struct.pack(">i", len(request)) + request) * 100
        self._sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(CONNECTIONS)]
        self._sent = dict.fromkeys(range(CONNECTIONS), 0)  # bytes, to go on within a frame
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        for connection in self._sockets:
            connection.setblocking(False)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()
        for connection in self._sockets:
            connection.close()

    def _run(self) -> None:
        while not self._stop.wait(0.005):
            for index, connection in enumerate(self._sockets):
                with suppress(BlockingIOError):
                    connection.recv(1 << 20)
                with suppress(BlockingIOError):
                    at = self._sent[index] % len(self._frames)
                    self._sent[index] += connection.send(self._frames[at:])


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
    running = LocalCluster.create(directory, controllers=3, brokers=2, settings=patient)
    try:
        running.start_all()
        running.wait_ready()
        admin = AdminClient({"bootstrap.servers": running.layout.bootstrap_servers})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 2)])[TOPIC].result(15)
        yield running
    finally:
        running.stop_all()


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
