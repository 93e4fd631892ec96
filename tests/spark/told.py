"""What rows of verdicts say, without Spark: as `spark.library` and `spark.summary` have it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from jepsen_like.checkers.verdict import Finding, Outcome, Verdict, compose
from spark.judging import Judging, Limits

__all__ = ["told", "verdict_in"]

Row = dict[str, Any]
EVERYTHING = Limits()


def told(table: pa.Table, limits: Limits = EVERYTHING) -> Verdict:
    """What a worker says of a table of one run."""
    batches = Judging(limits=limits).told(table.to_batches(max_chunksize=100))
    return verdict_in([row for batch in batches for row in batch.to_pylist()])


def verdict_in(rows: Iterable[Row], *, single_run: bool = True) -> Verdict:
    of_runs: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        of_runs[row["run"]].append(row)
    prefixed = {run: "" if single_run else f"{run}: " for run in of_runs}
    return compose(_of_run(prefixed[run], list(_believed(mine))) for run, mine in of_runs.items())


def _believed(rows: list[Row]) -> Iterator[Row]:
    lies = any(map(_is_lint, rows))
    markers = [row for row in rows if row.get("shows") is not None]
    if markers and not lies and not any(row["shows"] for row in markers):
        yield {**markers[0], "outcome": "undecided"}
    for row in rows:
        if row["outcome"] is not None:
            accuses = lies and row["outcome"] == "violated"
            yield {**row, "outcome": "undecided" if accuses else row["outcome"]}


def _of_run(prefix: str, rows: list[Row]) -> Verdict:
    outcome = compose(Verdict(outcome=Outcome(row["outcome"])) for row in rows).outcome
    findings = [_finding(prefix, row) for row in rows if row["rule"]]
    objects = compose(
        Verdict(outcome=outcome, objects={prefix + row["object"]: _of_object(row)})
        for row in rows
        if row["object"] is not None and not _is_lint(row)
    ).objects
    counts = compose(
        Verdict(outcome=outcome, counts=dict(row["counts"])) for row in rows if row["counts"]
    ).counts
    reasons = dict.fromkeys(_reason(prefix, row) for row in rows if row["reason"])
    return Verdict(
        outcome=outcome,
        findings=tuple(findings),
        reason="; ".join(reasons),
        counts=counts,
        objects=objects,
    )


def _of_object(row: Row) -> Outcome:
    return Outcome.VIOLATED if row["rule"] else Outcome(row["outcome"])


def _finding(prefix: str, row: Row) -> Finding:
    return Finding(
        rule=row["rule"],
        object=prefix + row["object"],
        detail=row["detail"],
        ops=tuple(row["operations"]),
    )


def _reason(prefix: str, row: Row) -> str:
    return f"{prefix}{'' if row['object'] is None else row['object'] + ': '}{row['reason']}"


def _is_lint(row: Row) -> bool:
    return bool(row["rule"]) and row["rule"].startswith("lint-")
