"""Checking histories: operations a second on one core, 10^7 of them on Spark; beside Porcupine.

    python benchmarks/run.py checking
    python benchmarks/run.py checking --only converted
    python benchmarks/run.py checking --only spark --operations 10000000
    python benchmarks/run.py checking --only pieces --operations 5000000

What is loaded is columns in memory; a table is in memory too, as Spark's workers read it.
"""

import argparse
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.checking_histories import Shape, history, write
from benchmarks.checking_sets import write_set
from benchmarks.figures import print_figure, progress, skip
from benchmarks.peers import porcupine_register
from benchmarks.peers.local import scratch_directory
from jepsen_like.checkers.kafka_log import check_log_columns
from jepsen_like.checkers.queues import check_queue_columns
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.checkers.zones import sound
from jepsen_like.histories.history import encode_header, encode_op
from jepsen_like.histories.interchange import edn_lines, jsonl_lines, stream_as
from jepsen_like.sim.assemblies.quorum.simulation import run
from spark.checks import check
from spark.columns import log_columns, queue_columns, register_columns
from spark.judging import Limits, judged
from spark.parquet import write_parquet
from spark.plan import Thresholds
from spark.session import Settings, session
from spark.sweeps import sweep_seeds
from spark.table_files import NAMES

PARTS = ("converted", "loaded", "pieces", "porcupine", "spark", "sweeps")
KEYS = {"log": 1, "queue": 1, "register": 100}
CLIENTS = (10, 50)
ROUNDS = 3
UNKNOWN = 0.01
NO_BOUNDS = Limits(mb=1 << 20)
SEEDS = range(100)
PORCUPINE_OPERATIONS = {1: 10_000, 100: 100_000}  # by keys


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--only", choices=PARTS)
    args = parser.parse_args()
    with scratch_directory() as directory:
        if args.only in (None, "converted"):
            for workload in KEYS:
                converted(workload, args.operations // 10, directory)
        if args.only in (None, "loaded"):
            for shape in shapes(args.operations):
                loaded_and_table(shape, directory / "table")
        if args.only in (None, "porcupine"):
            porcupine(directory)
        if args.only in (None, "spark"):
            on_spark(args.operations, directory)
        if args.only in (None, "pieces"):
            in_pieces(args.operations, directory)
        if args.only in (None, "sweeps"):
            sweeps()


def shapes(operations: int) -> Iterator[Shape]:
    for workload, keys in KEYS.items():
        for clients in CLIENTS:
            right = Shape(workload=workload, operations=operations, clients=clients, keys=keys)
            yield right
            yield replace(right, unknown=UNKNOWN, is_violated=True)


def loaded_and_table(shape: Shape, path: Path) -> None:
    progress(f"{shape}")
    write(shape, path)
    rows = pq.read_table(path, read_dictionary=NAMES)
    expected = Outcome.VIOLATED if shape.is_violated else Outcome.VALID
    judge = JUDGES[shape.workload](rows)
    assert judge() is expected, shape
    parameters = {
        "workload": shape.workload,
        "operations": shape.operations,
        "rows": len(rows),
        "keys": shape.keys,
        "clients": shape.clients,
        "unknown": shape.unknown,
        "violated": shape.is_violated,
    }
    for name, work in (
        ("checked once loaded", judge),
        ("checked from a table", lambda: judged(rows, NO_BOUNDS).outcome),
    ):
        told = [seconds_of(work) for _ in range(ROUNDS)]
        rates = [round(shape.operations / seconds) for seconds in told]
        print_figure(name, max(rates), "operations/s", of_rounds=rates, **parameters)


def converted(workload: str, operations: int, directory: Path) -> None:
    """From a file as it was written to the table as a file."""
    shape = Shape(workload=workload, operations=operations, clients=10, keys=10, unknown=UNKNOWN)
    progress(f"{shape}")
    written = history(shape)
    for suffix, content in (
        (".msgpack", encode_header(written.header) + b"".join(map(encode_op, written.ops))),
        (".jsonl", "\n".join(jsonl_lines(written)).encode()),
        (".edn", "\n".join(edn_lines(written)).encode()),
    ):

        def work(content: bytes = content, suffix: str = suffix) -> None:
            header, blocks = stream_as(BytesIO(content), suffix)
            write_parquet(header, blocks, directory / "converted", run="run")

        rates = [round(operations / seconds_of(work)) for _ in range(ROUNDS)]
        parameters = {"workload": workload, "operations": operations, "form": suffix}
        print_figure("converted", max(rates), "operations/s", of_rounds=rates, **parameters)


def seconds_of(work: Callable[[], object]) -> float:
    """Counts time of the processor: one core does the work, whatever else runs."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def _log(rows: pa.Table) -> Callable[[], Outcome]:
    columns = log_columns(rows)
    return lambda: check_log_columns(replace(columns)).outcome  # derives everything anew


def _queue(rows: pa.Table) -> Callable[[], Outcome]:
    columns = queue_columns(rows)
    return lambda: check_queue_columns(replace(columns)).outcome


def _register(rows: pa.Table) -> Callable[[], Outcome]:
    columns = register_columns(rows)
    return lambda: Outcome.VALID if sound(columns).all() else Outcome.VIOLATED


JUDGES = {"log": _log, "queue": _queue, "register": _register}


def porcupine(directory: Path) -> None:
    if reason := porcupine_register.missing_reason():
        skip("porcupine", reason)
        return
    try:
        program = porcupine_register.built(directory)
    except subprocess.SubprocessError as error:
        skip("porcupine", f"it cannot be built: {error}")
        return
    for keys, operations in PORCUPINE_OPERATIONS.items():
        shape = Shape(workload="register", operations=operations, clients=10, keys=keys)
        for each in (shape, replace(shape, unknown=UNKNOWN, is_violated=True)):
            beside_porcupine(program, each, directory)


def beside_porcupine(program: Path, shape: Shape, directory: Path) -> None:
    write(shape, directory / "table")
    columns = register_columns(pq.read_table(directory / "table"))
    begun = time.perf_counter()
    is_right = bool(sound(columns).all())
    ours = time.perf_counter() - begun
    told, theirs = porcupine_register.judged(program, columns, directory)
    assert told not in ("Ok", "Illegal") or (told == "Ok") == is_right, shape
    print_figure(
        "checked beside porcupine",
        ours,
        "s",
        porcupine_seconds=theirs,
        porcupine_says=told,
        operations=shape.operations,
        keys=shape.keys,
        clients=shape.clients,
        unknown=shape.unknown,
        violated=shape.is_violated,
    )


def in_pieces(
    operations: int, directory: Path, workloads: Sequence[str] = ("queue", "set")
) -> None:
    """One queue, and one set, as if they were too large for a worker."""
    bounds = Thresholds(one_worker=0, by_operation=0)
    settings = Settings(master="local[2]", driver_mb=1024, seconds=3600)
    queue = Shape(
        workload="queue",
        operations=operations,
        clients=10,
        keys=1,
        unknown=UNKNOWN,
        is_violated=True,
    )
    for workload in workloads:
        progress(f"in pieces: one {workload}")
        path = directory / "table"
        write(queue, path) if workload == "queue" else write_set(operations, path)
        begun = time.perf_counter()
        with session(settings) as spark:
            verdict = check(spark, [path], settings, thresholds=bounds)
        assert verdict.outcome is Outcome.VIOLATED, verdict
        print_figure(
            "checked on Spark in pieces, with its start",
            time.perf_counter() - begun,
            "s",
            workload=workload,
            operations=operations,
            master=settings.master,
            rules=sorted({each.rule for each in verdict.findings}),
        )


def on_spark(operations: int, directory: Path) -> None:
    """From the start of the virtual machine to the verdict, the table being on the disk."""
    settings = Settings(master="local[2]")
    for workload, keys in [("log", 1), ("log", 100), ("queue", 100), ("register", 100)]:
        shape = Shape(
            workload=workload,
            operations=operations,
            clients=10,
            keys=keys,
            unknown=UNKNOWN,
            is_violated=True,
        )
        progress(f"on Spark: {shape}")
        write(shape, directory / "table")
        begun = time.perf_counter()
        with session(settings) as spark:
            ready = time.perf_counter() - begun
            verdict = check(spark, [directory / "table"], settings)
            seconds = time.perf_counter() - begun
        assert verdict.outcome is Outcome.VIOLATED, verdict
        print_figure(
            "checked on Spark, with its start",
            seconds,
            "s",
            of_which_start=round(ready, 1),
            workload=workload,
            operations=operations,
            keys=keys,
            master=settings.master,
        )


def sweeps() -> None:
    for master in ("local[1]", "local[2]"):
        settings = Settings(master=master)
        with session(settings) as spark:
            sweep_seeds(spark, SEEDS[:20], settings, run=run)  # workers start, and import
            begun = time.perf_counter()
            result = sweep_seeds(spark, SEEDS, settings, run=run)
            seconds = time.perf_counter() - begun
        assert not result.failures, result.failures[0]
        print_figure("swept on Spark", len(SEEDS) / seconds, "seeds/s", master=master)
