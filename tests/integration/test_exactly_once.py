"""Exactly once with aiokafka: what is consumed, transformed and produced again is there once.

Meanwhile the coordinator of the transactions is killed, and then that of the group. A worker that
is told to begin anew does so, under the same transactional id. librdkafka waits for ever for a
group's coordinator that the metadata name no more: tests/kafka/test_mixed_transactions.py has it.
"""

import asyncio
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from broker.coordination.coordinators import partition_of
from jepsen_like.real.local_cluster import LocalCluster
from tests.integration.waiting import wait
from tests.started import started

PARTITIONS = 3
PAUSE_SECONDS = 0.04
TOGETHER = 10  # records of a transaction
GROUP = TRANSACTIONAL_ID = "transform"
COORDINATED = (("__transaction_state", TRANSACTIONAL_ID), ("__consumer_offsets", GROUP))
SECONDS = 60.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    directory = tmp_path_factory.mktemp("exactly-once") / "cluster"
    with started(LocalCluster.create(directory, controllers=1, brokers=3)) as running:
        yield running


class Feeder(threading.Thread):
    """Writes one number after the other until it is stopped."""

    def __init__(self, servers: str, topic: str) -> None:
        super().__init__()
        self.count = 0
        self._producer = Producer(
            {"bootstrap.servers": servers, "enable.idempotence": True, "log_level": 0}
        )
        self._topic = topic
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.wait(PAUSE_SECONDS):
            number = self.count
            self._producer.produce(self._topic, b"%d" % number, partition=number % PARTITIONS)
            self.count += 1

    def stop(self) -> None:
        self._stopped.set()
        self.join()
        assert self._producer.flush(20) == 0


class Reader:
    """What is committed, as far as it was read."""

    def __init__(self, servers: str, topic: str) -> None:
        settings = {"bootstrap.servers": servers, "group.id": "reader", "log_level": 0}
        self._consumer = Consumer({**settings, "isolation.level": "read_committed"})
        self._consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
        self.found: Counter[bytes] = Counter()

    def read(self, seconds: float = 0.2) -> int:
        """How many there are by now."""
        messages = self._consumer.consume(1000, seconds)
        self.found.update(each.value() or b"" for each in messages if each.error() is None)
        return self.found.total()

    def close(self) -> None:
        self._consumer.close()


# --- workers ------------------------------------------------------------------------------------


def transform(servers: str, source: str, sink: str, stopped: threading.Event) -> None:
    asyncio.run(transform_asynchronously(servers, source, sink, stopped))


async def transform_asynchronously(
    servers: str, source: str, sink: str, stopped: threading.Event
) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka.errors import KafkaError

    while not stopped.is_set():
        consumer = AIOKafkaConsumer(
            source,
            bootstrap_servers=servers,
            group_id=GROUP,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6000,
            isolation_level="read_committed",
        )
        producer = AIOKafkaProducer(
            bootstrap_servers=servers,
            transactional_id=TRANSACTIONAL_ID,
            transaction_timeout_ms=10_000,
        )
        try:
            async with asyncio.timeout(20):
                await consumer.start()
                await producer.start()
            while not stopped.is_set():
                batches: Any = await consumer.getmany(timeout_ms=200, max_records=TOGETHER)
                if not batches:
                    continue
                async with asyncio.timeout(20), producer.transaction():
                    for place, records in batches.items():
                        for record in records:
                            await producer.send(sink, record.value, partition=place.partition)
                    ends = {place: records[-1].offset + 1 for place, records in batches.items()}
                    await producer.send_offsets_to_transaction(ends, GROUP)
        except (KafkaError, TimeoutError):
            continue  # begin anew
        finally:
            await asyncio.gather(consumer.stop(), producer.stop(), return_exceptions=True)


# --- tests --------------------------------------------------------------------------------------


def coordinator(cluster: LocalCluster, topic: str, key: str) -> int:
    """The broker that leads the partition of `key`."""
    rows = cluster.page(cluster.layout.brokers[0], f"/v1/topics/{topic}")["partitions"]
    leader: int = rows[partition_of(key, len(rows))]["leader"]
    return leader


def wait_for_more(reader: Reader) -> None:
    before = reader.read()
    wait(lambda: reader.read() > before, "more of it", SECONDS)


@pytest.mark.long
def test_what_is_transformed_while_coordinators_are_killed_is_there_once(
    cluster: LocalCluster, make_topic: Callable[..., str]
) -> None:
    servers = cluster.layout.bootstrap_servers
    source, sink = (
        make_topic(servers, f"{name}-{secrets.token_hex(4)}", PARTITIONS, min_insync_replicas="2")
        for name in ("source", "sink")
    )
    feeder, reader, stopped = Feeder(servers, source), Reader(servers, sink), threading.Event()
    threads = (feeder, threading.Thread(target=transform, args=(servers, source, sink, stopped)))
    for thread in threads:
        thread.start()
    try:
        for topic, key in COORDINATED:
            wait_for_more(reader)
            victim = coordinator(cluster, topic, key)
            cluster.kill(victim)
            cluster.start(victim)
            cluster.wait_ready(nodes=(victim,))
        wait_for_more(reader)
        feeder.stop()
        wait(lambda: reader.read() >= feeder.count, "all of it", SECONDS)
    finally:
        stopped.set()
        threads[1].join(60)
    reader.read(seconds=1.0)  # and nothing more comes
    reader.close()
    assert reader.found == Counter({b"%d" % number: 1 for number in range(feeder.count)})
