"""Thousands of partitions on three brokers: what creating, killing, stopping and starting take.

    python -m benchmarks many-partitions --partitions 10000
    python -m benchmarks many-partitions --partitions 5000 --beside-kafka
    python -m benchmarks many-partitions --partitions 30000 --set broker.session.timeout.ms=9000

Three controllers and three brokers, replication factor 3, the time-outs of `up`, one machine.
Each event is timed until all partitions are as they should be, which a client (librdkafka) sees in
the answers to its Metadata requests; an event that takes longer than `--patience` is given up, and
the figure says how far it came. A busy topic is measured before the others are made and beside
them, idle, at the end. The Apache Kafka beside it has the same settings, the same layout and the
JVM options of its start scripts.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks import throughput
from benchmarks.figures import percentile, print_figure, progress, skip
from benchmarks.peers.kafka_cluster import KafkaCluster
from benchmarks.peers.local import processor_seconds, resident_megabytes, scratch_directory
from jepsen_like.real.local_cluster import LocalCluster

TOPIC_PARTITIONS_MAX = 1000
FACTOR = 3
IDLE_SECONDS = 20.0
METADATA_SECONDS = 10.0
BUSY = throughput.Case(acks="all", value_bytes=1024)
BUSY_ROUNDS = 2
QUIET: dict[str, Any] = {"log_level": 0}


class Subject(Protocol):
    """A cluster of processes."""

    name: str
    brokers: tuple[int, ...]
    controllers: tuple[int, ...]
    servers: str

    def start(self, node_ids: Sequence[int]) -> None:
        """Returns when they are ready."""

    def stop(self, node_ids: Sequence[int]) -> None:
        """In order. Raises if one had to be killed."""

    def kill(self, node_id: int) -> None: ...
    def pid(self, node_id: int) -> int: ...
    def close(self) -> None: ...


class Ours:
    name = "quorumlab"

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self.brokers = tuple(node.id for node in self._cluster.layout.brokers)
        self.controllers = tuple(node.id for node in self._cluster.layout.controllers)
        self.servers = self._cluster.layout.bootstrap_servers

    def start(self, node_ids: Sequence[int]) -> None:
        for node_id in node_ids:
            self._cluster.start(node_id)
        self._cluster.wait_ready(nodes=tuple(node_ids), timeout_seconds=600.0)

    def stop(self, node_ids: Sequence[int]) -> None:
        others = {node.id for node in self._cluster.layout.nodes} - set(node_ids)
        killed = self._cluster.stop_all(but=others)
        if killed:
            raise TimeoutError(f"nodes {killed} did not stop in order")

    def kill(self, node_id: int) -> None:
        self._cluster.kill(node_id)

    def pid(self, node_id: int) -> int:
        return self._cluster.running()[node_id].pid

    def log(self, node_id: int) -> Path:
        return self._cluster.layout.node(node_id).log

    def close(self) -> None:
        self._cluster.stop_all()


class GivenUp(Exception):
    """An event took longer than the patience."""


class Partitions:
    """A client that looks at all partitions, and waits until they are as they should be."""

    def __init__(self, subject: Subject, count: int, patience_seconds: float) -> None:
        self._subject = subject
        self._count = count
        self._patience_seconds = patience_seconds
        self._topics = [f"t{number}" for number in range(-(-count // TOPIC_PARTITIONS_MAX))]
        self._admin = AdminClient({"bootstrap.servers": subject.servers, **QUIET})

    def create(self) -> None:
        left = self._count
        for topic in self._topics:
            new = NewTopic(topic, min(left, TOPIC_PARTITIONS_MAX), FACTOR)
            left -= TOPIC_PARTITIONS_MAX
            self._admin.create_topics([new], request_timeout=300)[topic].result(300)

    def write(self) -> None:
        """One record to each partition, and again where it failed."""
        unwritten = {
            (topic, index)
            for number, topic in enumerate(self._topics)
            for index in range(
                min(TOPIC_PARTITIONS_MAX, self._count - number * TOPIC_PARTITIONS_MAX)
            )
        }
        deadline = time.monotonic() + self._patience_seconds
        producer = Producer({"bootstrap.servers": self._subject.servers, "linger.ms": 50, **QUIET})

        def delivered(at: tuple[str, int], error: object, _: object) -> None:
            if error is None:
                unwritten.discard(at)

        while unwritten:
            for topic, index in sorted(unwritten):
                producer.produce(
                    topic,
                    b"one record",
                    partition=index,
                    on_delivery=partial(delivered, (topic, index)),
                )
                producer.poll(0)
            producer.flush(max(1.0, deadline - time.monotonic()))
            if time.monotonic() > deadline:
                raise GivenUp(f"{self._count - len(unwritten)} partitions took a record")

    def wait(self, is_well: Callable[[Any], bool]) -> None:
        """Until a client sees every partition so."""
        deadline = time.monotonic() + self._patience_seconds
        while True:
            rows = self._rows()
            well = sum(map(is_well, rows))
            if well == self._count:
                return
            if time.monotonic() > deadline:
                raise GivenUp(f"{well} of {self._count} partitions")
            time.sleep(0.2)

    def _rows(self) -> list[Any]:
        """Return the partitions that a client sees: none, if no broker answers it in time.

        librdkafka waits for the broker that it has asked, although that one was killed.
        """
        try:
            seen = self._admin.list_topics(timeout=METADATA_SECONDS).topics
        except KafkaException:
            return []
        found = [seen[name].partitions.values() for name in self._topics if name in seen]
        return [row for rows in found for row in rows]


def is_led_without(node_id: int) -> Callable[[Any], bool]:
    return lambda row: row.leader not in (-1, node_id)


def is_whole(row: Any) -> bool:
    """Led, with all replicas in sync."""
    return row.leader >= 0 and len(row.isrs) == FACTOR


def measure(subject: Subject, count: int, patience_seconds: float) -> None:
    measure_busy(subject, idle=0)
    partitions = Partitions(subject, count, patience_seconds)
    victim, another, _ = subject.brokers

    def all_take_a_record() -> None:
        partitions.create()
        partitions.write()

    def killed() -> None:
        subject.kill(victim)
        partitions.wait(is_led_without(victim))

    def back() -> None:
        subject.start([victim])
        partitions.wait(is_whole)

    def restarted() -> None:
        subject.stop(subject.brokers)
        subject.start(subject.brokers)
        partitions.wait(is_whole)

    for event, act in (
        ("created, and each has taken a record", all_take_a_record),
        ("all in sync", lambda: partitions.wait(is_whole)),
        ("a broker killed, all led", killed),
        ("the broker back, all in sync", back),
        ("a broker shut down in order", lambda: subject.stop([another])),
        ("it is back, all in sync", lambda: _start_and_wait(subject, another, partitions)),
        ("all brokers restarted, all in sync", restarted),
    ):
        time_event(subject, event, act, count)
    print_idle(subject, count)
    measure_busy(subject, idle=count)
    time_event(
        subject, "all brokers shut down in order", lambda: subject.stop(subject.brokers), count
    )


def _start_and_wait(subject: Subject, node_id: int, partitions: Partitions) -> None:
    subject.start([node_id])
    partitions.wait(is_whole)


def time_event(subject: Subject, event: str, act: Callable[[], None], count: int) -> None:
    progress(f"{subject.name}, {count} partitions: {event}")
    name = f"{count} partitions, {subject.name}: {event}"
    began = time.monotonic()
    try:
        act()
    except (GivenUp, TimeoutError) as reason:
        print_figure(name, time.monotonic() - began, "s", given_up=str(reason))
    else:
        print_figure(name, time.monotonic() - began, "s")


def print_idle(subject: Subject, count: int) -> None:
    """Print the share of one processor and the memory of a broker while nothing happens."""
    pids = [subject.pid(node_id) for node_id in subject.brokers]
    before = [processor_seconds(pid) for pid in pids]
    time.sleep(IDLE_SECONDS)
    used = [processor_seconds(pid) - was for pid, was in zip(pids, before, strict=True)]
    shares = [round(100 * each / IDLE_SECONDS, 2) for each in used]
    name = f"{count} partitions, {subject.name}: processor of an idle broker"
    print_figure(name, sum(shares) / len(shares), "%", each=shares)
    sizes = [round(resident_megabytes(pid), 1) for pid in pids]
    name = f"{count} partitions, {subject.name}: memory of an idle broker"
    print_figure(name, sum(sizes) / len(sizes), "MiB", each=sizes)


def measure_busy(subject: Subject, idle: int) -> None:
    """Produce to one topic and fetch from it, while `idle` other partitions are not used."""
    progress(f"{subject.name}: a busy topic beside {idle} idle partitions")
    client = {"bootstrap.servers": subject.servers}
    produced, fetched = [], []
    for number in range(1 + BUSY_ROUNDS):
        topic = f"busy-{idle}-{number}"
        throughput.create_topic(client, topic)
        count, seconds = throughput.produce(client, topic, BUSY)
        produced.append((count, seconds))
        fetched.append((count, throughput.fetch(client, topic, count)))
    latencies = throughput.produce_one_by_one(client, topic)
    name = f"{subject.name}, beside {idle} idle partitions"
    # The first round warms up whoever compiles while it runs.
    throughput.print_rates(f"{name}: produce {BUSY.name}", BUSY, produced[1:])
    throughput.print_rates(f"{name}: fetch {BUSY.value_bytes} B", BUSY, fetched[1:])
    for percent in (50, 99):
        value = percentile(latencies, percent) * 1e3
        print_figure(f"{name}: produce one by one p{percent}", value, "ms", records=len(latencies))


@contextmanager
def running(subject: Subject) -> Iterator[Subject]:
    try:
        subject.start([*subject.controllers, *subject.brokers])
        yield subject
    finally:
        subject.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="many_partitions")
    parser.add_argument("--partitions", type=int, default=5000)
    parser.add_argument("--beside-kafka", action="store_true", help="Apache Kafka, too")
    parser.add_argument("--patience", type=float, default=300.0, help="seconds an event may take")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        dest="settings",
        help="a setting of our nodes; Kafka's stay",
    )
    args = parser.parse_args()
    settings = dict(each.split("=", 1) for each in args.settings)
    subjects: list[Callable[[Path], Subject]] = [
        lambda path: Ours(LocalCluster.create(path, settings=settings))
    ]
    if args.beside_kafka:
        missing = KafkaCluster.missing()
        if missing is None:
            subjects.append(KafkaCluster)
        else:
            skip("many_partitions kafka", missing)
    with scratch_directory() as directory:
        for number, each in enumerate(subjects):
            with running(each(directory / f"{number}")) as subject:
                measure(subject, args.partitions, args.patience)
