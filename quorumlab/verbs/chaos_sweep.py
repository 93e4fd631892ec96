"""`quorumlab chaos sim` over many seeds: on processes of this machine, or on Spark.

Each seed is judged where it is run. What comes back are verdicts, what was covered, and the seeds
that failed with the lines that replay them.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from jepsen_like.checkers.verdict import Outcome
from jepsen_like.sim.chaos.plan import Plan
from jepsen_like.sim.runs.command import Progress, swept_here
from jepsen_like.sim.runs.command import run_sim as run_without_workload
from jepsen_like.sim.runs.sweep import Run, SweepResult
from jepsen_like.sim.time.ending import ERROR
from jepsen_like.sim.world.coverage import Coverage
from quorumlab.arguments import Failed, UsageError
from quorumlab.folding import fold_command
from quorumlab.interrupts import sigterm_as_ctrl_c
from quorumlab.output import Progress as ProgressLine
from quorumlab.output import say, say_folded
from quorumlab.simulated_runs import replay_line
from spark.bounded import NotInTime
from spark.session import OutputExists, Settings, SparkUnavailable, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark.sweeps import Swept

__all__ = ["EXIT_ERROR", "is_on_spark", "run_plans_on_spark", "run_sweep", "sum_up"]

_ROOT = Path(__file__).resolve().parent.parent.parent
EXIT_ERROR = 1
_INDENTS = {"trace": 30, "plants": 41, "catches": 48}  # of the last column
_TRACES = re.compile(r"\btrace\(\s*\"([a-z_-]+)\"|Trace\(event=\"([a-z_-]+)\"")
_FOLDERS = {False: ("quorum",), True: ("quorum", "controller", "broker")}  # of a cluster: all


def run_sweep(args: SimpleNamespace) -> int:
    """Runs `--sweep`, and all else that `chaos sim` does without a workload."""
    results: list[SweepResult] = []
    here = swept_here(args)

    def sweeping(seeds: Sequence[int], run: Run, progress: Progress | None) -> SweepResult:
        swept = partial(_swept_on_spark, args) if is_on_spark(args) else here
        results.append(swept(seeds, run, progress))
        return results[-1]

    with sigterm_as_ctrl_c():
        code = run_without_workload(args, sweeping, partial(_say, args))
    for result in results:
        if args.format == "text" and result.seeds:
            for line in _covered(result.coverage, _FOLDERS[args.cluster]):
                say_folded(line)
    return code


def _say(args: SimpleNamespace, text: str) -> None:
    """What is for people fits a terminal."""
    indent = next((_INDENTS[name] for name in _INDENTS if getattr(args, name)), None)
    for line in text.split("\n"):
        if args.format == "json":
            say(line)
        elif line.lstrip().startswith("repro:"):
            say(fold_command(line))
        else:
            say_folded(line, indent)


def is_on_spark(args: SimpleNamespace) -> bool:
    if args.master and args.remote:
        raise UsageError("--master and --remote: name one of them")
    return args.on == "spark" or any((args.master, args.remote, args.table))


def run_plans_on_spark(plan: Plan, seeds: Sequence[int], args: SimpleNamespace) -> int:
    """Runs of a workload, one a seed; the exit code is that of the worst of them."""
    with _on_spark(args) as (spark, settings, progress):
        from spark.sweeps import run_plans

        runs = run_plans(spark, plan, seeds, settings, progress=progress, path=args.table)
    counted = " ".join(f"{name}={count:,}" for name, count in sorted(runs.bitten.items()))
    say_folded(f"faults that bit: {counted or 'none'}")
    for swept in runs.shown:
        for line in _failure(swept, plan):
            say(line)
    codes: Counter[int] = Counter()
    for (outcome, is_void), count in runs.ended.items():
        codes[_code_of(outcome, is_void=is_void)] += count
    return sum_up(codes)


def _code_of(outcome: str, *, is_void: bool) -> int:
    if outcome == ERROR:
        return EXIT_ERROR
    is_doubt = is_void and outcome != Outcome.VIOLATED.value
    return (Outcome.UNDECIDED if is_doubt else Outcome(outcome)).exit_code


def sum_up(codes: Counter[int]) -> int:
    """The exit code of several runs: a violation outweighs everything, then comes an error, and
    doubt outweighs validity."""
    order = (Outcome.VIOLATED.exit_code, EXIT_ERROR, Outcome.UNDECIDED.exit_code)
    red, errors, doubted = (codes[code] for code in order)
    if codes.total() > 1:
        failed = f", {errors} ended by an exception" if errors else ""
        told = f"{red} violated, {doubted} void or undecided, {codes[0]} valid{failed}"
        say(f"{codes.total():,} runs: {told}")
    return next((code for code in order if codes[code]), 0)


def _swept_on_spark(
    args: SimpleNamespace, seeds: Sequence[int], run: Run, _progress: Progress | None
) -> SweepResult:
    with _on_spark(args) as (spark, settings, progress):
        from spark.sweeps import sweep_seeds

        began = time.monotonic()
        how = {"run": run, "plant": args.plant, "progress": progress, "path": args.table}
        result = sweep_seeds(spark, seeds, settings, **how)
        result.seconds = time.monotonic() - began
        return result


@contextmanager
def _on_spark(
    args: SimpleNamespace,
) -> "Iterator[tuple[SparkSession, Settings, Callable[[float], None]]]":
    line = ProgressLine()
    master = args.master or Settings().master
    settings = Settings(master=master, remote=args.remote, seconds=args.timeout)
    line(f"starting Spark on {settings.where}")
    try:
        with session(settings) as spark:
            yield spark, settings, lambda share: line(f"{share:.0%} of the seeds are done")
    except (NotInTime, OutputExists, SparkUnavailable) as error:
        option = "--table " if isinstance(error, OutputExists) else ""
        raise Failed(f"{option}{error}") from error
    finally:
        line.done()


def _failure(swept: "Swept", plan: Plan) -> Iterator[str]:
    yield f"seed {swept.seed}: {swept.outcome}, digest {swept.digest}"
    if swept.detail:
        yield f"  {swept.detail}"
    for finding in swept.findings:
        yield f"  {finding['rule']} {finding['object']}: {finding['detail']}"
    yield f"  repro: {replay_line(replace(plan, seed=swept.seed))}"


def _covered(coverage: Coverage, folders: Sequence[str]) -> Iterator[str]:
    unseen = ", ".join(coverage.never_seen())
    yield f"transitions never seen: {unseen or 'none'}"
    yield f"messages never met: {', '.join(coverage.never_met()) or 'none'}"
    silent = ", ".join(name for name in _known_traces(folders) if not coverage.traces[name])
    yield f"trace events never seen: {silent or 'none'}"


def _known_traces(folders: Sequence[str]) -> list[str]:
    """Finds all trace events that the code can emit, by reading the code."""
    sources = (path.read_text() for folder in folders for path in (_ROOT / folder).rglob("*.py"))
    found = (match for source in sources for match in _TRACES.findall(source))
    return sorted({first or second for first, second in found})
