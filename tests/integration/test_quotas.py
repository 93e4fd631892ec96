"""Quotas as real clients meet them: on a broker and a controller, all in one process."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import urlopen

import pytest
from confluent_kafka import Producer
from kafka import KafkaConsumer, TopicPartition

from controller.quotas.throttle import ClientThrottle
from jepsen_like.real.kafka_client import Client
from quorumlab.in_process import InProcessCluster
from quorumlab.node import Node
from tests.integration.waiting import wait
from wire.errors import ErrorCode
from wire.messages.client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterEntryData,
    EntityData,
    OpData,
)
from wire.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

OWN_ID = "quorumlab"  # the client id of `Client`
TOPIC = "t"
# A quota is used up by what it allows in a second; clients then wait for fractions of one.
SETTINGS = {"quota.window.num": "2", "controller.quota.window.num": "2"}


class Cluster:
    def __init__(self, running: InProcessCluster) -> None:
        self.servers = running.bootstrap_servers
        self.broker, self.controller = (
            running.nodes[1],
            running.nodes[running.layout.controllers[0].id],
        )
        host, _, port = self.servers.partition(":")
        self._address = (host, int(port))

    def ask(self, request: object, expected: type[Any]) -> Any:
        with Client([self._address]) as client:
            return client.ask(request, expected)

    def limit(self, client_id: str, key: str, value: float | None) -> None:
        """Set or remove a quota, and wait until the broker knows."""
        entry = AlterEntryData(
            entity=(EntityData(entity_type="client-id", entity_name=client_id),),
            ops=(OpData(key=key, value=value or 0.0, remove=value is None),),
        )
        request = AlterClientQuotasRequest(entries=(entry,), validate_only=False)
        answer = self.ask(request, AlterClientQuotasResponse)
        assert answer.entries[0].error_code is ErrorCode.NONE
        controller, broker = self.controller.controller, self.broker.broker
        assert controller is not None
        assert broker is not None
        wait(
            lambda: broker.cluster.image.client_quotas == controller.image.client_quotas,
            "the quota at the broker",
        )

    def create(self, *names: str, partitions: int = 1) -> CreateTopicsResponse:
        topics = tuple(
            CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
            for name in names
        )
        answer = self.ask(CreateTopicsRequest(topics=topics, timeout_ms=5000), CreateTopicsResponse)
        assert isinstance(answer, CreateTopicsResponse)
        return answer


def throttled(node: Node, kind: str) -> tuple[int, int]:
    assert node.throttle is not None
    counts: Any = node.throttle.describe()[kind]
    return counts["count"], counts["ms"]


@contextmanager
def running(directory: Path) -> Iterator[Cluster]:
    """The nodes in a thread with a loop of their own: clients block."""
    ready: Future[tuple[Cluster, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def main() -> None:
        async with InProcessCluster(
            directory, controllers=1, brokers=1, settings=SETTINGS
        ) as cluster:
            end = asyncio.Event()
            ready.set_result((Cluster(cluster), asyncio.get_running_loop(), end))
            await end.wait()

    thread = Thread(target=lambda: asyncio.run(main()))
    thread.start()
    try:
        cluster, loop, end = ready.result(30)
        yield cluster
        loop.call_soon_threadsafe(end.set)
    finally:
        thread.join(30)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("quotas")) as cluster:
        yield cluster


def test_without_a_quota_nothing_is_measured(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("there is nothing to be measured for")

    for name in ("received", "leaving", "written"):
        monkeypatch.setattr(ClientThrottle, name, never)
    answer = cluster.create(TOPIC)
    assert (answer.topics[0].error_code, answer.throttle_time_ms) == (ErrorCode.NONE, 0)


def test_producer_and_consumer_wait_for_their_byte_rates_and_no_others(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    waits: list[float] = []
    producer = Producer(
        {
            "bootstrap.servers": cluster.servers,
            "client.id": "slow",
            "throttle_cb": lambda event: waits.append(event.throttle_time),
        }
    )
    cluster.limit("other", "producer_byte_rate", 1.0)
    producer.produce(TOPIC, bytes(110_000))
    producer.flush(20)
    producer.poll(0)
    assert waits == []
    cluster.limit("slow", "producer_byte_rate", 100_000.0)
    producer.produce(TOPIC, bytes(110_000))
    producer.flush(20)
    wait(lambda: producer.poll(0) is not None and waits, "the producer hears that it has to wait")
    assert waits == [pytest.approx(0.1, abs=0.02)]
    assert throttled(cluster.broker, "produce")[0] == 1
    with urlopen(f"http://127.0.0.1:{cluster.broker.http_port}/metrics") as page:
        assert "kafka_server_produce_throttle_time_ms_count 1.0" in page.read().decode()

    cluster.limit("eager", "consumer_byte_rate", 100_000.0)
    consumer: Any = KafkaConsumer(
        bootstrap_servers=cluster.servers, client_id="eager", auto_offset_reset="earliest"
    )
    consumer.assign([TopicPartition(TOPIC, 0)])
    wait(lambda: consumer.poll(1000), "the consumer gets records")
    wait(lambda: "FetchResponse throttled" in caplog.text, "it hears that it has to wait")
    assert "FetchResponse throttled by broker (101 ms)" in caplog.text
    assert throttled(cluster.broker, "fetch")[0] >= 1
    consumer.close()


def test_client_is_refused_by_a_controllers_quota_until_it_is_removed(cluster: Cluster) -> None:
    cluster.limit(OWN_ID, "controller_mutation_rate", 2.0)  # a bucket of four
    answer = cluster.create("m1", "m2", "m3", partitions=3)
    assert [topic.error_code for topic in answer.topics] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    ]
    assert answer.throttle_time_ms == 1000
    assert throttled(cluster.controller, "controller_mutation")[0] == 1
    cluster.limit(OWN_ID, "controller_mutation_rate", None)
    answer = cluster.create("m3", partitions=30)
    assert (answer.topics[0].error_code, answer.throttle_time_ms) == (ErrorCode.NONE, 0)
