"""Records a second through three brokers and a real client (librdkafka), in and out.

The client has its default settings but for `acks`; client and cluster share the machine, so that
these are the figures of the whole, not of a broker. One topic a case: 6 partitions, 3 replicas.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition, libversion
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.figures import percentile, print_figure, progress
from benchmarks.peers.local import running_cluster, scratch_directory

PARTITIONS, REPLICAS = 6, 3
PRODUCE_SECONDS = 2.0
PRODUCE_BYTES_MAX = 200 << 20  # a case; it is written once a replica
FETCH_SECONDS_MAX = 20.0
ROUNDS = 2
SEQUENTIAL_RECORDS = 300
QUIET: dict[str, Any] = {"log_level": 4}  # warnings of the client, no more
Client = Mapping[str, Any]  # what librdkafka is told of the cluster


@dataclass(frozen=True, slots=True)
class Case:
    acks: str
    value_bytes: int

    @property
    def name(self) -> str:
        return f"acks={self.acks} {self.value_bytes} B"


CASES = tuple(Case(acks, size) for acks in ("1", "all") for size in (100, 1024))


def create_topic(client: Client, name: str, replicas: int = REPLICAS) -> None:
    topic = NewTopic(name, num_partitions=PARTITIONS, replication_factor=replicas)
    admin = AdminClient({**client, **QUIET})
    admin.create_topics([topic])[name].result(20)


def produce(
    client: Client, topic: str, case: Case, seconds_max: float = PRODUCE_SECONDS
) -> tuple[int, float]:
    """Produce as fast as it goes: (records acknowledged, seconds until the last one was)."""
    failed: list[Any] = []
    delivered = 0

    def on_delivery(error: Any, _: Any) -> None:
        nonlocal delivered
        delivered += 1
        if error is not None:
            failed.append(error)

    producer = Producer({**client, "acks": case.acks, **QUIET})
    producer.list_topics(topic, 10)  # the connection and the metadata are not what is measured
    value = bytes(case.value_bytes)
    began = time.perf_counter()
    for number in range(PRODUCE_BYTES_MAX // case.value_bytes):
        if number % 1000 == 0 and time.perf_counter() - began > seconds_max:
            break
        while True:
            try:
                producer.produce(topic, value, on_delivery=on_delivery)
                break
            except BufferError:  # its queue is full
                producer.poll(0.01)
        producer.poll(0)
    left = producer.flush(60)
    seconds = time.perf_counter() - began
    assert not left, f"{left} records had no answer"
    assert not failed, f"{len(failed)} records failed, such as: {failed[0]}"
    return delivered, seconds


def fetch(client: Client, topic: str, count: int) -> float:
    """Read `count` records from the beginning; seconds from the assignment to the last."""
    # The client wants a group's name, although the partitions are assigned by hand.
    settings = {"group.id": "not-used", "enable.auto.commit": False}
    consumer = Consumer({**client, **settings, **QUIET})
    found = 0
    began = time.perf_counter()
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
        while found < count:
            messages = consumer.consume(min(10_000, count - found), 0.5)
            errors = [error for message in messages if (error := message.error()) is not None]
            assert not any(error.fatal() for error in errors), errors
            found += len(messages) - len(errors)  # "no coordinator" is one of them
            seconds = time.perf_counter() - began
            assert seconds < FETCH_SECONDS_MAX, f"{found} of {count} records in {seconds:.0f} s"
    finally:
        consumer.close()
    return seconds


def produce_one_by_one(client: Client, topic: str) -> list[float]:
    """Latencies, in seconds, of records that are sent when the one before is acknowledged."""
    producer = Producer({**client, "acks": "all", "linger.ms": 0, **QUIET})
    latencies = []
    for number in range(SEQUENTIAL_RECORDS):
        began = time.perf_counter()
        producer.produce(topic, b"x" * 100, partition=number % PARTITIONS)
        assert not producer.flush(10), "no answer"
        latencies.append(time.perf_counter() - began)
    return latencies[SEQUENTIAL_RECORDS // 10 :]  # without the connections' beginnings


def print_rates(name: str, case: Case, rounds: list[tuple[int, float]]) -> None:
    records = sum(count for count, _ in rounds)
    rate = records / sum(seconds for _, seconds in rounds)
    print_figure(
        name,
        rate,
        "records/s",
        megabytes_per_second=round(rate * case.value_bytes / 1e6, 1),
        records=records,
        of_rounds=[round(count / seconds) for count, seconds in rounds],
        client=f"librdkafka {libversion()[0]}",
    )


def measure(client: Client) -> None:
    produced: dict[Case, list[tuple[int, float]]] = {case: [] for case in CASES}
    fetched: dict[Case, list[tuple[int, float]]] = {case: [] for case in CASES}
    for number in range(ROUNDS):
        for case in CASES:
            progress(f"round {number + 1} of {ROUNDS}: {case.name}")
            topic = f"acks-{case.acks}-{case.value_bytes}-{number}"
            create_topic(client, topic)
            count, seconds = produce(client, topic, case)
            produced[case].append((count, seconds))
            fetched[case].append((count, fetch(client, topic, count)))
    for case in CASES:
        print_rates(f"produce {case.name}", case, produced[case])
    for case in CASES:
        if case.acks == "all":  # how they were produced makes no difference
            print_rates(f"fetch {case.value_bytes} B", case, fetched[case])
    create_topic(client, "one-by-one")
    latencies = produce_one_by_one(client, "one-by-one")
    for percent in (50, 99):
        value = percentile(latencies, percent) * 1e3
        name = f"produce acks=all 100 B one by one p{percent}"
        print_figure(name, value, "ms", records=len(latencies))


def main() -> None:
    with scratch_directory() as directory, running_cluster(directory / "cluster") as cluster:
        measure({"bootstrap.servers": cluster.layout.bootstrap_servers})
