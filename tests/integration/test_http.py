"""The HTTP side of nodes: health that tells the truth, and numbers that move when they should."""

import asyncio
import http.client
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from prometheus_client.parser import text_string_to_metric_families

from jepsen_like.real.kafka_client import Client
from jepsen_like.real.layout import NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.in_process import InProcessCluster
from tests.integration.waiting import wait
from tests.started import started
from wire.messages.registration import BrokerHeartbeatRequest, BrokerHeartbeatResponse

CONTROLLER = "kafka_controller_kafkacontroller_"
RAFT = "kafka_server_raft_metrics_"
REPLICAS = "kafka_server_replicamanager_"
REQUESTS = "kafka_network_requestmetrics_requests_total"
BROKER_STATE = "kafka_server_kafkaserver_brokerstate"
TOPIC = "measured"


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """One controller and two brokers, whose heartbeats are rare: a fenced one stays so a while."""
    slow = {"broker.heartbeat.interval.ms": "1000", "broker.session.timeout.ms": "3000"}
    directory = tmp_path_factory.mktemp("split")
    with started(
        LocalCluster.create(directory, controllers=1, brokers=2, settings=slow)
    ) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.layout.bootstrap_servers})
        admin.create_topics([NewTopic(TOPIC, 2, 2)])[TOPIC].result(15)
        wait(lambda: leaders(cluster) == 2, "two leaders")
        yield cluster


def leaders(cluster: LocalCluster) -> float:
    return sum(metrics(node).get(REPLICAS + "leadercount", 0) for node in cluster.layout.brokers)


def get(node: NodeLayout, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(node.host, node.http_port, timeout=5)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def metrics(node: NodeLayout) -> dict[str, float]:
    """By name, with the value of the label, if there is one, in brackets."""
    status, page = get(node, "/metrics")
    assert status == 200
    return parse(page.decode())


def parse(page: str) -> dict[str, float]:
    found = {}
    for family in text_string_to_metric_families(page):
        assert family.documentation, family.name
        for sample in family.samples:
            labels = "".join(f"[{value}]" for value in sample.labels.values())
            found[sample.name + labels] = sample.value
    return found


# --- health -----------------------------------------------------------------------------------


def test_health_of_a_well_cluster(split: LocalCluster) -> None:
    (controller,), brokers = split.layout.controllers, split.layout.brokers
    for node in split.layout.nodes:
        assert get(node, "/livez") == (200, b"ok")
        for path in ("/readyz", "/v1/ready"):
            assert get(node, path) == (200, b'{"ready": true}\n')
        assert get(node, "/v1/nothing")[0] == 404
    assert get(controller, "/v1/controller-ready") == (204, b"")
    status, page = get(brokers[0], "/v1/controller-ready")
    assert (status, json.loads(page)) == (404, {"error": "this node is not a controller"})


def test_fenced_broker_lives_but_is_not_ready(split: LocalCluster) -> None:
    (controller,), (broker, other) = split.layout.controllers, split.layout.brokers
    epoch = json.loads(get(broker, "/v1/node")[1])["broker"]["broker_epoch"]
    assert controller.controller_port is not None
    fence = BrokerHeartbeatRequest(
        broker_id=broker.id,
        broker_epoch=epoch,
        current_metadata_offset=0,
        want_fence=True,
        want_shut_down=False,
    )
    with Client([(controller.host, controller.controller_port)]) as client:

        def is_seen() -> bool:
            """Fenced again for each look, since the broker's own next heartbeat ends it."""
            client.ask(fence, BrokerHeartbeatResponse)
            code, reason = get(broker, "/readyz")
            assert get(broker, "/livez")[0] == 200
            assert get(other, "/readyz")[0] == 200
            count = metrics(controller)[CONTROLLER + "fencedbrokercount"]
            return (code, b"the broker is fenced" in reason, count) == (503, True, 1)

        wait(is_seen, "the fenced broker is not ready, and counted")
    wait(lambda: get(broker, "/readyz")[0] == 200, "it is back at its next heartbeat")


def test_brokers_are_not_ready_while_the_quorum_is_lost(split: LocalCluster) -> None:
    (controller,), brokers = split.layout.controllers, split.layout.brokers
    split.pause(controller.id)
    try:
        for broker in brokers:
            wait(lambda broker=broker: get(broker, "/readyz")[0] == 503, "no quorum, not ready")  # type: ignore[misc]
            assert b"hears of no leader" in get(broker, "/readyz")[1]
            assert get(broker, "/livez")[0] == 200
    finally:
        split.resume(controller.id)
    split.wait_ready()


def test_controllers_without_a_majority_live_but_are_not_ready(tmp_path: Path) -> None:
    async def status(session: aiohttp.ClientSession, node: NodeLayout, path: str) -> int:
        async with session.get(f"http://{node.host}:{node.http_port}{path}") as answer:
            return answer.status

    async def test() -> None:
        async with (
            InProcessCluster(tmp_path, controllers=3, brokers=1) as cluster,
            aiohttp.ClientSession() as session,
        ):
            last, *others = cluster.layout.controllers
            assert await status(session, last, "/v1/controller-ready") == 204
            for node in others:
                await cluster.stop(node.id)
            async with asyncio.timeout(20):
                while await status(session, last, "/v1/controller-ready") != 503:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            assert await status(session, last, "/readyz") == 503
            assert await status(session, last, "/livez") == 200

    asyncio.run(test())


# --- numbers ----------------------------------------------------------------------------------


def test_metrics_of_a_controller(split: LocalCluster) -> None:
    (controller,) = split.layout.controllers
    found = metrics(controller)
    expected = {
        "activecontrollercount": 1,
        "activebrokercount": 2,
        "fencedbrokercount": 0,
        "globaltopiccount": 1,
        "globalpartitioncount": 2,
        "offlinepartitionscount": 0,
    }
    assert {name: found[CONTROLLER + name] for name in expected} == expected
    assert found[RAFT + "current_leader"] == found[RAFT + "current_vote"] == controller.id
    assert found[RAFT + "current_state[leader]"] == 1
    assert found[RAFT + "current_epoch"] >= 1
    assert 0 < found[RAFT + "high_watermark"] <= found[RAFT + "log_end_offset"]
    assert found[CONTROLLER + "lastappliedrecordoffset"] > 0
    assert found["quorumlab_storage_syncs_total"] > 0
    assert not any(name.startswith(REPLICAS) for name in found)
    before = found[REQUESTS + "[BrokerHeartbeat]"]
    wait(lambda: metrics(controller)[REQUESTS + "[BrokerHeartbeat]"] > before, "heartbeats count")
    name = RAFT + "high_watermark"
    wait(lambda: metrics(controller)[name] > found[name], "a no-op record is committed")


def test_metrics_of_a_broker(split: LocalCluster) -> None:
    brokers = split.layout.brokers
    for broker in brokers:
        found = metrics(broker)
        assert not any(name.startswith(CONTROLLER) for name in found), "boards add these up"
        assert found[BROKER_STATE] == 3
        assert found[REPLICAS + "partitioncount"] == 2
        assert found[REPLICAS + "underreplicatedpartitions"] == 0
        assert found[REPLICAS + "underminisrpartitioncount"] == 0
        assert found[REPLICAS + "offlinereplicacount"] == 0
        assert found[RAFT + "current_state[follower]"] == 1
    assert leaders(split) == 2


def milestones(node: NodeLayout) -> list[dict[str, Any]]:
    status, page = get(node, "/v1/milestones")
    assert status == 200
    told = json.loads(page)
    assert all(each["at_ns"] < told["now_ns"] for each in told["milestones"])
    return list(told["milestones"])


def test_milestones_of_a_topic_go_from_the_controller_to_every_broker(
    split: LocalCluster,
) -> None:
    (controller,) = split.layout.controllers
    found = [each for each in milestones(controller) if each["about"].get("id") == TOPIC]
    steps = [(each["step"], each["count"]) for each in found]
    assert steps == [("detected", 0), ("decided", 2), ("persisted", 2), ("told", 2)]
    assert [each["at_ns"] for each in found] == sorted(each["at_ns"] for each in found)
    offset = found[-1]["about"]["offset"]
    for broker in split.layout.brokers:
        applied = next(
            each
            for each in milestones(broker)
            if each["step"] == "applied" and each["about"]["offset"] >= offset
        )
        assert applied["at_ns"] > found[1]["at_ns"], "one clock for all processes"
    ready = [each["step"] for each in milestones(controller) if "epoch" in each["about"]]
    assert ready == ["elected", "ready"]


def test_ledger_counts_records_requests_bytes_and_syncs(split: LocalCluster) -> None:
    (controller,), brokers = split.layout.controllers, split.layout.brokers

    def ledger(node: NodeLayout) -> dict[str, int]:
        return dict(json.loads(get(node, "/v1/ledger")[1])["counts"])

    found = ledger(controller)
    assert found["rpc.received.CreateTopics"] == 1
    assert found["log.records"] > 0
    assert found["fsyncs"] > 0
    assert found["rpc.bytes_received.Fetch"] > 0
    assert not any(name.startswith("zk.") for name in found)
    assert sum(ledger(node)["rpc.sent.BrokerHeartbeat"] for node in brokers) > 0
    for node in split.layout.nodes:
        told = ledger(node)
        for name in ("rpc.bytes_sent", "rpc.bytes_received"):
            by_api = [count for each, count in told.items() if each.startswith(name + ".")]
            assert told[name] == sum(by_api) > 0


def test_all_nodes_tell_when_they_applied_an_offset(split: LocalCluster) -> None:
    """The topic's own records, which every process applied while it ran: the times agree."""
    (controller,) = split.layout.controllers
    decided = [each for each in milestones(controller) if each["about"].get("id") == TOPIC]
    offset = decided[-1]["about"]["offset"]
    asked_ms = time.time() * 1000

    def applied(node: NodeLayout) -> dict[str, Any]:
        status, page = get(node, f"/v1/applied?offsets={offset},{1 << 40}")
        assert status == 200
        return dict(json.loads(page))

    wait(lambda: all(applied(each)["next_offset"] > offset for each in split.layout.nodes), "all")
    pages = [applied(node) for node in split.layout.nodes]
    assert [page["node_id"] for page in pages] == [node.id for node in split.layout.nodes]
    assert [page["oldest"] for page in pages] == [0, 0, 0]
    assert [page["applied_ms"][str(1 << 40)] for page in pages] == [None, None, None]
    times = [page["applied_ms"][str(offset)] for page in pages]
    assert max(times) - min(times) < 1000
    assert 0 < asked_ms - max(times) < 300_000, "by the wall clock, since the fixture began"
    for query in ("", "?offsets=x", "?offsets=" + ",".join(["1"] * 1001)):
        status, page = get(controller, f"/v1/applied{query}")
        assert (status, list(json.loads(page))) == (400, ["error"])
    assert get(controller, "/v1/znode-changes")[0] == 404


def test_metrics_count_what_producers_send(split: LocalCluster) -> None:
    leader = max(split.layout.brokers, key=lambda node: metrics(node)[REPLICAS + "leadercount"])
    name = REQUESTS + "[Produce]"
    before = metrics(leader).get(name, 0)
    producer = Producer({"bootstrap.servers": split.layout.bootstrap_servers, "acks": "all"})
    for partition in range(2):
        producer.produce(TOPIC, b"counted", partition=partition)
    assert producer.flush(15) == 0
    found = metrics(leader)
    assert found[name] > before
    took = "kafka_network_requestmetrics_totaltimems"
    assert 0 < found[f"{took}_count[Produce]"] <= found[name]
    assert found[f"{took}_sum[Produce]"] > 0


def test_node_and_topic_are_described(split: LocalCluster) -> None:
    (controller,), (broker, _) = split.layout.controllers, split.layout.brokers
    pages = [json.loads(get(node, "/v1/node")[1]) for node in (controller, broker)]
    assert [page["node_id"] for page in pages] == [controller.id, broker.id]
    assert [page["roles"] for page in pages] == [["controller"], ["broker"]]
    assert ["broker" in page for page in pages] == [False, True]
    assert [page["quorum"]["role"] for page in pages] == ["leader", "follower"]
    assert [b["id"] for b in pages[0]["metadata"]["brokers"]] == [1, 2]
    for node in (controller, broker):
        status, body = get(node, f"/v1/topics/{TOPIC}")
        topic = json.loads(body)
        assert (status, topic["name"]) == (200, TOPIC)
        assert [row["partition"] for row in topic["partitions"]] == [0, 1]
        assert all(sorted(row["isr"]) == [1, 2] for row in topic["partitions"])
        assert get(node, "/v1/topics") == (200, b'{"topics": ["%s"]}\n' % TOPIC.encode())
        assert get(node, "/v1/topics/absent") == (404, b'{"error": "no topic \'absent\'"}\n')


def test_numbers_tell_of_a_dead_broker(split: LocalCluster) -> None:
    (controller,), (broker, dead) = split.layout.controllers, split.layout.brokers
    split.kill(dead.id)
    try:
        name = REPLICAS + "underreplicatedpartitions"
        wait(lambda: metrics(broker)[name] == 2, "both partitions are led here, and alone")
        found = metrics(controller)
        assert found[CONTROLLER + "activebrokercount"] == 1
        assert found[CONTROLLER + "fencedbrokercount"] == 1
        assert found[CONTROLLER + "offlinepartitionscount"] == 0
        assert metrics(broker)[REPLICAS + "leadercount"] == 2
    finally:
        split.start(dead.id)
        split.wait_ready()
    wait(lambda: metrics(broker)[name] == 0, "all in sync again")
    assert metrics(controller)[CONTROLLER + "fencedbrokercount"] == 0


def test_combined_node_has_both_sides(tmp_path: Path) -> None:
    async def test() -> dict[str, float]:
        async with (
            InProcessCluster(tmp_path, controllers=1, brokers=1, combined=True) as cluster,
            aiohttp.ClientSession(f"http://127.0.0.1:{cluster.layout.nodes[0].http_port}") as http,
        ):
            async with http.get("/v1/controller-ready") as ready:
                assert ready.status == 204
            async with http.get("/metrics") as page:
                assert page.content_type == "text/plain"
                return parse(await page.text())

    found = asyncio.run(test())
    assert found[CONTROLLER + "activecontrollercount"] == 1
    assert found[BROKER_STATE] == 3
