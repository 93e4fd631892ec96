"""How soon followers fetch from a new leader: a broker is killed, others are elected in its place.

    python -m benchmarks new-leaders --partitions 1000

Three controllers and three brokers, replication factor 3, the settings of `up`; all fetch sessions
are idle when the broker is killed. Measured in the new leader, for each of its new partitions: from
when it has made itself the leader to the first fetch of the other broker that names the partition.
A follower would ask again after `replica.fetch.wait.max.ms` (500) at the latest; a leader answers
its parked fetches at once, so that it asks sooner.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import percentile, print_figure, progress
from benchmarks.many_partitions import FACTOR, Ours, Partitions, is_led_without, is_whole
from benchmarks.peers.local import scratch_directory
from jepsen_like.python_children import python_command
from jepsen_like.real.local_cluster import LocalCluster

PATIENCE_SECONDS = 120.0
QUIET_SECONDS = 3.0  # long enough for every fetch to have come back and be parked


class TimedBrokers(LocalCluster):
    command = tuple(python_command("benchmarks.peers.timed_broker"))


def main() -> None:
    parser = argparse.ArgumentParser(prog="new_leaders")
    parser.add_argument("--partitions", type=int, default=1000)
    args = parser.parse_args()
    with scratch_directory() as directory:
        subject = Ours(TimedBrokers.create(directory / "cluster"))
        try:
            subject.start([*subject.controllers, *subject.brokers])
            measure(subject, args.partitions)
        finally:
            subject.close()


def measure(subject: Ours, count: int) -> None:
    progress(f"creating {count} partitions")
    partitions = Partitions(subject, count, PATIENCE_SECONDS)
    partitions.create()
    partitions.write()
    partitions.wait(is_whole)
    time.sleep(QUIET_SECONDS)
    victim, *others = subject.brokers
    logs = [subject.log(node_id) for node_id in others]
    seen = [path.stat().st_size for path in logs]
    progress("killing a broker")
    subject.kill(victim)
    partitions.wait(is_led_without(victim))
    time.sleep(QUIET_SECONDS)
    taken_us = [us for path, start in zip(logs, seen, strict=True) for us in taken(path, start)]
    for percent in (50, 99, 100):
        print_figure(
            f"new leader: until its follower fetches p{percent}",
            percentile(taken_us, percent) / 1e3,
            "ms",
            partitions=count,
            new_leaders=len(taken_us),
            replicas=FACTOR,
        )


def taken(log: Path, start: int) -> Iterator[int]:
    """What a broker has said since its log had `start` bytes, in microseconds."""
    with log.open("rb") as file:
        file.seek(start)
        for line in file:
            if line.startswith(b'{"first_fetches_us"'):
                yield from json.loads(line)["first_fetches_us"]
