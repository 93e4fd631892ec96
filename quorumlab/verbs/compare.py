"""`quorumlab compare`: the designs side by side, under the same failure (docs/compare.md).

DIR gets results.json after every cell, and compare.html at the end; the same command goes on where
it was stopped. Exit codes: 0 all measured (a design that gives up is a result), 1 a cell failed,
130 interrupted.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from jepsen_like.real.shape import why_no_engine
from jepsen_like.real.zookeeper import missing_reason
from quorum.raftos.engines import ENGINES
from quorumlab.arguments import Failed, UsageError, declare
from quorumlab.compare.comparison import (
    CELL_SECONDS,
    Interrupted,
    Plan,
    commit,
    describe_plan,
    described,
    make,
    planned,
    within,
)
from quorumlab.compare.experiments import CONTROLLERS, EXPERIMENTS, MATRIX, QUICK
from quorumlab.compare.improvements import IMPROVEMENTS, of_improvements
from quorumlab.compare.page import page
from quorumlab.compare.results import FAILED, Results
from quorumlab.compare.subjects import ALL_DESIGNS, QUORUM, subjects
from quorumlab.compare.table import growth_of, tables
from quorumlab.interrupts import interrupts
from quorumlab.output import FORMAT, print_json, print_rows, refuse_other_directory, say
from quorumlab.verbs.common import in_bounds, one_of

__all__ = ["add_options", "run"]

_INTERRUPTED = 130
_PARTITIONS = "100,1000"
_PARTITIONS_MAX = 1_000_000
_DELAY_MAX_MS = 1000
_QUICK_CELL_SECONDS = 120.0


def add_options(parser: argparse.ArgumentParser) -> None:
    about = (
        "Start a cluster of each design, one after the other, do the same to each, and "
        "tell what it took: when each step was done, what clients saw, what it cost."
    )
    table = f"""
        --designs D,…  of {", ".join(ALL_DESIGNS)}
        --engines E,…  of quorum: {", ".join(ENGINES)}
        --experiments X,…  of {", ".join(EXPERIMENTS)}, {IMPROVEMENTS} (each improvement of a \
          ZooKeeper design on and off, where it acts)
        --partitions P,…  how many (default: {_PARTITIONS}; quick: 100)
        --settings equal|defaults|both  equal time-outs for all, or each design's own (default: \
          both; quick: equal)
        --quick  {" and ".join(QUICK)}, in about two minutes
        --budget MIN [positive]  leave out what takes longer
        --out DIR [compared]
        --seed N [1]  default: 1
        --zookeeper-delay MS [0]  answers of ZooKeeper come so much later (default: 0)
        {FORMAT}"""
    declare(parser, run, table, about)


def run(args: argparse.Namespace) -> int:
    in_bounds(args, zookeeper_delay=(0, _DELAY_MAX_MS))
    keys = _keys(args)
    results = _results(args)
    budget_seconds = None if args.budget is None else 60 * args.budget
    limit_seconds = _limit_seconds(args)
    there = {key for key, cell in results.cells.items() if cell.is_final(limit_seconds)}
    plan = within(keys, budget_seconds, there)
    for line in describe_plan(plan, len(there.intersection(keys))):
        say(line, sys.stderr)
    if plan.cells:
        results.adds_commit(commit())
    code = _make(args, plan, results, budget_seconds)
    _tell(args, results)
    if code == 0 and any(cell.outcome == FAILED for cell in results.cells.values()):
        return 1
    return code


def _limit_seconds(args: argparse.Namespace) -> float:
    return _QUICK_CELL_SECONDS if args.quick else CELL_SECONDS


def _make(
    args: argparse.Namespace, plan: Plan, results: Results, budget_seconds: float | None
) -> int:
    with interrupts() as interrupt:
        try:
            left = make(
                plan,
                results,
                scratch=args.out / "clusters",
                cell_seconds=_limit_seconds(args),
                until=None if budget_seconds is None else time.monotonic() + budget_seconds,
                is_interrupted=lambda: interrupt.happened,
            )
        except Interrupted:
            say("interrupted: the same command goes on with what is left", sys.stderr)
            return _INTERRUPTED
    for key in left:
        say(f"left out, the budget is used up: {key}", sys.stderr)
    return 0


def _tell(args: argparse.Namespace, results: Results) -> None:
    cells = results.cells.values()
    if cells:
        (args.out / "compare.html").write_text(page(results), encoding="ascii")
    if args.format != "table":
        print_json([asdict(cell) for cell in cells], form=args.format)
        return
    for table in tables(cells):
        say(f"\n{table.title} (ms since the fault)")
        if table.rows:
            print_rows(table.rows, table.columns)
        for note in table.notes:
            say(f"  {note}")
    growth = [asdict(each) for each in growth_of(cells)]
    if growth:
        say("\nGrowth of each step with the partitions")
        print_rows(growth, list(growth[0]))
    if cells:
        say(f"\n{results.path}, {args.out / 'compare.html'}")


def _results(args: argparse.Namespace) -> Results:
    """The results that --out holds, or new ones."""
    path = args.out / "results.json"
    refuse_other_directory(args.out, option="--out", holds=path.name)
    if not path.exists():
        args.out.mkdir(parents=True, exist_ok=True)
        results = Results(path, described(), args.seed, args.zookeeper_delay)
        results.save()  # at once: an interrupted comparison knows its directory again by it
        return results
    try:
        results = Results.load(path)
    except (ValueError, KeyError, TypeError) as error:
        raise Failed(f"{path} cannot be read: {error}; use another --out") from error
    for option, ours, theirs in (
        ("seed", results.seed, args.seed),
        ("zookeeper-delay", results.zookeeper_delay_ms, args.zookeeper_delay),
    ):
        if ours != theirs:
            raise UsageError(f"--{option} {theirs}: {path} was made with {ours}")
    return results


# --- what is asked for ----------------------------------------------------------------------


def _keys(args: argparse.Namespace) -> list[Any]:
    experiments = _chosen(
        args.experiments,
        QUICK if args.quick else MATRIX,
        (*EXPERIMENTS, IMPROVEMENTS),
        "experiments",
    )
    designs = _able(
        _chosen(args.designs, ALL_DESIGNS, ALL_DESIGNS, "designs"),
        is_asked_for=args.designs is not None,
    )
    engines = _chosen(args.engines, ENGINES, ENGINES, "engines")
    if QUORUM in designs:
        engines = _installed(engines, is_asked_for=args.engines is not None)
    settings = args.settings or ("equal" if args.quick else "both")
    sizes = _sizes(args.partitions or ("100" if args.quick else _PARTITIONS))
    keys = planned(
        list(subjects(designs, engines)),
        [name for name in experiments if name != IMPROVEMENTS],
        sizes,
        ("equal", "defaults") if settings == "both" else (settings,),
    )
    if IMPROVEMENTS in experiments:
        keys += [key for key in of_improvements(sizes, designs) if key not in keys]
    return keys


def _chosen(
    text: str | None, default: Sequence[str] | Any, known: Sequence[str] | Any, option: str
) -> list[str]:
    if text is None:
        return list(default)
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        one_of(known, f"--{option}", name)
    if not names:
        raise UsageError(f"--{option} names none: of {', '.join(known)}")
    return names


def _able(designs: Sequence[str], *, is_asked_for: bool) -> list[str]:
    """The designs that this machine can run."""
    reason = missing_reason()
    if reason is None or list(designs) == [QUORUM]:
        return list(designs)
    if is_asked_for:
        raise UsageError(f"--designs {','.join(designs)}: {reason}")
    say(f"the designs on ZooKeeper are left out: {reason}", sys.stderr)
    return [design for design in designs if design == QUORUM]


def _installed(engines: Sequence[str], *, is_asked_for: bool) -> list[str]:
    able = []
    for engine in engines:
        why = why_no_engine(engine, design=QUORUM, controllers=CONTROLLERS, dynamic=False)
        if why is None:
            able.append(engine)
        elif is_asked_for:
            raise UsageError(f"--engines {engine}: {why}")
        else:
            say(f"the engine {engine} is left out: {why}", sys.stderr)
    return able


def _sizes(text: str) -> list[int]:
    sizes = []
    for word in text.split(","):
        digits = word.strip().replace("_", "")
        if not digits.isdecimal() or not 1 <= int(digits) <= _PARTITIONS_MAX:
            most = f"{_PARTITIONS_MAX:,}"
            raise UsageError(f"--partitions {word}: whole numbers from 1 to {most}, as in 100,1000")
        sizes.append(int(digits))
    return sizes
