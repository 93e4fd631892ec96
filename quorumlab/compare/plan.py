"""Which cells are measured, in which order, and what a budget leaves out.

Pure. The most telling come first: what fails most often, at the sizes that are quick; then larger
ones, the designs' own time-outs, and the rest. What was measured is not measured again.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from quorumlab.compare.experiments import DATA_MAX, EXPERIMENTS
from quorumlab.compare.results import CellKey
from quorumlab.compare.subjects import Subject, subject_named

__all__ = ["CELL_SECONDS", "Plan", "estimate_seconds", "planned", "within"]

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
    """In the order in which they are made. Defaults are measured at one size, the one nearest 100:
    a time-out is as long with any."""
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
    """Three waves: failures at quick sizes, changes at quick sizes and defaults, all the rest."""
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
