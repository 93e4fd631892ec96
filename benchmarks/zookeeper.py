"""Sets and gets on a real ZooKeeper, beside the published experiments of the controller's redesign.

The experiments of that document's appendix A: one at a time, pipelined, in multis one at a time,
and in pipelined multis that check a znode first. Asked through the session that nodes use (kazoo
underneath), on one server and on three that share this machine. The document had five machines, a
client in Java and 500,000 znodes: rates differ by what runs them, so that the ratios to its
slowest row, one synchronous set after the other, say more. Each line has both.

    python -m benchmarks.zookeeper --servers 1
"""

import argparse
import asyncio
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter

from benchmarks.figures import print_figure, progress, skip
from benchmarks.peers.local import scratch_directory
from jepsen_like.real.free_ports import free_ports
from jepsen_like.real.zookeeper import ZooKeeper, missing_reason
from wire.zk.accounting import batches
from wire.zk.kazoo_session import KazooSession
from wire.zk.session import (
    Check,
    Create,
    Failed,
    GetData,
    Multi,
    Operation,
    Result,
    SessionChanged,
    SessionEvent,
    SessionState,
    SetData,
    Write,
)

ROUNDS = 3
ZNODES = 20_000
ZNODES_ALONE = 2_000  # for those that wait for every answer
VALUE = bytes(64)  # as in the document, 10,000 of them fit into a request and 50,000 do not
TIMEOUT_MS = 10_000
EPOCH = "/epoch"
BATCHES = (10, 50, 100, 500, 1000, 5000, 10_000)
PUBLISHED_ZNODES = 500_000
# Average milliseconds for 500,000 znodes: seed 001, appendix A. By experiment and batch size.
PUBLISHED_MS: dict[tuple[str, int], float] = {
    ("set-data-sync", 1): 253376.6,
    ("get-data-sync", 1): 64151.8,
    ("set-data-async", 1): 18760.6,
    ("get-data-async", 1): 10304.6,
    ("multi-set-data-sync", 10): 33340.6,
    ("multi-set-data-sync", 50): 17126.4,
    ("multi-set-data-sync", 100): 11308.2,
    ("multi-set-data-sync", 500): 7564.4,
    ("multi-set-data-sync", 1000): 6908.6,
    ("multi-set-data-sync", 5000): 5432.0,
    ("multi-set-data-sync", 10_000): 5170.8,
    ("multi-check-and-set-data-async", 10): 4270.8,
    ("multi-check-and-set-data-async", 50): 4122.2,
    ("multi-check-and-set-data-async", 100): 3824.2,
    ("multi-check-and-set-data-async", 500): 3795.2,
    ("multi-check-and-set-data-async", 1000): 3773.0,
    ("multi-check-and-set-data-async", 5000): 3135.0,
    ("multi-check-and-set-data-async", 10_000): 3308.6,
}
BASE = ("set-data-sync", 1)


@dataclass(frozen=True, slots=True)
class Experiment:
    name: str
    batch: int
    znodes: int
    operations: tuple[Operation, ...]

    @property
    def is_pipelined(self) -> bool:
        return self.name.endswith("async")

    @property
    def key(self) -> tuple[str, int]:
        return self.name, self.batch


def path(number: int) -> str:
    return f"/b/{number:07}"


def sets(count: int) -> list[SetData]:
    return [SetData(path=path(number), data=VALUE) for number in range(count)]


def gets(count: int) -> list[Operation]:
    return [GetData(path=path(number)) for number in range(count)]


def multis(batch: int, first: Sequence[Write] = ()) -> list[Operation]:
    groups = batches(sets(ZNODES), count_max=batch)
    return [Multi(writes=(*first, *group)) for group in groups]


def experiments() -> Iterator[Experiment]:
    yield Experiment("set-data-sync", 1, ZNODES_ALONE, tuple(sets(ZNODES_ALONE)))
    yield Experiment("get-data-sync", 1, ZNODES_ALONE, tuple(gets(ZNODES_ALONE)))
    for batch in BATCHES:
        yield Experiment("multi-set-data-sync", batch, ZNODES, tuple(multis(batch)))
    yield Experiment("set-data-async", 1, ZNODES, tuple(sets(ZNODES)))
    yield Experiment("get-data-async", 1, ZNODES, tuple(gets(ZNODES)))
    for batch in BATCHES:
        guarded = multis(batch, (Check(path=EPOCH, version=0),))
        yield Experiment("multi-check-and-set-data-async", batch, ZNODES, tuple(guarded))


class Client:
    """One session; what it is asked must succeed."""

    def __init__(self, connect: str) -> None:
        self._session_id = 0
        self._connected = asyncio.Event()
        self.session = KazooSession(connect, timeout_ms=TIMEOUT_MS, hear=self._hear)

    def _hear(self, event: SessionEvent) -> None:
        if isinstance(event, SessionChanged) and event.state is SessionState.CONNECTED:
            self._session_id = event.session_id
            self._connected.set()

    async def start(self) -> None:
        self.session.start()
        await self._connected.wait()

    async def all(self, operations: Sequence[Operation]) -> None:
        """Pipelined: done when the last is answered, which is answered last."""
        answered = asyncio.get_running_loop().create_future()
        left = len(operations)

        def done(result: Result) -> None:
            nonlocal left
            left -= 1
            if isinstance(result, Failed) and not answered.done():
                answered.set_exception(RuntimeError(f"not done: {result}"))
            elif left == 0:
                answered.set_result(None)

        for operation in operations:
            self.session.ask(operation, session_id=self._session_id, done=done)
        await answered

    async def run(self, experiment: Experiment) -> float:
        """Seconds."""
        begin = perf_counter()
        if experiment.is_pipelined:
            await self.all(experiment.operations)
        else:
            for operation in experiment.operations:
                await self.all([operation])
        return perf_counter() - begin


@contextmanager
def zookeeper(servers: int) -> Iterator[ZooKeeper]:
    with scratch_directory() as directory:
        started = ZooKeeper.create(directory, count=servers, ports=free_ports())
        try:
            started.start_all()
            started.wait_ready()
            yield started
        finally:
            started.stop_all()


async def measure(connect: str) -> dict[tuple[str, int], list[float]]:
    """Operations a second, by experiment, of every round."""
    client = Client(connect)
    await client.start()
    nodes = [Create(path="/b"), Create(path=EPOCH)]
    nodes += [Create(path=path(number), data=VALUE) for number in range(ZNODES)]
    await client.all([Multi(writes=group) for group in batches(nodes, count_max=500)])
    rates: dict[tuple[str, int], list[float]] = {}
    for round_number in range(ROUNDS):
        progress(f"round {round_number + 1} of {ROUNDS}")
        for experiment in experiments():
            seconds = await client.run(experiment)
            rates.setdefault(experiment.key, []).append(experiment.znodes / seconds)
    await client.session.close()
    return rates


def report(servers: int, rates: dict[tuple[str, int], list[float]]) -> None:
    """Each figure beside the document's, both also as ratios to one set after the other."""
    base = statistics.median(rates[BASE])
    published_base = PUBLISHED_ZNODES * 1000 / PUBLISHED_MS[BASE]
    progress(f"\n{servers} server(s){'':31} here: ops/s  ratio   document: ops/s  ratio")
    for (name, batch), of_rounds in rates.items():
        rate = statistics.median(of_rounds)
        published = PUBLISHED_ZNODES * 1000 / PUBLISHED_MS[name, batch]
        progress(
            f"{name:32}{batch:>8}{rate:>16,.0f}{rate / base:>7.1f}"
            f"{published:>18,.0f}{published / published_base:>7.1f}"
        )
        print_figure(
            f"zookeeper {name}",
            rate,
            "operations/s",
            servers=servers,
            batch=batch,
            of_rounds=[round(each) for each in of_rounds],
            ratio=round(rate / base, 1),
            published=round(published),
            published_ratio=round(published / published_base, 1),
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--servers", type=int, nargs="*", default=[1, 3], choices=(1, 3))
    args = parser.parse_args()
    reason = missing_reason()
    if reason is not None:
        skip("zookeeper", reason)
        return 0
    for servers in args.servers:
        progress(f"{servers} ZooKeeper server(s)")
        with zookeeper(servers) as started:
            report(servers, asyncio.run(measure(started.connect)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
