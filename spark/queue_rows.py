"""Rows of a queue that is too large for one worker, as its pieces hand them on.

tag       a row for
value     a value that came: `began`, `came` of its enqueue, `left`, `gone` of its dequeue
unknown   a dequeue of unknown end: `moment` of its call
empty     a dequeue that found nothing: `began`, `came` of itself; its place is `enqueue`
due       a value that had to leave by the `moment`, and was not seen to; as a finding: `told`
taken     one that a dequeue of unknown end may have taken, when it `left`
end       the value of a piece that left last; `began`: since when without a gap
carried   the same of all pieces before; `came`: since when, `began`: when it came itself
twice     an object: one of its values was enqueued twice
wrong     an object: it was found empty, and something was there
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from jepsen_like.checkers.verdict import Finding, Verdict
from spark import schema
from spark.verdicts import encoded

__all__ = ["ACCESSES", "MOMENTS", "QUEUED", "Rows", "filled", "verdict_of", "with_carried"]

ACCESSES = [
    *("run", "object", "f", "kind", "call", "ret", "invoked", "completed", "number", "value"),
]
MOMENTS = ("began", "came", "left", "gone")
_NUMBERS = ("number", "piece", "moment", *MOMENTS, "enqueue", "dequeue")
_TEXTS = ("tag", "run", "object", "verdict")
QUEUED = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in _TEXTS),
        *(pa.field(name, pa.int64()) for name in _NUMBERS),
        *(pa.field(name, pa.binary()) for name in ("value", "told")),
    ]
)
Rows = Sequence[Mapping[str, Any]]


def filled(tag: str, columns: Mapping[str, Any]) -> pa.Table:
    """Rows with these columns; the rest is null."""
    count = len(next(iter(columns.values())))
    return schema.filled(QUEUED, count, {"tag": tag, **columns})


def verdict_of(findings: Iterable[Finding]) -> Iterator[pa.Table]:
    verdict = Verdict.of(findings)
    if verdict.findings:
        yield filled("verdict", {"verdict": [encoded(verdict)]})


def with_carried(rows: pa.Table, carried: Mapping[int, pa.Table]) -> pa.Table:
    carry = carried.get(rows.column("piece")[0].as_py())
    rows = rows.select(QUEUED.names)
    return rows if carry is None else pa.concat_tables([carry, rows.cast(QUEUED)])
