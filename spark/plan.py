"""How much there is to judge, and which way each part of it goes. Said before anything is judged.

whole     most objects: a worker reads all rows of one, and judges it with others in one pass
in pieces logs that are too large for one worker: judged on all of them
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jepsen_like.checkers.judges import LOOKED_AT, Split, is_idempotent, split_of
from jepsen_like.histories.history import Kind
from spark.rows import WHOLE
from spark.verdicts import named

__all__ = ["Plan", "Thresholds", "plan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """In rows."""

    one_worker: int = 16_000_000
    batch: int = 200_000  # judged in one pass
    piece: int = 1_000_000  # of a distributed log
    names: int = 10_000  # objects of which each is named in the verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    runs: int
    objects: int
    operations: int
    rows: int
    workloads: Sequence[str]
    silent: Sequence[str] = ()  # runs in which nothing that is judged was ok, and nothing is wrong
    distributed: Mapping[str, bool] = field(default_factory=dict)  # idempotent producers, by name

    def in_pieces(self) -> Iterator[tuple[bool, list[str]]]:
        for wanted in (True, False):
            names = [name for name, is_so in self.distributed.items() if is_so is wanted]
            if names:
                yield wanted, names

    def lines(self) -> Iterator[str]:
        workloads = ", ".join(self.workloads)
        yield (
            f"{_count(self.operations, 'operation')} in {_count(self.runs, 'run')} ({workloads}), "
            f"{_count(self.objects, 'object')}, {_count(self.rows, 'row')}"
        )
        whole = self.objects - len(self.distributed)
        if whole:
            yield f"  {_count(whole, 'object')} judged many at once where they are read"
        if self.distributed:
            yield f"  {_count(len(self.distributed), 'log')} judged in pieces on all workers"


def plan(table: DataFrame, thresholds: Thresholds) -> Plan:
    sizes = table.groupBy("run", "object", "workload", "options").agg(
        F.count("*").alias("rows"),
        F.sum((F.col("step") == 0).cast("long")).alias("operations"),
        F.max(_is_judged_ok() | (F.col("what") == "lint")).alias("shows"),
    )
    is_large = F.col("rows") > thresholds.one_worker
    totals = sizes.agg(
        F.size(F.collect_set("run")).alias("runs"),
        F.array_except(
            F.collect_set("run"), F.collect_set(F.when(F.col("shows"), F.col("run")))
        ).alias("silent"),
        F.sum((F.col("object") != WHOLE).cast("long")).alias("objects"),
        F.sum("operations").alias("operations"),
        F.sum("rows").alias("rows"),
        F.sort_array(F.collect_set("workload")).alias("workloads"),
        F.collect_list(F.when(is_large, F.struct(*sizes.columns))).alias("large"),
    ).collect()[0]
    distributed = {
        named(row["run"], row["object"]): is_idempotent(json.loads(row["options"]))
        for row in totals["large"]
        if row["object"] != WHOLE and split_of(row["workload"]) is Split.STEPS
    }
    return Plan(
        runs=totals["runs"],
        objects=totals["objects"] or 0,
        operations=totals["operations"] or 0,
        rows=totals["rows"] or 0,
        workloads=totals["workloads"],
        silent=sorted(totals["silent"]),
        distributed=distributed,
    )


def _is_judged_ok() -> Column:
    """As `jepsen_like.checkers.judges` has it."""
    is_judged = F.col("what") != "line"
    for workload, fs in LOOKED_AT.items():
        is_of_it = F.col("workload") == workload
        is_judged = F.when(is_of_it, F.col("f").isin(sorted(fs))).otherwise(is_judged)
    return (F.col("kind") == Kind.OK.value) & is_judged


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
