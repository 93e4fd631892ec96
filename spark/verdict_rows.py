"""The table of verdicts: one row an object, or, of an object that is violated, a row a finding.

    schema      the version of this table
    run         as in the histories
    object      what was judged by itself: a partition, a key, an element; null: the run as a whole
    model       what it was judged as
    outcome     valid, undecided or violated
    rule        that is broken; null: none
    detail      what is wrong, in plain words
    operations  the lines of the history that show it
    reason      why it is undecided
    counts      what was looked at; of one pass over many objects, on the first row of the pass
    seconds     of a processor, for one pass over many objects, on its first row

A history that is wrong itself has rules that begin with `lint-`, and no object of its run is
violated: a false record accuses nobody.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from jepsen_like.checkers.verdict import Finding, Outcome, Verdict
from spark.verdicts import of_run, run_and_name

__all__ = [
    "TOLD",
    "VERDICTS",
    "VERSION",
    "Part",
    "VerdictRow",
    "batch_of",
    "rows_of",
]

VERSION = 1


class VerdictRow(NamedTuple):
    """`shows`: of rows that are no verdict, whether anything that is judged was ok in the run."""

    run: str
    model: str
    object: str | None = None
    outcome: str | None = None
    rule: str | None = None
    detail: str | None = None
    operations: Sequence[int] = ()
    reason: str | None = None
    counts: Mapping[str, int] | None = None
    seconds: float | None = None
    shows: bool | None = None


VERDICTS = pa.schema(
    [
        pa.field("schema", pa.int32(), nullable=False),
        pa.field("run", pa.string()),
        pa.field("object", pa.string()),
        pa.field("model", pa.string()),
        pa.field("outcome", pa.string()),
        pa.field("rule", pa.string()),
        pa.field("detail", pa.string()),
        pa.field("operations", pa.list_(pa.int64())),
        pa.field("reason", pa.string()),
        pa.field("counts", pa.map_(pa.string(), pa.int64())),
        pa.field("seconds", pa.float64()),
    ]
)
TOLD = VERDICTS.append(pa.field("shows", pa.bool_()))  # as it comes from the workers


class Part(NamedTuple):
    """What is said of some objects of one model, of one run or of many."""

    run: str  # the first of many
    model: str
    verdict: Verdict
    is_of_many: bool = False  # then names of objects carry their runs

    @property
    def named(self) -> Verdict:
        return self.verdict if self.is_of_many else of_run(self.run, self.verdict)


def rows_of(part: Part) -> Iterator[VerdictRow]:
    """Nothing of the part is left out: the worst of these rows is its outcome."""
    rows = list(_rows(part))
    if rows and part.verdict.counts:
        counts = {name: int(count) for name, count in part.verdict.counts.items()}
        rows[0] = rows[0]._replace(counts=counts)
    yield from rows


def _rows(part: Part) -> Iterator[VerdictRow]:
    verdict = part.verdict
    found: dict[str, list[Finding]] = {}
    for finding in verdict.findings:
        found.setdefault(finding.object, []).append(finding)
    why, reasons = _reasons(verdict)
    told = Counter[Outcome]()
    for name in dict.fromkeys([*found, *verdict.objects]):
        outcome = verdict.objects.get(name, verdict.outcome)
        told[outcome] += 1
        run, own = run_and_name(name) if part.is_of_many else (part.run, name)
        row = VerdictRow(run, part.model, own, outcome.value, reason=reasons.get(name))
        if name not in found:
            yield row
        for finding in found.get(name, ()):
            yield row._replace(
                rule=finding.rule, detail=finding.detail, operations=list(finding.ops)
            )
    if why or (told[verdict.outcome] == 0 and (verdict.counts or verdict.reason)):
        yield VerdictRow(part.run, part.model, None, verdict.outcome.value, reason=why or None)


def _reasons(verdict: Verdict) -> tuple[str, dict[str, str]]:
    """Why the whole is undecided, and why each object is."""
    doubted = {name for name, of in verdict.objects.items() if of is not Outcome.VALID}
    whole: list[str] = []
    reasons: dict[str, list[str]] = {}
    last = whole
    for part in verdict.reason.split("; ") if verdict.reason else ():
        name = next((each for each in _beginnings(part) if each in doubted), None)
        if name is None:
            last.append(part)
        else:
            last = reasons.setdefault(name, [])
            last.append(part[len(name) + 2 :])
    return "; ".join(whole), {name: "; ".join(told) for name, told in reasons.items()}


def _beginnings(part: str) -> Iterator[str]:
    """All that stands before a colon."""
    at = part.find(": ")
    while at >= 0:
        yield part[:at]
        at = part.find(": ", at + 1)


def batch_of(rows: Iterable[VerdictRow]) -> pa.RecordBatch:
    columns = dict(zip(VerdictRow._fields, zip(*rows, strict=True), strict=True))
    arrays = [
        pa.repeat(pa.scalar(VERSION, pa.int32()), len(columns["run"])),
        *(pa.array(_cells(columns[field.name]), field.type) for field in list(TOLD)[1:]),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=TOLD)


def _cells(column: Sequence[object]) -> list[object]:
    return [list(each.items()) if isinstance(each, dict) else each for each in column]
