"""Measures produce and fetch over SASL_SSL beside the same in plain, ours and Apache Kafka's.

Of each system a plain cluster and one of `up --security sasl_ssl` live at a time, and are measured
in turns: two nodes, each a broker and the first the controller, and a real client (librdkafka). The
figures are ratios, and the processor time of the nodes, which other load on the machine hurts less.
"""

import statistics
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.figures import percentile, print_figure, progress, skip
from benchmarks.peers.kafka_cluster import KafkaCluster
from benchmarks.peers.local import processor_seconds, scratch_directory
from benchmarks.throughput import Case, create_topic, fetch, produce, produce_one_by_one
from jepsen_like.real.layout import ClusterLayout
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.client_properties import librdkafka_of
from quorumlab.verbs.secured_cluster import secure

SHAPE: Mapping[str, Any] = {"controllers": 1, "brokers": 2, "combined": True}
PLAIN, SECURED = "plain", "sasl_ssl"
SECURITIES = {PLAIN: "", SECURED: "sasl_ssl"}
CASE = Case("all", 1024)
PRODUCE_SECONDS = 1.0  # of records that come in; that they are acknowledged may take longer
ROUNDS, WARM_UP = 4, 2  # Java compiles in the first ones, which do not count


@dataclass(frozen=True, slots=True)
class Measured:
    """A round of one cluster: rates, and microseconds of all nodes a record."""

    produced: float
    fetched: float
    producing_us: float
    fetching_us: float
    alone_ms: float  # a record by itself, acknowledged by both brokers


@dataclass(frozen=True, slots=True)
class Running:
    client: Mapping[str, Any]
    pids: tuple[int, ...]

    def processor_seconds(self) -> float:
        return sum(map(processor_seconds, self.pids))


def client(layout: ClusterLayout) -> Mapping[str, Any]:
    return {"bootstrap.servers": layout.bootstrap_servers, **librdkafka_of(layout)}


@contextmanager
def ours(directory: Path, security: str) -> Iterator[Running]:
    cluster = LocalCluster.create(directory, security=security, **SHAPE)
    secure(cluster)
    try:
        cluster.start_all()
        cluster.wait_ready()
        pids = tuple(process.pid for process in cluster.running().values())
        yield Running(client(cluster.layout), pids)
    finally:
        cluster.stop_all()


@contextmanager
def kafkas(directory: Path, security: str) -> Iterator[Running]:
    cluster = KafkaCluster(directory, security=security, **SHAPE)
    try:
        cluster.start(cluster.brokers)
        yield Running(client(cluster.layout), tuple(map(cluster.pid, cluster.brokers)))
    finally:
        cluster.close()


def measured(cluster: Running, topic: str) -> Measured:
    create_topic(cluster.client, topic, len(cluster.pids))
    begun = cluster.processor_seconds()
    count, producing = produce(cluster.client, topic, CASE, PRODUCE_SECONDS)
    written = cluster.processor_seconds()
    fetching = fetch(cluster.client, topic, count)
    read = cluster.processor_seconds()
    alone = produce_one_by_one(cluster.client, topic)
    return Measured(
        produced=count / producing,
        fetched=count / fetching,
        producing_us=1e6 * (written - begun) / count,
        fetching_us=1e6 * (read - written) / count,
        alone_ms=1e3 * percentile(alone, 50),
    )


def measure(system: str, clusters: Mapping[str, Running]) -> None:
    found: dict[str, list[Measured]] = {name: [] for name in clusters}
    for number in range(WARM_UP + ROUNDS):
        progress(f"secured: {system}, round {number + 1} of {WARM_UP + ROUNDS}")
        order = list(clusters) if number % 2 else list(clusters)[::-1]
        for name in order:
            one = measured(clusters[name], f"round-{number}")
            if number >= WARM_UP:
                found[name].append(one)
    for field, unit in (
        ("produced", "records/s"),
        ("fetched", "records/s"),
        ("producing_us", "us"),
        ("fetching_us", "us"),
        ("alone_ms", "ms"),
    ):
        rounds = {name: [getattr(one, field) for one in every] for name, every in found.items()}
        report(f"secured: {system} {field}", unit, rounds)


def report(name: str, unit: str, rounds: Mapping[str, list[float]]) -> None:
    """The medians, and that of what each round had for a ratio."""
    for each, values in rounds.items():
        of_rounds = [round(value, 2) for value in values]
        print_figure(f"{name} {each}", statistics.median(values), unit, of_rounds=of_rounds)
    ratios = [mine / other for mine, other in zip(rounds[SECURED], rounds[PLAIN], strict=True)]
    of_rounds = [round(ratio, 2) for ratio in ratios]
    print_figure(f"{name} ratio", statistics.median(ratios), "of plain", of_rounds=of_rounds)


def main() -> None:
    systems = {"quorumlab": ours, "kafka": kafkas}
    missing = KafkaCluster.missing()
    if missing is not None:
        skip("secured: kafka", missing)
        del systems["kafka"]
    with scratch_directory() as directory:
        for system, running in systems.items():
            begun = time.monotonic()
            path = directory / system
            path.mkdir()
            with (
                running(path / PLAIN, SECURITIES[PLAIN]) as plain,
                running(path / SECURED, SECURITIES[SECURED]) as secured,
            ):
                measure(system, {PLAIN: plain, SECURED: secured})
            progress(f"secured: {system} took {time.monotonic() - begun:.0f} s")
