"""The comparison itself: which cells are measured in which order, and the measuring of one by one.

The most telling cells come first: what fails most often, at the sizes that are quick; then larger
sizes, the designs' own time-outs, and the rest. A budget leaves out cells at the end.
"""

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from jepsen_like.installation import ROOT, has_history
from quorumlab.compare.cell import Secure, measure
from quorumlab.compare.experiments import DATA_MAX, EXPERIMENTS
from quorumlab.compare.results import MEASURED, CellKey, Results
from quorumlab.compare.subjects import Subject, subject_named
from quorumlab.output import Progress, say

__all__ = [
    "CELL_SECONDS",
    "Interrupted",
    "Plan",
    "commit",
    "describe_plan",
    "described",
    "estimate_seconds",
    "make",
    "planned",
    "repeated",
    "within",
]

CELL_SECONDS = 300.0  # then it gives up, the set-up included
_START_SECONDS = 9.0  # a cluster, calm, and reading back
_DEFAULTS_SECONDS = 14.0  # more, of the longer time-outs
_PER_PARTITION_SECONDS = 0.012  # creating, writing to and reading each
_OF_EXPERIMENT: dict[str, float] = {
    "broker-bounce": 10.0,
    "broker-pause": 6.0,
    "crash-in-a-flood": 3.0,
    "isr-change": 3.0,
    "rolling-restart": 20.0,
    "topic-creation": -2.0,
    "zookeeper-leader": 3.0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    cells: Sequence[CellKey]
    left_out: Sequence[CellKey] = ()

    @property
    def seconds(self) -> float:
        return sum(map(estimate_seconds, self.cells))


def planned(
    subjects: Sequence[Subject],
    experiments: Sequence[str],
    partitions: Sequence[int],
    timeouts: Sequence[str],
) -> list[CellKey]:
    """Returns the cells in the order in which they are made. Defaults are measured at one size, the
    one nearest 100: a time-out is as long with any."""
    sizes = sorted(set(partitions))
    of_defaults = min(sizes, key=lambda size: abs(size - 100))
    keys = [
        CellKey(
            subject=subject.name, experiment=experiment, partitions=size, timeouts=each_timeouts
        )
        for experiment in experiments
        for each_timeouts in timeouts
        for size in (sizes if each_timeouts == "equal" else [of_defaults])
        for subject in subjects
        if each_timeouts == "equal" or EXPERIMENTS[experiment].is_of_defaults
        if size <= DATA_MAX or not EXPERIMENTS[experiment].needs_data
    ]
    order = list(EXPERIMENTS)
    return sorted(keys, key=lambda key: (_wave(key), key.partitions, order.index(key.experiment)))


def repeated(keys: Sequence[CellKey], runs: int) -> list[CellKey]:
    """All cells once, then all of them again: what else the machine does meets all designs."""
    return [replace(key, run=run) for run in range(1, runs + 1) for key in keys]


def _wave(key: CellKey) -> int:
    """First failures at quick sizes, then changes and defaults at quick sizes, then the rest."""
    is_failure = key.experiment in ("broker-crash", "controller-failover")
    if key.timeouts == "equal" and key.partitions <= 1000:
        return 0 if is_failure else 1
    return 1 if is_failure and key.partitions <= 1000 else 2


def estimate_seconds(key: CellKey) -> float:
    """Estimates for a machine of two processors; 0 where a subject cannot take part."""
    if EXPERIMENTS[key.experiment].why_not(subject_named(key.subject)):
        return 0.0
    seconds = _START_SECONDS + _PER_PARTITION_SECONDS * key.partitions
    seconds += _OF_EXPERIMENT.get(key.experiment, 0.0)
    seconds += _DEFAULTS_SECONDS if key.timeouts == "defaults" else 0.0
    return min(seconds, CELL_SECONDS)


def within(
    keys: Iterable[CellKey], budget_seconds: float | None, measured: Collection[CellKey]
) -> Plan:
    """Plans the cells that are not measured yet, as many as fit, in order."""
    chosen: list[CellKey] = []
    left_out: list[CellKey] = []
    seconds = 0.0
    for key in keys:
        if key in measured:
            continue
        seconds += estimate_seconds(key)
        fits = budget_seconds is None or seconds <= budget_seconds
        if not fits:
            seconds -= estimate_seconds(key)
        (chosen if fits else left_out).append(key)
    return Plan(cells=chosen, left_out=left_out)


# --- measuring -------------------------------------------------------------------------------


class Interrupted(Exception):
    """The user wants the comparison to end; it keeps what is measured."""


def make(
    plan: Plan,
    results: Results,
    *,
    scratch: Path,
    cell_seconds: float,
    secure: Secure,
    until: float | None,
    is_interrupted: Callable[[], bool],
) -> list[CellKey]:
    """Returns what was not begun. Raises Interrupted within a cell.

    `until`: when the budget is used up, by time.monotonic(); cells are not begun then.
    """
    progress = Progress()

    def show(text: str) -> None:
        if is_interrupted():
            raise Interrupted
        progress(f"  {text}")

    for number, key in enumerate(plan.cells):
        late = time.monotonic() + estimate_seconds(key) / 2
        if until is not None and late > until:
            return list(plan.cells[number:])
        say(f"{number + 1} of {len(plan.cells)}: {key}", sys.stderr)
        try:
            cell = measure(
                key,
                directory=scratch / key.file_name,
                seconds=cell_seconds,
                seed=results.seed,
                zookeeper_delay_ms=results.zookeeper_delay_ms,
                security=results.security,
                secure=secure,
                say=show,
            )
        finally:
            progress.done()
        is_measured = cell.outcome == MEASURED
        told = f"measured in {cell.seconds:.1f} s" if is_measured else f"{cell.outcome}: {cell.why}"
        say(f"  {told}", sys.stderr)
        results.add(cell)
    return []


def describe_plan(plan: Plan, measured: int) -> list[str]:
    lines = [f"{len(plan.cells)} cells to measure, about {max(1, round(plan.seconds / 60))} min"]
    if measured:
        lines[0] += f"; {measured} are there already"
    if plan.left_out:
        lines.append(f"left out, for the budget: {len(plan.left_out)} cells:")
        lines += [f"  {key}" for key in plan.left_out]
    return lines


# --- the machine -----------------------------------------------------------------------------


def described() -> dict[str, str | int | float]:
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processors": os.cpu_count() or 0,
        "processor": _processor(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "python": platform.python_version(),
        "system": platform.system(),
        "load_average": round(os.getloadavg()[0], 1),
        "commit": commit(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def commit() -> str:
    """The commit of this clone; "" for an installed package."""
    if not has_history():
        return ""
    try:
        told = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],  # noqa: S607
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return ""
    return told.stdout.strip()
