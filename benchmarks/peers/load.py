"""The load that every system of `commit` gets, from the same loop: so many requests in flight.

A request is built ahead, carries one or many puts of the same keys and values everywhere, and is
timed from handing it over until its answer is here.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = [
    "CONFIG",
    "KEYS",
    "REQUESTS_PREPARED",
    "TOPICS",
    "Client",
    "Load",
    "Sample",
    "drive",
    "puts",
    "topics",
]

KEYS = 128  # also the most puts of a request: etcd's default of --max-txn-ops
REQUESTS_PREPARED = 2 * KEYS  # used in turn; more than can be in flight
TOPICS = tuple(f"topic-{index:03}" for index in range(KEYS))
CONFIG = "retention.ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    name: str
    in_flight: int
    puts: int  # a request
    seconds: float
    first_value: int  # no two loads write the same values: setting what is set may be for nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What a load came to: the latency of every request, and the time from first to last."""

    latencies_seconds: Sequence[float]
    puts: int
    elapsed_seconds: float


class Client(Protocol):
    """One connection to the leader, set up for one load."""

    def send(self, number: int) -> None:
        """Send request `number`, counted from 0. May wait while the peer takes no more."""

    def receive(self) -> Sequence[int]:
        """Wait for an answer; the numbers of the requests that are done now, in any order."""

    def close(self) -> None: ...


def puts(load: Load, number: int) -> list[tuple[str, str]]:
    """The keys and values of request `number`: no value is the one that the key has."""
    value = str(load.first_value + number)
    return [(f"{topic}/{CONFIG}", value) for topic in topics(load, number)]


def topics(load: Load, number: int) -> list[str]:
    first = 0 if load.puts == KEYS else number % KEYS
    return [TOPICS[(first + index) % KEYS] for index in range(load.puts)]


def drive(client: Client, load: Load) -> Sample:
    """Keep `load.in_flight` requests on their way for `load.seconds`, then wait for the last."""
    started: dict[int, float] = {}
    latencies: list[float] = []
    number = 0
    clock = time.perf_counter
    began = now = clock()
    end = began + load.seconds
    while now < end or started:
        while now < end and len(started) < load.in_flight:
            started[number] = clock()
            client.send(number)
            number += 1
        answered = client.receive()
        now = clock()
        latencies += [now - started.pop(done) for done in answered]
    return Sample(
        latencies_seconds=latencies,
        puts=len(latencies) * load.puts,
        elapsed_seconds=now - began,
    )
