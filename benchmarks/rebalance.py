"""How long a consumer group takes to share its partitions anew, beside Apache Kafka.

    python benchmarks/run.py rebalance

A group of two real clients (librdkafka) has six partitions. A third joins, and leaves again. The
time is that from its subscription, or from before it is closed, until all members have their share.
The others hear of it with their heartbeats, which are 100 ms apart, so that the figures are mostly
those of brokers. The settings are those of `up`, for Kafka too: no initial delay.
"""

import time

from confluent_kafka import Consumer

from benchmarks import throughput
from benchmarks.figures import percentile, print_figure, progress
from benchmarks.many_partitions import QUIET, Subject
from benchmarks.transactions import beside_kafka

HEARTBEAT_MS = 100
ROUNDS, WARM_UP = 30, 5
PATIENCE_SECONDS = 60.0
TOPIC = "shared"


def member(subject: Subject) -> Consumer:
    settings = {"group.id": "benchmark", "heartbeat.interval.ms": HEARTBEAT_MS}
    made = Consumer({"bootstrap.servers": subject.servers, **settings, **QUIET})
    made.subscribe([TOPIC])
    return made


def wait_shared(members: list[Consumer]) -> None:
    share = throughput.PARTITIONS // len(members)
    until = time.perf_counter() + PATIENCE_SECONDS
    while any(len(each.assignment()) != share for each in members):
        assert time.perf_counter() < until, "the group has not settled"
        for each in members:
            each.poll(0.001)


def measure(subject: Subject) -> None:
    throughput.create_topic({"bootstrap.servers": subject.servers}, TOPIC)
    members = [member(subject), member(subject)]
    wait_shared(members)
    took: dict[str, list[float]] = {"joins": [], "leaves": []}
    progress(f"{subject.name}: {ROUNDS + WARM_UP} members join and leave")
    for _ in range(ROUNDS + WARM_UP):
        began = time.perf_counter()
        third = member(subject)
        wait_shared([*members, third])
        took["joins"].append(time.perf_counter() - began)
        began = time.perf_counter()
        third.close()
        wait_shared(members)
        took["leaves"].append(time.perf_counter() - began)
    for each in members:
        each.close()
    for event, seconds in took.items():
        for percent in (50, 99):
            value = percentile(seconds[WARM_UP:], percent) * 1e3
            name = f"{subject.name}, a member {event}: all have their share p{percent}"
            print_figure(name, value, "ms", rounds=ROUNDS, heartbeat_ms=HEARTBEAT_MS)


def main() -> None:
    beside_kafka("rebalance", measure)
