"""Several runs of one cell, told as one: the run in the middle is drawn, and how far all runs lie
apart is told beside it. Pure.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from quorumlab.compare.results import MEASURED, Cell, Spread, spread_of
from quorumlab.compare.segments import segments
from quorumlab.compare.table import in_order

__all__ = ["Runs", "runs_of"]


@dataclass(frozen=True, slots=True)
class Runs:
    """All cells of one subject, experiment, size and setting."""

    cells: Sequence[Cell]  # at least one

    @property
    def subject(self) -> str:
        return self.cells[0].subject

    @property
    def measured(self) -> Sequence[Cell]:
        return [cell for cell in self.cells if cell.outcome == MEASURED]

    @property
    def middle(self) -> Cell:
        """The measured run whose last step ended in the middle; any run if none was measured."""
        ranked = sorted(self.measured, key=_end_ms)
        return ranked[(len(ranked) - 1) // 2] if ranked else self.cells[0]

    def between(self, since: str, until: str) -> Spread:
        """Durations between the ends of two steps; `since` may be empty, which is the fault."""
        return spread_of([_between(cell, since, until) for cell in self.measured])

    @property
    def ends(self) -> Spread:
        return spread_of([_end_ms(cell) for cell in self.measured])


def runs_of(cells: Iterable[Cell]) -> list[Runs]:
    """In the order in which a reader is shown them."""
    grouped = groupby(
        in_order(cells),
        lambda cell: (cell.experiment, cell.timeouts, cell.partitions, cell.subject),
    )
    return [Runs(list(group)) for _, group in grouped]


def _end_ms(cell: Cell) -> float:
    parts = segments(cell)
    return parts[-1].end_ms if parts else 0.0


def _between(cell: Cell, since: str, until: str) -> float | None:
    begin_ms = cell.done_ms(since) if since else 0.0
    end_ms = cell.done_ms(until)
    return None if begin_ms is None or end_ms is None else max(0.0, end_ms - begin_ms)
