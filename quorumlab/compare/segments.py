"""The steps of a cell one behind the other: what each took, since the one before it was done.

Pure. Steps may overlap: one that is done before another that is named before it took no time.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from quorumlab.compare.experiments import EXPERIMENTS
from quorumlab.compare.results import Cell

__all__ = ["SINCE_DETECTED", "Segment", "own_times", "segments"]

SINCE_DETECTED = "since detected"  # all steps but the first, which is a time-out


@dataclass(frozen=True, slots=True)
class Segment:
    """From when to when, in ms since the fault."""

    step: str
    start_ms: float
    end_ms: float

    @property
    def ms(self) -> float:
        return self.end_ms - self.start_ms


def segments(cell: Cell) -> list[Segment]:
    """In the order of the experiment's steps; those that were not seen to end are left out."""
    found: list[Segment] = []
    reached_ms = 0.0
    for step in EXPERIMENTS[cell.experiment].steps:
        done_ms = cell.done_ms(step)
        if done_ms is not None:
            found.append(Segment(step, reached_ms, max(reached_ms, done_ms)))
            reached_ms = found[-1].end_ms
    return found


def own_times(cells: Iterable[Cell]) -> dict[str, dict[str, list[tuple[int, float]]]]:
    """By step and subject: (partitions, ms) of every cell; and of all that comes once it is
    detected. `cells` are of one experiment."""
    found: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for cell in cells:
        parts = segments(cell)
        times = [(each.step, each.ms) for each in parts]
        if len(parts) > 1 and parts[0].step == "detected":
            times.append((SINCE_DETECTED, parts[-1].end_ms - parts[0].end_ms))
        for step, ms in times:
            found.setdefault(step, {}).setdefault(cell.subject, []).append((cell.partitions, ms))
    return found
