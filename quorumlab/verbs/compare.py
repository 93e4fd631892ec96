"""`quorumlab compare`: the designs side by side, under the same failure (docs/compare.md).

DIR gets results.json after every cell, and compare.html at the end; the same command goes on where
it was stopped. Exit codes: 0 all measured (a design that gives up is a result), 1 a cell failed,
130 interrupted.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jepsen_like.real.shape import why_no_engine
from jepsen_like.real.zookeeper import missing_reason
from quorum.raftos.engines import ENGINES, NATIVE
from quorumlab.arguments import Failed, UsageError
from quorumlab.compare.comparison import (
    CELL_SECONDS,
    Interrupted,
    Plan,
    commit,
    describe_plan,
    described,
    make,
    planned,
    repeated,
    within,
)
from quorumlab.compare.experiments import CONTROLLERS, EXPERIMENTS, MATRIX, QUICK
from quorumlab.compare.improvements import IMPROVEMENTS, of_improvements
from quorumlab.compare.page import page
from quorumlab.compare.picture import picture
from quorumlab.compare.results import FAILED, Results
from quorumlab.compare.subjects import ALL_DESIGNS, QUORUM, Subject, subjects
from quorumlab.compare.table import growth_of, tables
from quorumlab.interrupts import interrupts
from quorumlab.output import print_json, print_rows, refuse_other_directory, say
from quorumlab.pictures import refuse_other_picture, write_picture
from quorumlab.verbs.common import in_bounds, one_of
from quorumlab.verbs.judging_options import PARTITIONS
from quorumlab.verbs.up import secure_if_asked

__all__ = ["run"]

_INTERRUPTED = 130
_RESULTS = "results.json"
_PARTITIONS_MAX = 1_000_000
_DELAY_MAX_MS = 1000
_RUNS_MAX = 100
_QUICK_CELL_SECONDS = 120.0


def run(args: SimpleNamespace) -> int:
    in_bounds(args, runs=(1, _RUNS_MAX), zookeeper_delay=(0, _DELAY_MAX_MS))
    refuse_other_picture(args.export)
    refuse_other_directory(args.out, option="--out", holds=_RESULTS)
    if args.stored:
        return _tell(args, _stored(args.out / _RESULTS))
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
    told = _tell(args, results)
    return code or told


def _limit_seconds(args: SimpleNamespace) -> float:
    return _QUICK_CELL_SECONDS if args.quick else CELL_SECONDS


def _make(args: SimpleNamespace, plan: Plan, results: Results, budget_seconds: float | None) -> int:
    with interrupts() as interrupt:
        try:
            left = make(
                plan,
                results,
                scratch=args.out / "clusters",
                cell_seconds=_limit_seconds(args),
                secure=secure_if_asked,
                until=None if budget_seconds is None else time.monotonic() + budget_seconds,
                is_interrupted=lambda: interrupt.happened,
            )
        except Interrupted:
            say("interrupted: the same command goes on with what is left", sys.stderr)
            return _INTERRUPTED
    for key in left:
        say(f"left out, the budget is used up: {key}", sys.stderr)
    return 0


def _tell(args: SimpleNamespace, results: Results) -> int:
    """Returns 1 if a cell failed."""
    cells = results.cells.values()
    if cells:
        (args.out / "compare.html").write_text(page(results), encoding="ascii")
    if cells and args.export is not None:
        write_picture(args.export, picture(results))
    _tell_cells(args, results)
    return int(any(cell.outcome == FAILED for cell in cells))


def _tell_cells(args: SimpleNamespace, results: Results) -> None:
    cells = results.cells.values()
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
        files = [results.path, args.out / "compare.html", *filter(None, [args.export])]
        say(f"\n{', '.join(map(str, files))}")


def _results(args: SimpleNamespace) -> Results:
    """The results that --out holds, or new ones."""
    path = args.out / _RESULTS
    if not path.exists():
        args.out.mkdir(parents=True, exist_ok=True)
        results = Results(
            path, described(), args.seed, args.zookeeper_delay, security=args.security or ""
        )
        results.save()  # at once: an interrupted comparison knows its directory again by it
        return results
    results = _stored(path)
    for option, ours, theirs in (
        ("seed", results.seed, args.seed),
        ("zookeeper-delay", results.zookeeper_delay_ms, args.zookeeper_delay),
        ("security", results.security or "none", args.security or "none"),
    ):
        if ours != theirs:
            raise UsageError(f"--{option} {theirs}: {path} was made with {ours}")
    return results


def _stored(path: Path) -> Results:
    try:
        return Results.load(path)
    except FileNotFoundError as error:
        raise Failed(f"--stored: there is no {path}: name its directory by --out") from error
    except (ValueError, KeyError, TypeError) as error:
        raise Failed(f"{path} cannot be read: {error}; use another --out") from error


# --- what is asked for ----------------------------------------------------------------------


def _keys(args: SimpleNamespace) -> list[Any]:
    able = _SECURED if args.security else _ALL
    matrix = [name for name in MATRIX if name in able.experiments]
    experiments = _chosen(
        args.experiments,
        QUICK if args.quick else matrix,
        (*EXPERIMENTS, IMPROVEMENTS),
        "experiments",
    )
    designs = _chosen(args.designs, able.designs, ALL_DESIGNS, "designs")
    engines = _chosen(args.engines, able.engines, ENGINES, "engines")
    for option, names, those in (
        ("designs", designs, able.designs),
        ("engines", engines, able.engines),
        ("experiments", experiments, able.experiments),
    ):
        if plain := [name for name in names if name not in those]:
            raise UsageError(
                f"--{option} {','.join(plain)}: speaks in the clear: leave it out, or --security"
            )
    sizes = _sizes(args.partitions or ("100" if args.quick else PARTITIONS))
    designs = _able(designs, is_asked_for=args.designs is not None)
    if QUORUM in designs:
        engines = _installed(engines, is_asked_for=args.engines is not None)
    settings = args.settings or ("equal" if args.quick else "both")
    keys = planned(
        list(subjects(designs, engines)),
        [name for name in experiments if name != IMPROVEMENTS],
        sizes,
        ("equal", "defaults") if settings == "both" else (settings,),
    )
    if IMPROVEMENTS in experiments:
        keys += [key for key in of_improvements(sizes, designs) if key not in keys]
    return repeated(keys, args.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Able:
    """What can be measured."""

    designs: Sequence[str]
    engines: Sequence[str]
    experiments: Sequence[str]


_ALL = _Able(designs=ALL_DESIGNS, engines=tuple(ENGINES), experiments=(*EXPERIMENTS, IMPROVEMENTS))
# With --security: the others know no TLS, and neither do those who flood a node.
_SECURED = _Able(
    designs=(QUORUM,),
    engines=(NATIVE,),
    experiments=tuple(
        name
        for name, each in EXPERIMENTS.items()
        if not each.why_not(Subject(design=QUORUM))
        if name != "crash-in-a-flood"
    ),
)


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
