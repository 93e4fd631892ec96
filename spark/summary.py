"""A table of verdicts becomes one verdict, of bounded size: what a person reads."""

from collections.abc import Iterable, Mapping

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from jepsen_like.checkers.verdict import Finding, Outcome, Verdict, compose
from spark.verdicts import FINDINGS_MAX

__all__ = ["counted", "summed"]

REASONS_MAX = 100
NAMES_MAX = 100_000
# Whatever came first: the same table is the same verdict.
_ORDER = ("run", "object", "model", "rule", "operations", "detail", "reason")


def summed(table: DataFrame, *, single_run: bool, with_names: bool) -> Verdict:
    """Objects are named by their runs only if there are several. `with_names`: of valid ones."""
    rule, object_, outcome = F.col("rule"), F.col("object"), F.col("outcome")
    is_lint = F.coalesce(rule.startswith("lint-"), F.lit(False))
    is_accused = rule.isNotNull() & ~is_lint & (outcome == Outcome.UNDECIDED.value)
    is_doubt = F.col("reason").isNotNull() & ~is_accused
    wanted = F.lit(True) if with_names else outcome != Outcome.VALID.value
    totals = table.agg(
        F.collect_set("outcome").alias("outcomes"),
        F.count("rule").alias("findings"),
        _number_of(is_doubt).alias("doubts"),
    ).collect()[0]
    named = _Named(is_alone=single_run)
    found = table.filter(rule.isNotNull()).orderBy(~is_lint, *_ORDER).limit(FINDINGS_MAX).collect()
    doubts = table.filter(is_doubt).orderBy(*_ORDER).limit(REASONS_MAX).collect()
    names = table.filter(object_.isNotNull() & ~is_lint & wanted).limit(NAMES_MAX)
    counts = counted(table, "counts")
    if totals["findings"] > FINDINGS_MAX:
        counts["findings not shown"] = totals["findings"] - FINDINGS_MAX
    more = totals["doubts"] - REASONS_MAX
    reasons = list(dict.fromkeys(map(named.reason, doubts)))
    if more > 0:
        reasons.append(f"and {more} more")
    return Verdict(
        outcome=compose(Verdict(outcome=Outcome(each)) for each in totals["outcomes"]).outcome,
        findings=tuple(map(named.finding, found)),
        reason="; ".join(reasons),
        counts=counts,
        objects=named.objects(names.select("run", "object", "outcome", "rule").collect()),
    )


def counted(table: DataFrame, column: str) -> dict[str, int]:
    """A map a row becomes one, of sums."""
    pairs = table.select(F.explode(column)).groupBy("key").agg(F.sum("value").alias("value"))
    return {row["key"]: row["value"] for row in pairs.collect()}


def _number_of(rows: Column) -> Column:
    return F.count(F.when(rows, 1))


class _Named:
    def __init__(self, *, is_alone: bool) -> None:
        self._is_alone = is_alone

    def name(self, row: Row) -> str:
        return str(row["object"]) if self._is_alone else f"{row['run']}: {row['object']}"

    def finding(self, row: Row) -> Finding:
        told = {"rule": row["rule"], "object": self.name(row), "detail": row["detail"]}
        return Finding(**told, ops=tuple(row["operations"]))

    def reason(self, row: Row) -> str:
        if row["object"] is not None:
            return f"{self.name(row)}: {row['reason']}"
        return row["reason"] if self._is_alone else f"{row['run']}: {row['reason']}"

    def objects(self, rows: Iterable[Row]) -> Mapping[str, Outcome]:
        """An object of a history that is wrong itself is violated, though nobody is accused."""
        found: list[Verdict] = []
        for row in rows:
            outcome = Outcome.VIOLATED if row["rule"] else Outcome(row["outcome"])
            found.append(Verdict(outcome=outcome, objects={self.name(row): outcome}))
        return compose(found).objects
