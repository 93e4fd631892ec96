"""One commit by phase: calls and processor time of three controllers in one process.

Real sockets and files on one loop, one put after the other, each asked as soon as the one before is
acknowledged. "controllers": the leader is asked from inside its process. "broker": one broker
follows, and a client on a connection asks it; it forwards to the leader.

Calls are counted exactly, by the module of what is called (`benchmarks.profiling`), while the
clock that bounds a turn stands still. Rounds differ by which socket the kernel shows first; commits
can be compared on any machine. Processor time is the loop's thread's, without counting; it is
divided among phases by samples, one each time the kernel's clock ticks. Syncs run in the loop's
thread, however slow the disk; a broker's own are in others, which are not counted.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from unittest.mock import patch

from benchmarks.figures import print_figure, progress
from benchmarks.peers.load import REQUESTS_PREPARED, Load
from benchmarks.peers.local import scratch_directory
from benchmarks.peers.quorum import (
    alter_configs,
    encoded_answer,
    encoded_request,
    register_topics,
)
from benchmarks.profiling import OTHER, Calls, sampling
from quorumlab.in_process import InProcessCluster
from quorumlab.node import Node

ROUNDS = 5
PUTS = 200  # a round that is counted
TIMED_PUTS = 400
WARM_UP = 300
LOAD = Load(name="phases", in_flight=1, puts=1, seconds=0.0, first_value=1_000_000_000)
SETTINGS = {
    "controller.quorum.fetch.timeout.ms": "20000",  # counting makes everything slow
    "metadata.max.idle.interval.ms": "0",  # nothing is written but what is put
    "broker.session.timeout.ms": "3600000",
    "broker.heartbeat.interval.ms": "20000",
    "default.replication.factor": "1",
    "quorumlab.inline.sync.max.ms": "60000",  # every sync is in the loop's thread
}

Put = Callable[[int], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What was counted in one round, divided by the puts in it."""

    python: Mapping[str, float]  # calls by phase
    native: Mapping[str, float]
    whole: Mapping[str, float]  # by the name of a figure
    unknown: frozenset[str]  # the files that no phase names


class Client(asyncio.Protocol):
    """A connection with one request on its way."""

    def __init__(self) -> None:
        numbers = range(REQUESTS_PREPARED)
        self._requests = [encoded_request(LOAD, number) for number in numbers]
        self._answers = [encoded_answer(LOAD, number) for number in numbers]
        self._received = b""
        self._expected = b""
        self._answered: asyncio.Future[None]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    async def put(self, number: int) -> None:
        self._answered = asyncio.get_running_loop().create_future()
        self._expected = self._answers[number % REQUESTS_PREPARED]
        self._transport.write(self._requests[number % REQUESTS_PREPARED])
        await self._answered

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) >= len(self._expected):
            assert self._received == self._expected, f"refused: {self._received!r}"
            self._received = b""
            self._answered.set_result(None)


class Phases:
    """A running cluster, and how to put into it."""

    def __init__(self, cluster: InProcessCluster, put: Put) -> None:
        self._cluster = cluster
        self._put = put
        self._number = 0

    async def count(self) -> Counted:
        nodes = list(self._cluster.nodes.values())
        before = _progress_of(nodes)
        with patch("time.perf_counter", repeat(0.0).__next__), Calls() as calls:
            await self._puts(PUTS)
        turns, syncs = (
            (now - then) / PUTS for now, then in zip(_progress_of(nodes), before, strict=True)
        )
        python, native = (
            {phase: times / PUTS for phase, times in each.items()} for each in calls.by_phase()
        )
        whole = {
            "calls": sum(python.values()),
            "calls of C": sum(native.values()),
            "turns": turns,
            "wake-ups": calls.times("epoll.poll") / PUTS,
            "socket writes": calls.times("socket.send", "socket.sendmsg") / PUTS,
            "socket reads": calls.times("socket.recv", "socket.recv_into") / PUTS,
            "syncs": syncs,
            "frozen values built": calls.values_built() / PUTS,
        }
        return Counted(
            python=python, native=native, whole=whole, unknown=frozenset(calls.unknown())
        )

    async def time(self) -> tuple[float, Counter[str]]:
        """Processor seconds of the loop's thread a put, and where they were seen."""
        with sampling() as samples:
            began = time.thread_time()
            await self._puts(TIMED_PUTS)
            return (time.thread_time() - began) / TIMED_PUTS, samples

    async def warm_up(self) -> None:
        await self._puts(WARM_UP)

    async def _puts(self, times: int) -> None:
        for _ in range(times):
            await self._put(self._number)
            self._number += 1


def _progress_of(nodes: list[Node]) -> tuple[int, int]:
    """Turns and syncs of all nodes, in whichever thread."""
    turns = sum(node.driver.counts.turns for node in nodes)
    return turns, sum(node.storage.fsyncs for node in nodes)


async def measure(directory: Path, variant: str) -> None:
    brokers = 1 if variant == "broker" else 0
    cluster = InProcessCluster(directory, controllers=3, brokers=brokers, settings=SETTINGS)
    async with cluster:
        leader = next(node for node in cluster.nodes.values() if node.facts()["role"] == "leader")
        at = cluster.layout.node(leader.config.node_id)
        await asyncio.to_thread(
            register_topics,
            at.host,
            at.port,
            cluster.layout.cluster_id,
            has_broker=bool(brokers),
        )
        phases = Phases(cluster, await _way_in(cluster, leader))
        await phases.warm_up()
        counted = [await phases.count() for _ in range(ROUNDS)]
        timed = [await phases.time() for _ in range(ROUNDS)]
        assert leader.facts()["role"] == "leader", "the leader has changed"
    print_calls(variant, counted)
    print_processor_time(variant, timed)


async def _way_in(cluster: InProcessCluster, leader: Node) -> Put:
    if cluster.layout.brokers:
        broker = cluster.layout.brokers[0]
        loop = asyncio.get_running_loop()
        _, client = await loop.create_connection(Client, broker.host, broker.port)
        return client.put

    bodies = [alter_configs(LOAD, number) for number in range(REQUESTS_PREPARED)]

    async def put(number: int) -> None:
        answer = await leader.driver.ask(bodies[number % REQUESTS_PREPARED])
        assert answer.responses[0].error_code == 0, answer  # type: ignore[attr-defined]

    return put


def print_calls(variant: str, rounds: list[Counted]) -> None:
    """Prints the round with the fewest calls: a node that is late only adds some."""
    best = min(rounds, key=lambda counted: counted.whole["calls"])
    for file in sorted(best.unknown):
        progress(f"no phase has {file}: see PHASES in benchmarks/profiling.py")
    parameters = {"rounds": ROUNDS, "puts_a_round": PUTS}
    for figure, value in best.whole.items():
        name = f"commit by phase, {variant}: {figure}"
        of_rounds = sorted(round(counted.whole[figure], 3) for counted in rounds)
        print_figure(name, value, "a commit", **parameters, of_rounds=of_rounds)
    for phase in sorted({*best.python, *best.native, OTHER}):  # also that none is `other`
        print_figure(
            f"commit by phase, {variant}: calls of {phase}",
            best.python.get(phase, 0.0),
            "a commit",
            **parameters,
            of_c=best.native.get(phase, 0.0),
        )


def print_processor_time(variant: str, rounds: list[tuple[float, Counter[str]]]) -> None:
    """The best round, since others' load only adds, divided as all rounds' samples are."""
    microseconds = [seconds * 1e6 for seconds, _ in rounds]
    name = f"commit by phase, {variant}: processor time"
    of_rounds = sorted(round(each) for each in microseconds)
    parameters = {"rounds": ROUNDS, "puts_a_round": TIMED_PUTS}
    print_figure(name, min(microseconds), "µs a commit", **parameters, of_rounds=of_rounds)
    samples = sum((each for _, each in rounds), Counter[str]())
    for phase, seen in sorted(samples.items()):
        share = seen / samples.total()
        print_figure(f"{name} of {phase}", share * min(microseconds), "µs a commit", samples=seen)


def main() -> None:
    with scratch_directory() as directory:
        for variant in ("controllers", "broker"):
            progress(f"commit by phase: {variant}")
            asyncio.run(measure(directory / variant, variant))
