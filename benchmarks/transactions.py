"""Transactions a second, and what each takes, of a real client (librdkafka), beside Apache Kafka.

    python benchmarks/run.py transactions

A transaction is ten records in three partitions, and is committed before the next begins. Three
controllers and three brokers with the settings of `up`; Kafka, if its jars are there, has the same,
and is measured in the same run, while ours are stopped. Each producer has a thread and an id of its
own. The first seconds are not measured: whoever compiles while it runs has done so by then.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import Producer, libversion

from benchmarks import throughput
from benchmarks.figures import percentile, print_figure, progress, skip
from benchmarks.many_partitions import Ours, Subject, running
from benchmarks.peers.kafka_cluster import KafkaCluster
from benchmarks.peers.local import processor_seconds, scratch_directory
from jepsen_like.real.local_cluster import LocalCluster

PRODUCERS = (1, 4)
RECORDS, PARTITIONS, VALUE_BYTES = 10, 3, 100
WARM_UP_SECONDS, SECONDS, ROUNDS = 8.0, 5.0, 3
PATIENCE_SECONDS = 60.0
QUIET: dict[str, Any] = {"log_level": 0}


@dataclass(frozen=True, slots=True)
class Took:
    """One transaction: seconds until its records were acknowledged, and until it was committed."""

    records: float
    whole: float


def producer(subject: Subject, number: int) -> Producer:
    settings = {"transactional.id": f"benchmark-{number}", "linger.ms": 0}
    made = Producer({"bootstrap.servers": subject.servers, **settings, **QUIET})
    made.init_transactions(PATIENCE_SECONDS)
    return made


def transactions(made: Producer, topic: str, until: float) -> list[Took]:
    took = []
    while (began := time.perf_counter()) < until:
        made.begin_transaction()
        for number in range(RECORDS):
            made.produce(topic, bytes(VALUE_BYTES), partition=number % PARTITIONS)
        assert not made.flush(PATIENCE_SECONDS), "records without an answer"
        acknowledged = time.perf_counter()
        made.commit_transaction(PATIENCE_SECONDS)
        took.append(Took(acknowledged - began, time.perf_counter() - began))
    return took


def together(producers: list[Producer], topic: str, seconds: float) -> list[Took]:
    until = time.perf_counter() + seconds
    with ThreadPoolExecutor(len(producers)) as pool:
        each = pool.map(partial(transactions, topic=topic, until=until), producers)
        return [took for every in each for took in every]


def brokers_seconds(subject: Subject) -> float:
    return sum(processor_seconds(subject.pid(node_id)) for node_id in subject.brokers)


def measure(subject: Subject) -> None:
    topic = "transactions"
    throughput.create_topic({"bootstrap.servers": subject.servers}, topic)
    made = [producer(subject, number) for number in range(max(PRODUCERS))]
    progress(f"{subject.name}: {WARM_UP_SECONDS:.0f} s that are not measured")
    together(made, topic, WARM_UP_SECONDS)
    took: dict[int, list[list[Took]]] = {count: [] for count in PRODUCERS}
    spent = dict.fromkeys(PRODUCERS, 0.0)
    for number in range(ROUNDS):
        for count in PRODUCERS:
            progress(f"{subject.name}, round {number + 1} of {ROUNDS}: {count} producers")
            before = brokers_seconds(subject)
            took[count].append(together(made[:count], topic, SECONDS))
            spent[count] += brokers_seconds(subject) - before
    for count in PRODUCERS:
        print_figures(f"{subject.name}, producers {count}:", took[count], spent[count])


def print_figures(name: str, rounds: list[list[Took]], spent_seconds: float) -> None:
    each = [took for one in rounds for took in one]
    about = {"transactions": len(each), "client": f"librdkafka {libversion()[0]}"}
    rates = [round(len(one) / SECONDS, 1) for one in rounds]
    rate = len(each) / (ROUNDS * SECONDS)
    print_figure(f"{name} rate", rate, "transactions/s", of_rounds=rates, **about)
    for percent in (50, 99):
        whole = percentile([took.whole for took in each], percent) * 1e3
        print_figure(f"{name} p{percent}", whole, "ms", **about)
    records = percentile([took.records for took in each], 50) * 1e3
    print_figure(f"{name} until the records are acknowledged p50", records, "ms", **about)
    spent = spent_seconds / len(each) * 1e3
    print_figure(f"{name} processor time of the brokers", spent, "ms/transaction", **about)


def beside_kafka(name: str, measure: Callable[[Subject], None]) -> None:
    """Ours, then Kafka, each alone on the machine."""
    subjects: list[Callable[[Path], Subject]] = [lambda path: Ours(LocalCluster.create(path))]
    missing = KafkaCluster.missing()
    if missing is None:
        subjects.append(KafkaCluster)
    else:
        skip(f"{name} kafka", missing)
    with scratch_directory() as directory:
        for number, each in enumerate(subjects):
            with running(each(directory / f"{number}")) as subject:
                measure(subject)


def main() -> None:
    beside_kafka("transactions", measure)
