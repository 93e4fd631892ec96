"""The comparison itself: which cells are measured in which order, and the measuring of one by one.

The most telling cells come first: what fails most often, at the sizes that are quick; then larger
sizes, the designs' own time-outs, and the rest. A budget leaves out cells at the end. The results
are kept after each cell, and a measured cell is not measured again. They say on which machine they
were measured: times depend on it, counts do not.

A cell is a cluster, one experiment on it, and the result. SIGKILL ends the cluster, for nothing on
it is to be kept. Only if the experiment gave up or failed, the nodes' output stays.
"""

import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from jepsen_like.installation import ROOT, has_history
from jepsen_like.real.layout import ClusterError
from jepsen_like.real.local_cluster import LocalCluster
from quorumlab.compare.client import MeasuringClient, read_back
from quorumlab.compare.experiments import (
    BROKERS,
    CONTROLLERS,
    DATA_MAX,
    EXPERIMENTS,
    Experiment,
    Subject,
    Timeouts,
    settings_of,
    silence_ms,
    subject_named,
)
from quorumlab.compare.node_measurements import difference, phases_of
from quorumlab.compare.results import (
    FAILED,
    GAVE_UP,
    MEASURED,
    NOT_THERE,
    Cell,
    CellKey,
    Records,
    Results,
    spread_of,
)
from quorumlab.compare.scenarios import SCENARIOS, Trial
from quorumlab.compare.stage import GaveUp, Stage
from quorumlab.interrupts import uninterrupted
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
    "within",
]

CELL_SECONDS = 300.0  # then it gives up, the set-up included
_START_SECONDS = 9.0  # a cluster, calm, and reading back
_DEFAULTS_SECONDS = 14.0  # more, of the longer time-outs
_PER_PARTITION_SECONDS = 0.012  # creating, writing to and reading each
_OF_EXPERIMENT: dict[str, float] = {
    "broker-pause": 6.0,
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


# --- one cell -------------------------------------------------------------------------------


_TRAILING_SECONDS = 0.3  # milestones come behind the first writes


@contextmanager
def staged(
    subject: Subject,
    experiment: Experiment,
    *,
    partitions: int,
    settings: Mapping[str, str],
    zookeeper_delay_ms: int,
    directory: Path,
    seconds: float,
    say: Callable[[str], None],
) -> Iterator[Stage]:
    """A new cluster, ready; ended when left. What its nodes said stays if it was given up."""
    cluster = _created(subject, experiment, directory, zookeeper_delay_ms)
    stage = Stage(cluster, subject, experiment, partitions, seconds, say)
    # Not those of `up`, which has time-outs of its own.
    cluster.settings = {**settings, "quorumlab.broker.dataless": str(not stage.has_data).lower()}
    try:
        cluster.start_all()
        cluster.wait_ready(seconds, progress=stage.check)
        yield stage
    except (GaveUp, ClusterError):
        _end(stage)
        for node in cluster.layout.nodes:
            shutil.rmtree(node.data, ignore_errors=True)
        raise
    except BaseException:
        _end(stage)
        shutil.rmtree(directory, ignore_errors=True)
        raise
    _end(stage)
    shutil.rmtree(directory, ignore_errors=True)


def _created(
    subject: Subject, experiment: Experiment, directory: Path, zookeeper_delay_ms: int
) -> LocalCluster:
    shutil.rmtree(directory, ignore_errors=True)
    if subject.has_zookeeper:
        return LocalCluster.create(
            directory,
            brokers=BROKERS,
            design=subject.design,
            zookeepers=experiment.zookeepers,
            zookeeper_delay_ms=zookeeper_delay_ms,
        )
    return LocalCluster.create(
        directory, controllers=CONTROLLERS, brokers=BROKERS, engine=subject.engine
    )


def _end(stage: Stage) -> None:
    """Ends all at once: no node has time to say anything more. An interrupt waits for this."""
    with uninterrupted():
        if stage.client is not None:
            stage.client.stop()
        stage.cluster.kill_all()


def measure(
    key: CellKey,
    *,
    directory: Path,
    seconds: float,
    seed: int,
    zookeeper_delay_ms: int,
    say: Callable[[str], None],
) -> Cell:
    """`directory` is for the cluster, and stays only if it failed or gave up."""
    subject, experiment = subject_named(key.subject), EXPERIMENTS[key.experiment]
    timeouts: Timeouts = "equal" if key.timeouts == "equal" else "defaults"
    settings = settings_of(subject, timeouts, experiment.settings)
    cell = Cell(
        subject=key.subject,
        experiment=key.experiment,
        partitions=key.partitions,
        timeouts=key.timeouts,
        outcome=MEASURED,
        silence_ms=silence_ms(subject, settings),
        limit_seconds=seconds,
    )
    why_not = experiment.why_not(subject)
    if why_not:
        return replace(cell, outcome=NOT_THERE, why=why_not)
    began = time.monotonic()
    try:
        with staged(
            subject,
            experiment,
            partitions=key.partitions,
            settings=settings,
            zookeeper_delay_ms=zookeeper_delay_ms,
            directory=directory,
            seconds=seconds,
            say=say,
        ) as stage:
            trial = SCENARIOS[key.experiment](stage, Random(seed))
            cell = _collected(cell, stage, trial, subject)
    except GaveUp as error:
        cell = replace(cell, outcome=GAVE_UP, why=str(error))
    except ClusterError as error:
        cell = replace(cell, outcome=FAILED, why=str(error))
    return replace(cell, seconds=round(time.monotonic() - began, 1))


def _collected(cell: Cell, stage: Stage, trial: Trial, subject: Subject) -> Cell:
    time.sleep(_TRAILING_SECONDS)
    cell = replace(
        cell,
        affected=len(trial.affected),
        phases=phases_of(
            stage.milestones(),
            fault_ns=trial.fault_ns,
            partitions=trial.counted,
            brokers=[node.id for node in stage.brokers if node.id not in trial.failed_nodes],
            causes=stage.experiment.causes,
            failed_nodes=trial.failed_nodes,
            at_least=len(trial.affected) or trial.counted,
        ),
        seen=trial.seen,
        ledger=difference(
            trial.before, stage.counts(), roles=stage.roles(), restarted=trial.restarted
        ),
    )
    if stage.client is None:
        return cell
    return _with_client(cell, stage, stage.client, trial.affected, subject)


def _with_client(
    cell: Cell, stage: Stage, client: MeasuringClient, affected: Sequence[int], subject: Subject
) -> Cell:
    silences = client.silences(affected)
    client.stop()
    read = read_back(stage.brokers, stage.topics, client.acknowledged, client.leader, stage.check)
    return replace(
        cell,
        client={
            "first_ms": spread_of(silences.first_ms),
            "others_ms": spread_of(silences.others_ms),
            "longest_ms": spread_of(silences.longest_ms),
        },
        errors=silences.errors,
        records=Records(
            acknowledged=read.acknowledged,
            lost=len(read.lost),
            unread=read.unread,
            admitted=subject.admits_loss if read.lost else "",
        ),
    )
