"""Sets and gets on a real ZooKeeper, beside the published experiments of the controller's redesign.

The experiments of that document's appendix A: one at a time, pipelined, in multis one at a time,
and in pipelined multis that check a znode first. Asked through the session that nodes use (kazoo
underneath), on servers that share this machine. The document had five machines, a client in Java
and 500,000 znodes: rates differ by what runs them, so that the ratios to its slowest row, one
synchronous set after the other, say more. Each line has both. An error is a result, too: a batch
that is larger than `jute.maxbuffer` costs the connection, there and here.

    python -m benchmarks zookeeper --servers 1 --znodes 500000 --page docs/zookeeper-calls.md
"""

import argparse
import asyncio
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from time import perf_counter

from benchmarks.figures import measured_on, print_figure, progress, skip
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

ZNODES = 20_000
ZNODES_ALONE = 2_000  # at most, for those that wait for every answer
VALUE = bytes(64)  # as in the document, 10,000 of them fit into a request and 50,000 do not
TIMEOUT_MS = 10_000
RECOVERY_S = 2  # after a connection was lost
EPOCH = "/epoch"
BATCHES = (1, 10, 50, 100, 500, 1000, 5000, 10_000, 50_000)
PUBLISHED_ZNODES = 500_000
# Average milliseconds for 500,000 znodes: seed 001, appendix A. By experiment and batch size.
PUBLISHED_ERRORS = {
    ("multi-set-data-sync", 50_000): "connection loss",
    ("multi-check-and-set-data-async", 1): "out of memory",
    ("multi-check-and-set-data-async", 50_000): "connection loss",
}
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


Key = tuple[str, int]  # an experiment, and its batch size
Rates = dict[Key, list[float | str]]  # operations a second of every round, or the error


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
    def key(self) -> Key:
        return self.name, self.batch


def path(number: int) -> str:
    return f"/b/{number:07}"


def sets(count: int) -> list[SetData]:
    return [SetData(path=path(number), data=VALUE) for number in range(count)]


def gets(count: int) -> list[Operation]:
    return [GetData(path=path(number)) for number in range(count)]


def multis(znodes: int, batch: int, first: Sequence[Write] = ()) -> tuple[Operation, ...]:
    """As large as they are asked for, whether the server takes them or not."""
    left, made = iter(sets(znodes)), []
    while group := tuple(islice(left, batch)):
        made.append(Multi(writes=(*first, *group)))
    return tuple(made)


def experiments(znodes: int) -> Iterator[Experiment]:
    alone = min(znodes, ZNODES_ALONE)
    yield Experiment("set-data-sync", 1, alone, tuple(sets(alone)))
    yield Experiment("get-data-sync", 1, alone, tuple(gets(alone)))
    for batch in BATCHES:
        some = min(znodes, alone * batch)
        yield Experiment("multi-set-data-sync", batch, some, multis(some, batch))
    yield Experiment("set-data-async", 1, znodes, tuple(sets(znodes)))
    yield Experiment("get-data-async", 1, znodes, tuple(gets(znodes)))
    for batch in BATCHES:
        guarded = multis(znodes, batch, (Check(path=EPOCH, version=0),))
        yield Experiment("multi-check-and-set-data-async", batch, znodes, guarded)


class Client:
    """One session."""

    def __init__(self, connect: str) -> None:
        self._session_id = 0
        self._connected = asyncio.Event()
        self.session = KazooSession(connect, timeout_ms=TIMEOUT_MS, hear=self._hear)

    def _hear(self, event: SessionEvent) -> None:
        if not isinstance(event, SessionChanged):
            return
        if event.state is SessionState.CONNECTED:
            self._session_id = event.session_id
            self._connected.set()
        else:
            self._connected.clear()

    async def start(self) -> None:
        self.session.start()
        await self._connected.wait()

    async def all(self, operations: Sequence[Operation]) -> Failed | None:
        """Pipelined: done when all are answered. Returns the first failure."""
        answered: asyncio.Future[Failed | None] = asyncio.get_running_loop().create_future()
        left, first = len(operations), None

        def done(result: Result) -> None:
            nonlocal left, first
            left -= 1
            if isinstance(result, Failed) and first is None:
                first = result
            if left == 0:
                answered.set_result(first)

        for operation in operations:
            self.session.ask(operation, session_id=self._session_id, done=done)
        return await answered

    async def run(self, experiment: Experiment) -> float | str:
        """Operations a second, or the error."""
        begin, operations = perf_counter(), experiment.operations
        for asked in [operations] if experiment.is_pipelined else [[each] for each in operations]:
            if (failed := await self.all(asked)) is not None:
                await asyncio.sleep(RECOVERY_S)
                await self._connected.wait()
                return failed.error.name.lower().replace("_", " ")
        return experiment.znodes / (perf_counter() - begin)


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


async def measure(connect: str, znodes: int, rounds: int) -> Rates:
    client = Client(connect)
    await client.start()
    nodes = [Create(path="/b"), Create(path=EPOCH)]
    nodes += [Create(path=path(number), data=VALUE) for number in range(znodes)]
    for group in batches(nodes, count_max=500):
        assert await client.all([Multi(writes=group)]) is None
    rates: Rates = {}
    for round_number in range(rounds):
        for experiment in experiments(znodes):
            progress(f"round {round_number + 1} of {rounds}: {experiment.name} {experiment.batch}")
            rates.setdefault(experiment.key, []).append(await client.run(experiment))
    await client.session.close()
    return rates


@dataclass(frozen=True, slots=True)
class Row:
    """One experiment, here and in the document."""

    key: Key
    of_rounds: list[float | str]
    base: float  # the median of one set after the other

    @property
    def rate(self) -> float | str:
        """The median, or the error of a round."""
        error = next((each for each in self.of_rounds if isinstance(each, str)), None)
        return error or statistics.median(map(float, self.of_rounds))

    @property
    def published(self) -> float | str:
        if self.key in PUBLISHED_MS:
            return PUBLISHED_ZNODES * 1000 / PUBLISHED_MS[self.key]
        return PUBLISHED_ERRORS.get(self.key, "not run")

    def cells(self) -> Iterator[str]:
        name, batch = self.key
        published_base = PUBLISHED_ZNODES * 1000 / PUBLISHED_MS[BASE]
        yield from (name, f"{batch:,}")
        for rate, base in ((self.rate, self.base), (self.published, published_base)):
            if isinstance(rate, str):
                yield from (rate, "")
            else:
                yield from (f"{rate:,.0f}", f"{rate / base:.1f}")


def rows(rates: Rates) -> list[Row]:
    base = statistics.median(each for each in rates[BASE] if isinstance(each, float))
    return [Row(key, of_rounds, base) for key, of_rounds in rates.items()]


def report(servers: int, znodes: int, found: list[Row]) -> None:
    for row in found:
        name, batch = row.key
        if isinstance(row.rate, str):
            progress(f"{name}, {batch}: {row.rate}")
            continue
        published = None if isinstance(row.published, str) else round(row.published)
        print_figure(
            f"zookeeper {name}",
            row.rate,
            "operations/s",
            servers=servers,
            znodes=znodes,
            batch=batch,
            of_rounds=[round(each) for each in row.of_rounds if isinstance(each, float)],
            ratio=round(row.rate / row.base, 1),
            published=published,
        )


def page(tables: dict[int, list[Row]], znodes: int, rounds: int) -> str:
    """Each experiment beside the document's, both also as ratios to one set after the other."""
    alone = min(znodes, ZNODES_ALONE)
    command = f"python -m benchmarks zookeeper --servers {' '.join(map(str, tables))}"
    lines = [
        "# Calls to ZooKeeper, beside seed 001's appendix A",
        "",
        f"{datetime.now(UTC).date()}, {measured_on()['commit']}, on {measured_on()['cpus']} cores,",
        f"`{command} --znodes {znodes} --rounds {rounds}`:",
        f"operations a second over {znodes:,} znodes (one after the other: over {alone:,}), the",
        "median of the rounds, and the ratio to the first row. The document has 500,000 znodes,",
        "five machines and a client in Java; here, servers and client share a machine. An error is",
        "a result: a request beyond `jute.maxbuffer` costs the connection.",
    ]
    for servers, found in tables.items():
        lines += [
            "",
            f"## {servers} server{'s' * (servers > 1)}",
            "",
            "| experiment | batch | here | ratio | document | ratio |",
            "|---|---|---|---|---|---|",
            *(f"| {' | '.join(row.cells())} |" for row in found),
        ]
    return "\n".join([*lines, ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--servers", type=int, nargs="*", default=[1, 3], choices=(1, 3, 5))
    parser.add_argument("--znodes", type=int, default=ZNODES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--page", type=Path, help="also write the tables there")
    args = parser.parse_args()
    reason = missing_reason()
    if reason is not None:
        skip("zookeeper", reason)
        return 0
    tables: dict[int, list[Row]] = {}
    for servers in args.servers:
        progress(f"{servers} ZooKeeper server(s)")
        with zookeeper(servers) as started:
            tables[servers] = rows(asyncio.run(measure(started.connect, args.znodes, args.rounds)))
        report(servers, args.znodes, tables[servers])
    if args.page is not None:
        args.page.write_text(page(tables, args.znodes, args.rounds))
    return 0
