"""The comparison itself: the plan is told, made cell by cell, and kept after each."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from quorumlab.compare.cell import measure
from quorumlab.compare.plan import Plan, estimate_seconds
from quorumlab.compare.results import MEASURED, Cell, CellKey, Results
from quorumlab.output import Progress, say

__all__ = ["Comparison", "Interrupted", "describe_plan"]


class Interrupted(Exception):
    """Somebody wants it to end; what is measured is kept."""


@dataclass(slots=True, kw_only=True)
class Comparison:
    """`until`: when the budget is used up, by time.monotonic(); cells are not begun then."""

    results: Results
    scratch: Path
    cell_seconds: float
    until: float | None
    is_interrupted: Callable[[], bool]

    def make(self, plan: Plan) -> list[CellKey]:
        """Returns what was not begun. Raises Interrupted within a cell."""
        for number, key in enumerate(plan.cells):
            if self._is_late(key):
                return list(plan.cells[number:])
            cell = self._measure(key, f"{number + 1} of {len(plan.cells)}")
            self.results.add(cell)
        return []

    def _is_late(self, key: CellKey) -> bool:
        if self.until is None:
            return False
        return time.monotonic() + estimate_seconds(key) / 2 > self.until

    def _measure(self, key: CellKey, which: str) -> Cell:
        say(f"{which}: {key}", sys.stderr)
        progress = Progress()

        def show(text: str) -> None:
            if self.is_interrupted():
                raise Interrupted
            progress(f"  {text}")

        try:
            cell = measure(
                key,
                directory=self.scratch / key.file_name,
                seconds=self.cell_seconds,
                seed=self.results.seed,
                zookeeper_delay_ms=self.results.zookeeper_delay_ms,
                say=show,
            )
        finally:
            progress.done()
        if cell.outcome == MEASURED:
            say(f"  measured in {cell.seconds:.1f} s", sys.stderr)
        else:
            say(f"  {cell.outcome}: {cell.why}", sys.stderr)
        return cell


def describe_plan(plan: Plan, measured: int) -> list[str]:
    """For people, before anything is begun."""
    lines = [f"{len(plan.cells)} cells to measure, about {max(1, round(plan.seconds / 60))} min"]
    if measured:
        lines[0] += f"; {measured} are there already"
    if plan.left_out:
        lines.append(f"left out, for the budget: {len(plan.left_out)} cells:")
        lines += [f"  {key}" for key in plan.left_out]
    return lines
