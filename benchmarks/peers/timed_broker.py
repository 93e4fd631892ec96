"""A broker node that says how long after an election its followers first fetch the partition.

    python -m benchmarks.peers.timed_broker --config FILE --format-as CLUSTER-ID

While it runs, the rules of the shipped broker are watched, not changed. One JSON line when every
partition that was elected here has been fetched: the microseconds of each, on this process's clock,
from when the broker has made itself the leader to the first fetch of a live follower that names
the partition.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from pathlib import Path

from broker.partition.leaders import Leaders
from broker.partition.partition import FollowerFetch, Partition, Progress
from quorumlab.config import load
from quorumlab.node import Node
from quorumlab.verbs.format import format_node


class FirstFetches:
    """What has been elected and not fetched since, and what has."""

    def __init__(self) -> None:
        self._elected_ns: dict[Partition, int] = {}
        self._taken_us: list[int] = []

    def elected(self, partition: Partition) -> None:
        self._elected_ns[partition] = time.monotonic_ns()

    def fetched(self, partition: Partition) -> None:
        began_ns = self._elected_ns.pop(partition, None)
        if began_ns is None:
            return
        self._taken_us.append((time.monotonic_ns() - began_ns) // 1000)
        if not self._elected_ns:
            line = json.dumps({"first_fetches_us": self._taken_us})
            os.write(sys.stdout.fileno(), f"{line}\n".encode())
            self._taken_us = []


def watch(first_fetches: FirstFetches) -> None:
    """Look at the two places of the broker that tell of it."""
    make_leader, note_fetch = Leaders.elected, Partition.fetched

    def elected(self: Leaders, partition: Partition, now_ms: int) -> None:
        make_leader(self, partition, now_ms)
        first_fetches.elected(partition)

    def fetched(self: Partition, fetch: FollowerFetch, now_ms: int) -> Progress:
        first_fetches.fetched(self)
        return note_fetch(self, fetch, now_ms)

    Leaders.elected = elected  # type: ignore[method-assign]
    Partition.fetched = fetched  # type: ignore[method-assign]


async def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--format-as", required=True)
    args = parser.parse_args()
    config = load(args.config, os.environ)
    format_node(config, args.format_as, ignore_formatted=True)
    watch(FirstFetches())
    async with Node(config, lambda line: print(line, flush=True)) as node:
        stop = await node.run()
    return stop.exit_code


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
