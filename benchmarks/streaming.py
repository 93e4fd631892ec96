"""Histories judged while they are written: rate, delay of verdicts, memory; one run or a soak.

    python benchmarks/run.py streaming
    python benchmarks/run.py streaming --seconds 300 --rate 20000
    python benchmarks/run.py streaming --seconds 7200 --rate 5000    # the soak

One process writes the histories of log clients at a steady rate, and Spark judges them beside it,
on `local[2]`. The delay of a line is the time from when it was written to when a verdict spoke of
it. Once in ten seconds a reader is shown a value that is not there: the delay of a violation.
"""

import argparse
import json
import os
import subprocess
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import msgpack

from benchmarks.figures import ROOT, percentile, print_figure, progress
from benchmarks.peers.local import scratch_directory
from jepsen_like.histories.frames import framed
from jepsen_like.histories.history import Header, Value, encode_header
from jepsen_like.python_children import python_command
from quorumlab.children import child

_CLIENTS = 20
_KEYS = 200
_TICK_SECONDS = 0.1
_LIE_SECONDS = 10.0
_WARM_UP_SECONDS = 30.0
_KEPT = 1_000  # records of a key that a reader may be behind
_UNKNOWN = 0.001


# --- who writes ----------------------------------------------------------------------------------


@dataclass
class _Clients:
    """Of one run. Each sends to any key, or reads on in its own; none waits."""

    random: Random
    lines: int = 0
    value: int = 0
    ends: list[int] = field(default_factory=lambda: [0] * _KEYS)
    logs: list[deque[int]] = field(default_factory=lambda: [deque() for _ in range(_KEYS)])
    at: list[int] = field(default_factory=lambda: [0] * _CLIENTS)
    names: list[int] = field(default_factory=lambda: list(range(_CLIENTS)))
    asked: list[Value] = field(default_factory=lambda: [None] * _CLIENTS)
    is_lying: bool = False
    lies: int = 0

    def line(self, kind: str, place: int, f: str, value: Value) -> bytes:
        at = [self.lines, time.monotonic_ns(), kind, self.names[place], f, value, None, {}]
        self.lines += 1
        return framed(msgpack.packb(at))

    def operations(self, count: int) -> Iterator[bytes]:
        for _ in range(count):
            place = self.random.randrange(_CLIENTS)
            asked = self.asked[place]
            if asked is not None:
                yield self._answered(place, asked)
            yield self._asks(place)

    def _asks(self, place: int) -> bytes:
        if self.random.random() < 0.5:
            self.value += 1
            self.asked[place] = [["send", f"key-{self.random.randrange(_KEYS)}", self.value]]
            return self.line("invoke", place, "send", self.asked[place])
        self.asked[place] = [["poll"]]
        return self.line("invoke", place, "poll", [["poll"]])

    def _answered(self, place: int, asked: Value) -> bytes:
        [[what, *of]] = asked
        if what == "poll":
            return self.line("ok", place, "poll", [["poll", self._polled(place)]])
        key, value = int(of[0][4:]), of[1]
        if self.random.random() < _UNKNOWN:
            answer = self.line("info", place, "send", asked)
            self.names[place] += _CLIENTS
            self.at[place] = self.ends[self.names[place] % _KEYS]
            return answer
        log = self.logs[key]
        log.append(value)
        if len(log) > _KEPT:
            log.popleft()
        self.ends[key] += 1
        return self.line("ok", place, "send", [["send", of[0], [self.ends[key] - 1, value]]])

    def _polled(self, place: int) -> dict[str, Value]:
        key = self.names[place] % _KEYS
        log, end = self.logs[key], self.ends[key]
        begin = max(self.at[place], end - len(log))
        records = [[at, log[at - end]] for at in range(begin, min(end, begin + 20))]
        self.at[place] = begin + len(records)
        if records and self.is_lying:
            records[-1][1] = -self.lines
            self.is_lying = False
            self.lies += 1
        return {f"key-{key}": records} if records else {}


def _feed(directory: Path, runs: int, rate: float, seconds: float) -> None:
    """Writes the histories; on stdout, after each tick, how far they are."""
    clients = [_Clients(Random(run)) for run in range(runs)]
    files = [(directory / f"run-{run}.msgpack").open("ab") for run in range(runs)]
    header = encode_header(Header(workload="log", seed=0))
    for file in files:
        file.write(header)
    begun = time.monotonic()
    done, lied = 0, _WARM_UP_SECONDS
    while (now := time.monotonic() - begun) < seconds:
        due = int(now * rate) - done
        done += due
        for mine, file in zip(clients, files, strict=True):
            file.write(b"".join(mine.operations(due // runs)))
            file.flush()
        if now > lied and clients[0].lies < _KEYS // 2:
            clients[0].is_lying = True
            lied = now + _LIE_SECONDS
        written = {f"run-{run}": each.lines for run, each in enumerate(clients)}
        print(json.dumps([time.time(), done, written]), flush=True)
        time.sleep(max(0.0, _TICK_SECONDS - (time.monotonic() - begun - now)))


# --- who judges ----------------------------------------------------------------------------------


@dataclass
class _Seen:
    """Delays are by line: `written` has when each run had how many."""

    written: dict[str, deque[tuple[float, int]]] = field(default_factory=dict)
    delays: list[float] = field(default_factory=list)
    violations: list[float] = field(default_factory=list)
    states: list[int] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)  # MB
    upto: dict[str, int] = field(default_factory=dict)
    operations: dict[str, int] = field(default_factory=dict)
    done: int = 0
    seconds: float = 0.0  # of a processor, while it was judged

    def wrote(self, line: str) -> None:
        when, self.done, written = json.loads(line)
        for run, lines in written.items():
            self.written.setdefault(run, deque()).append((when, lines))

    def told(self, row: Any) -> None:
        now, run = time.time(), Path(row.run).stem
        waiting = self.written.get(run, deque())
        if row.rule is not None:
            last = max(row.operations)
            when = next((when for when, lines in waiting if lines > last), now)
            self.violations.append(now - when)
            return
        if row.counts is None:
            return
        while waiting and waiting[0][1] <= row.upto + 1:
            self.delays.append(now - waiting.popleft()[0])
        self.upto[run], self.operations[run] = row.upto, row.counts["operations"]
        self.seconds += row.seconds
        self.states.append(row.counts["state bytes"])


@contextmanager
def _feeding(directory: Path, args: argparse.Namespace) -> Iterator[subprocess.Popen[str]]:
    options = [f"--{name}={getattr(args, name)}" for name in ("runs", "rate", "seconds")]
    command = python_command("benchmarks", "streaming", f"--feed={directory}", *options)
    with child(command, output=subprocess.PIPE, directory=ROOT) as process:
        yield process


def _measure(directory: Path, args: argparse.Namespace) -> None:
    from spark.session import Settings, session
    from spark.streaming import growing_files, watch

    seen = _Seen()
    runs = directory / "runs"
    runs.mkdir()
    with session(Settings(master="local[2]", driver_mb=1024)) as spark:
        verdicts = watch(growing_files(spark, str(runs)))

        def batch(rows: Any, _: int) -> None:
            for row in rows.collect():
                seen.told(row)

        writer = verdicts.writeStream.foreachBatch(batch)
        query = writer.option("checkpointLocation", str(directory / "checkpoint")).start()
        begun = time.monotonic()
        with _feeding(runs, args) as process:
            assert process.stdout is not None
            for line in process.stdout:
                seen.wrote(line)
                _look(seen, begun, args)
            fed = time.monotonic() - begun
            query.processAllAvailable()
        took = time.monotonic() - begun
        stored = query.lastProgress
        query.stop()
    _print(seen, args, fed, took, stored)


def _look(seen: _Seen, begun: float, args: argparse.Namespace) -> None:
    """Forgets the delays while everything is started, and samples memory."""
    now = time.monotonic() - begun
    if now < _WARM_UP_SECONDS < args.seconds:
        seen.delays.clear()
    if now > _LIE_SECONDS * (len(seen.memory) + 1):
        seen.memory.append(_resident_mb())
        judged = sum(seen.operations.values())
        progress(
            f"{now:5.0f} s: {seen.done:,} written, {judged:,} judged, {seen.memory[-1]:.0f} MB"
        )


def _resident_mb() -> float:
    """Of this process and all below it: the driver, the virtual machine, the workers."""
    mine, found = {str(os.getpid())}, 0
    pages: dict[str, tuple[str, int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            told = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pages[stat.parent.name] = told[1], int(told[21])
    for _ in range(6):  # generations
        mine |= {pid for pid, (parent, _) in pages.items() if parent in mine}
    found = sum(pages[pid][1] for pid in mine if pid in pages)
    return found * 4096 / 1e6


def _print(seen: _Seen, args: argparse.Namespace, fed: float, took: float, stored: Any) -> None:
    judged = sum(seen.operations.values())
    about = {"runs": args.runs, "rate": args.rate, "seconds": args.seconds, "keys": _KEYS}
    print_figure("watched operations", judged / took, "operations/s", **about, written=seen.done)
    print_figure("processor time of judging", 1e6 * seen.seconds / judged, "us/operation", **about)
    print_figure("watched, left at the end", took - fed, "s", **about)
    for percent in (50, 99):
        name = f"verdict delay, p{percent}"
        print_figure(name, percentile(seen.delays, percent), "s", **about)
    if seen.violations:
        print_figure("violation delay, most", max(seen.violations), "s", **about)
    print_figure("violations told", len(seen.violations), "violations", **about)
    half = len(seen.states) // 2
    print_figure("state of a run, most", max(seen.states), "bytes", **about)
    print_figure(
        "state of a run, most in the first half", max(seen.states[:half]), "bytes", **about
    )
    rows = stored["stateOperators"][0]["numRowsTotal"]
    print_figure("state rows", int(rows), "rows", **about)
    for at, name in ((len(seen.memory) // 2, "halfway"), (-1, "at the end")):
        if seen.memory:
            print_figure(f"memory of all processes, {name}", seen.memory[at], "MB", **about)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=2, help="written at once (default: 2)")
    parser.add_argument("--rate", type=float, default=20_000, help="operations a second, of all")
    parser.add_argument("--seconds", type=float, default=120, help="default: 120; a soak: 7200")
    parser.add_argument("--feed", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.feed is not None:
        _feed(args.feed, args.runs, args.rate, args.seconds)
        return
    with scratch_directory() as directory:
        _measure(directory, args)
