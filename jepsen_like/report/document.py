"""All that a page shows, as plain values: what the script in it reads.

Times are microseconds since the start of the run. The page is bounded, whatever the history: drawn
operations (`bars`), series (`series`), findings and objects of which the rest is counted.

The operations that show a broken rule have edges between them:

`before`    the first ended before the other began: whatever happened, it happened in this order
`broken`    what was seen needs the first to come before the other, which `before` forbids
`against`   the two contradict each other, whichever came first
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from math import isfinite
from typing import Any

import numpy as np

from jepsen_like.checkers.anomalies import anomaly_of
from jepsen_like.checkers.log_columns import FAIL, INFO, OK, LogColumns
from jepsen_like.checkers.operations import Operation, operations
from jepsen_like.checkers.pairing import positions
from jepsen_like.checkers.verdict import Finding, Outcome, Verdict
from jepsen_like.histories.history import History, MalformedHistory, Op
from jepsen_like.histories.timeline import described
from jepsen_like.report.bands import Band, bands_and_marks, recoveries
from jepsen_like.report.bars import DRAWN, NONE, Bars, Clock, Column, drawn
from jepsen_like.report.headline import again, headline, outcome_of, told_of_plants
from jepsen_like.report.series import QUANTILES, Series, series_of, unseen_of

__all__ = ["Document", "Told", "document"]

_DRAWN = 16  # operations of a finding
Edge = tuple[int, int, str]  # two rows, and the kind


def rows_of_lines(bars: Bars, places: Mapping[int, int]) -> dict[int, int]:
    """The rows of lines of the history, by index; `places` says where each line is."""
    wanted = np.array(sorted(places.values()), dtype=np.int64)
    rows = bars.rows_of(wanted)
    row_at: dict[int, int] = {}
    for row in rows.tolist():
        row_at[int(bars.invoked[row])] = row
        row_at[int(bars.completed[row])] = row
    return {index: row_at[place] for index, place in places.items() if place in row_at}


def _edges(finding: Finding, rows: Sequence[int], bars: Bars) -> Iterator[Edge]:
    """Only those that do not follow from others."""
    before = {pair for pair in combinations(rows, 2) if _is_before(bars, *pair)}
    for first, second in sorted(before):
        if not any((first, each) in before and (each, second) in before for each in rows):
            yield first, second, "before"
    if len(rows) != 2:
        return
    first, second = rows
    if before and anomaly_of(finding.rule).is_order:
        yield second, first, "broken"
    else:
        yield first, second, "against"


def _is_before(bars: Bars, first: int, second: int) -> bool:
    ended: Column = bars.completed
    is_known = bars.outcome[first] != INFO
    return bool(is_known and 0 <= ended[first] < bars.invoked[second])


FORMAT = "quorumlab-report"
VERSION = 1
_FINDINGS_MAX = 200
_OBJECTS_MAX = 300
_TEXT_MAX = 140  # of an operation
_WHOLE_TEXT_MAX = 2000  # of one that is evidence
_MARKS_MAX = 500
_LOGS = ("log", "admin", "kafka", "observe", "transactions")  # workloads of sends and polls

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The verdict on a history, and what else its page says."""

    verdict: Verdict
    void: Sequence[str] = ()
    about: Mapping[str, str] = ()  # type: ignore[assignment] # lines such as command, commit


def document(history: History, told: Told, *, limit: int = DRAWN) -> Document:
    ops = history.ops
    clock = Clock.of(ops)
    findings = told.verdict.findings[:_FINDINGS_MAX]
    lines = list(dict.fromkeys(index for finding in findings for index in finding.ops))
    operated = operations(ops)
    bars = Bars.of(ops, operated, clock, lines)
    rows = rows_of_lines(bars, _places(ops, lines))
    evidence = np.array(list(dict.fromkeys(rows[each] for each in lines if each in rows)), np.int64)
    bands, marks = bands_and_marks(ops, clock)
    median, recovered = recoveries(bands, bars, clock.end)
    shown = drawn(bars, evidence, clock.end, limit)
    at = {int(row): place for place, row in enumerate(shown.rows.tolist())}
    return {
        "format": FORMAT,
        "version": VERSION,
        "header": _header(history),
        "about": dict(told.about),
        "said": _said(history, told, bars, bands),
        "verdict": _verdict(told),
        "findings": [_finding(each, rows, bars, at) for each in findings],
        "end": clock.end,
        "is_time": clock.is_time,
        "lines": len(ops),
        "total": len(bars),
        "lanes": list(bars.lanes),
        "functions": list(bars.functions),
        "whole": [list(span) for span in shown.whole],
        "operations": _operations(ops, bars, shown.rows, set(evidence.tolist())),
        "faults": [
            {**asdict(band), **asdict(recovery)}
            for band, recovery in zip(bands, recovered, strict=True)
        ],
        "median_ok_a_second": median,
        "marks": [[when, text[:_TEXT_MAX]] for when, text in marks[:_MARKS_MAX]],
        "series": _series(series_of(bars, clock.end)),
        "unseen": _unseen(history, operated, clock),
    }


def _places(ops: Sequence[Op], lines: Sequence[int]) -> dict[int, int]:
    index = np.fromiter((op.index for op in ops), dtype=np.int64, count=len(ops))
    places = positions(index, np.array(lines, dtype=np.int64)).tolist()
    return {line: place for line, place in zip(lines, places, strict=True) if place >= 0}


def _header(history: History) -> Document:
    header = history.header
    return {
        "workload": header.workload,
        "seed": header.seed,
        "design": header.design,
        "options": _plain(dict(header.options)),
        "is_cut": history.is_cut,
    }


def _plain(value: Any) -> Any:
    """The value with everything that JSON cannot hold as text."""
    match value:
        case float() if not isfinite(value):
            return repr(value)
        case None | bool() | int() | float() | str():
            return value
        case dict():
            return {str(name): _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case _:
            return repr(value)


def _said(history: History, told: Told, bars: Bars, bands: Sequence[Band]) -> Document:
    """What a reader is told before anything else."""
    succeeded = np.bincount(bars.function[bars.outcome == OK], minlength=len(bars.functions))
    counted = dict(zip(bars.functions, succeeded.tolist(), strict=True))
    about = dict(told.about)
    verdict = (told.verdict, told.void)
    return {
        "outcome": outcome_of(*verdict),
        "headline": headline(history.header.workload, verdict, counted, bands),
        "planted": told_of_plants(about),
        "again": again(about),
    }


def _verdict(told: Told) -> Document:
    verdict = told.verdict
    counted = Counter(finding.object for finding in verdict.findings)
    ordered = sorted(verdict.objects.items(), key=lambda each: (each[1] is Outcome.VALID, each[0]))
    outcomes = Counter(outcome.value for outcome in verdict.objects.values())
    return {
        "outcome": verdict.outcome.value,
        "reason": verdict.reason,
        "void": list(told.void),
        "counts": _plain(dict(verdict.counts)),
        "outcomes": dict(outcomes),
        "objects": [
            [name, outcome.value, counted[name]] for name, outcome in ordered[:_OBJECTS_MAX]
        ],
        "findings": len(verdict.findings),
    }


def _finding(
    finding: Finding, rows: Mapping[int, int], bars: Bars, at: Mapping[int, int]
) -> Document:
    """`rows` by line of the history; `at` says where each row is drawn."""
    mine = sorted({rows[index] for index in finding.ops if index in rows})[:_DRAWN]
    return {
        "rule": finding.rule,
        "says": anomaly_of(finding.rule).says,
        "object": finding.object,
        "detail": finding.detail,
        "operations": [at[row] for row in mine],
        "edges": [[at[one], at[two], kind] for one, two, kind in _edges(finding, mine, bars)],
    }


def _operations(ops: Sequence[Op], bars: Bars, rows: Any, evidence: set[int]) -> Document:
    texts, whole = [], {}
    for place, row in enumerate(rows.tolist()):
        invoked, completed = int(bars.invoked[row]), int(bars.completed[row])
        ended = ops[completed] if completed not in (NONE, invoked) else None
        text = _text(ops[invoked], ended)
        texts.append(text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]} ...")
        if row in evidence:
            whole[str(place)] = [_line(each) for each in (ops[invoked], ended) if each is not None]
    return {
        "call": bars.call[rows].tolist(),
        "ret": np.where(bars.completed[rows] == NONE, NONE, bars.ret[rows]).tolist(),
        "lane": bars.lane[rows].tolist(),
        "function": bars.function[rows].tolist(),
        "outcome": bars.outcome[rows].tolist(),
        "index": [ops[each].index for each in bars.invoked[rows].tolist()],
        "process": [ops[each].process for each in bars.invoked[rows].tolist()],
        "text": texts,
        "whole": whole,
    }


def _text(invoked: Op, ended: Op | None) -> str:
    if ended is None:
        return described(invoked)
    extra = "" if not ended.extra else f"  {_extra(ended)}"
    return f"{described(invoked)} {described(ended)}{extra}".lstrip()


def _extra(op: Op) -> str:
    return " ".join(f"{name}={value}" for name, value in op.extra.items())


def _line(op: Op) -> str:
    error = f"  {op.error}" if op.error else ""
    extra = f"  {_extra(op)}" if op.extra else ""
    return f"{op.index}  {op.kind.value}  {op.f}  {op.value!r}"[:_WHOLE_TEXT_MAX] + error + extra


def _series(series: Series) -> Document:
    return {
        "width": series.width,
        "ended": {
            "ok": series.ended[OK].tolist(),
            "info": series.ended[INFO].tolist(),
            "fail": series.ended[FAIL].tolist(),
        },
        "quantiles": list(QUANTILES),
        "latencies": [asdict(each) for each in series.latencies],
    }


def _unseen(history: History, operated: Sequence[Operation], clock: Clock) -> Document | None:
    if history.header.workload not in _LOGS:
        return None
    try:
        return unseen_of(LogColumns.of(operated), clock)
    except MalformedHistory:  # judged as something else
        return None
