"""The time of each step of a cell since the step before, and how that grows with the cell's size.

Pure. Steps may overlap: a step that is done before another one that is named before it took no
time. Growth is the exponent of a power: log(time) against log(partitions), by least squares. Times
between two steps are fitted, never times since the fault: those begin with a time-out, which is the
same for all and would hide growth.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import log
from statistics import linear_regression

from quorumlab.compare.experiments import EXPERIMENTS
from quorumlab.compare.results import Cell

__all__ = ["SINCE_DETECTED", "Segment", "exponent", "in_words", "own_times", "segments", "waited"]

SINCE_DETECTED = "since detected"  # all steps but the first, which is a time-out
_FLOOR_MS = 0.5  # below it, one time is as good as another on a machine that does other things
_FLAT = 0.3
_LINEAR = (0.8, 1.25)


@dataclass(frozen=True, slots=True)
class Segment:
    """Both ends are in ms since the fault."""

    step: str
    start_ms: float
    end_ms: float

    @property
    def ms(self) -> float:
        return self.end_ms - self.start_ms


def segments(cell: Cell) -> list[Segment]:
    """Returns the steps in the experiment's order; those that were not seen to end are left out."""
    found: list[Segment] = []
    reached_ms = 0.0
    for step in EXPERIMENTS[cell.experiment].steps:
        done_ms = cell.done_ms(step)
        if done_ms is not None:
            found.append(Segment(step, reached_ms, max(reached_ms, done_ms)))
            reached_ms = found[-1].end_ms
    return found


def waited(cell: Cell) -> tuple[float, float]:
    """Splits the time until the last step into what a setting decided, and what the design did."""
    parts = segments(cell)
    waits = EXPERIMENTS[cell.experiment].waits
    of_settings = sum(each.ms for each in parts if each.step in waits)
    return of_settings, sum(each.ms for each in parts) - of_settings


def own_times(cells: Iterable[Cell]) -> dict[str, dict[str, list[tuple[int, float]]]]:
    """Returns (partitions, ms) of every cell, by step and subject, and of all steps once the fault
    is detected. `cells` are of one experiment."""
    found: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for cell in cells:
        parts = segments(cell)
        times = [(each.step, each.ms) for each in parts]
        if len(parts) > 1 and parts[0].step == "detected":
            times.append((SINCE_DETECTED, parts[-1].end_ms - parts[0].end_ms))
        for step, ms in times:
            found.setdefault(step, {}).setdefault(cell.subject, []).append((cell.partitions, ms))
    return found


def exponent(points: Iterable[tuple[int, float]]) -> float | None:
    """Fits (partitions, ms); None if there are not two different numbers of partitions."""
    logs = [(log(partitions), log(max(ms, _FLOOR_MS))) for partitions, ms in points]
    if len({x for x, _ in logs}) < 2:
        return None
    return linear_regression(*zip(*logs, strict=True)).slope


def in_words(found: float | None) -> str:
    if found is None:
        return "not known"
    if found < _FLAT:
        return "flat"
    if found < _LINEAR[0]:
        return "less than linear"
    if found <= _LINEAR[1]:
        return "linear"
    return "more than linear"
