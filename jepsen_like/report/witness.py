"""The operations that show a broken rule, and the order among them.

`before`    the first ended before the other began: whatever happened, it happened in this order
`broken`    what was seen needs the first to come before the other, which `before` forbids
`against`   the two contradict each other, whichever came first
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from jepsen_like.checkers.anomalies import anomaly_of
from jepsen_like.checkers.log_columns import INFO
from jepsen_like.checkers.verdict import Finding
from jepsen_like.report.bars import Bars
from jepsen_like.report.clock import Column

__all__ = ["Edge", "Witness", "rows_of_lines", "witness_of"]

_DRAWN = 16  # operations of a finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    first: int  # rows
    second: int
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    rows: Sequence[int]  # in order of their calls
    edges: Sequence[Edge]


def rows_of_lines(bars: Bars, places: Mapping[int, int]) -> dict[int, int]:
    """The rows of lines of the history, by index; `places` says where each line is."""
    wanted = np.array(sorted(places.values()), dtype=np.int64)
    rows = bars.rows_of(wanted)
    row_at: dict[int, int] = {}
    for row in rows.tolist():
        row_at[int(bars.invoked[row])] = row
        row_at[int(bars.completed[row])] = row
    return {index: row_at[place] for index, place in places.items() if place in row_at}


def witness_of(finding: Finding, rows: Mapping[int, int], bars: Bars) -> Witness:
    mine = sorted({rows[index] for index in finding.ops if index in rows})[:_DRAWN]
    return Witness(rows=mine, edges=list(_edges(finding, mine, bars)))


def _edges(finding: Finding, rows: Sequence[int], bars: Bars) -> Iterator[Edge]:
    """Only those that do not follow from others."""
    before = {pair for pair in combinations(rows, 2) if _is_before(bars, *pair)}
    for first, second in sorted(before):
        if not any((first, each) in before and (each, second) in before for each in rows):
            yield Edge(first=first, second=second, kind="before")
    if len(rows) != 2:
        return
    first, second = rows
    if before and anomaly_of(finding.rule).is_order:
        yield Edge(first=second, second=first, kind="broken")
    else:
        yield Edge(first=first, second=second, kind="against")


def _is_before(bars: Bars, first: int, second: int) -> bool:
    ended: Column = bars.completed
    is_known = bars.outcome[first] != INFO
    return bool(is_known and 0 <= ended[first] < bars.invoked[second])
