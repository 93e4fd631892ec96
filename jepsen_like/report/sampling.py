"""Which operations a page draws when there are too many: all near the evidence, some of the rest.

Half of the page is for windows round the evidence, in which nothing is left out. The rest is for
what is worth a look wherever it is (operations that failed, that nobody knows the end of, the
slowest of each stretch of time) and for every n-th of all others. Counts and latencies do not
depend on it: they are of all operations (`series`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jepsen_like.checkers.log_columns import OK
from jepsen_like.report.bars import Bars, Column

__all__ = ["DRAWN", "drawn"]

DRAWN = 20_000
_CONTEXT = 400  # operations before and after a piece of evidence
_WINDOWS = 60  # round the first of them

Span = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drawn:
    rows: Column
    whole: Sequence[Span]  # of time, in microseconds: in these nothing is left out


def drawn(bars: Bars, evidence: Column, end: int, limit: int = DRAWN) -> Drawn:
    """`evidence`: rows, the most telling first. All are drawn, and about `limit` in all."""
    if len(bars) <= limit:
        return Drawn(rows=np.arange(len(bars)), whole=[(0, end)])
    context = min(_CONTEXT, limit // 4 // min(max(len(evidence), 1), _WINDOWS))
    whole = _windows(bars, evidence, context)
    near = np.zeros(len(bars), dtype=bool)
    for begin, until in whole:
        near |= (bars.call <= until) & (bars.ret >= begin)
    near[evidence] = True
    far = np.flatnonzero(~near)
    rest = max(limit - int(near.sum()), limit // 4)
    strange = _every(far[bars.outcome[far] != OK], rest // 3)
    slow = _slowest(bars, far, rest // 3)
    others = _every(far, rest - len(strange) - len(slow))
    rows = np.unique(np.concatenate([np.flatnonzero(near), strange, slow, others]))
    return Drawn(rows=rows, whole=whole)


def _windows(bars: Bars, evidence: Column, context: int) -> list[Span]:
    """From a few calls before each piece of evidence to a few after its return."""
    spans: list[Span] = []
    last = len(bars) - 1
    for row in evidence[:_WINDOWS].tolist():
        ended = int(np.searchsorted(bars.call, bars.ret[row]))
        for at in (row, ended):
            begin, until = max(at - context // 2, 0), min(at + context // 2, last)
            spans.append((int(bars.call[begin]), int(bars.call[until])))
    return _joined(spans)


def _joined(spans: Sequence[Span]) -> list[Span]:
    joined: list[Span] = []
    for begin, until in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], until)
        else:
            joined.append((begin, until))
    return joined


def _every(rows: Column, count: int) -> Column:
    """So many of them, evenly spaced."""
    if len(rows) <= count:
        return rows
    return rows[np.linspace(0, len(rows) - 1, max(count, 1)).astype(np.int64)]


def _slowest(bars: Bars, rows: Column, count: int) -> Column:
    """The one that took longest of each of so many stretches."""
    stretches = np.array_split(rows, max(count, 1))
    latency = bars.ret - bars.call
    found = [int(each[np.argmax(latency[each])]) for each in stretches if len(each)]
    return np.array(found, dtype=np.int64)
