"""How much there is to judge, and which way each part of it goes. Said before anything is judged.

packed       objects that fit into a group of rows of their file: judged many at once, where
             they are read, without moving a row
gathered     larger ones: the rows of each are brought to one worker
distributed  logs that are too large for one worker: judged in pieces, on all of them
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jepsen_like.checkers.judges import is_idempotent
from jepsen_like.checkers.splitting import Split, split_of
from spark.convert import GROUP_ROWS
from spark.rows import WHOLE
from spark.verdicts import named, run_and_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Plan", "Thresholds", "plan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """In rows. `group` is that of the files: an object of more may be in two groups of them."""

    group: int = GROUP_ROWS
    one_worker: int = 4_000_000
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
    gathered: Sequence[str] = field(default=())  # names with their runs
    distributed: Mapping[str, bool] = field(default_factory=dict)  # with idempotent producers?

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
        gathered = sum(not _is_whole(name) for name in self.gathered)
        packed = self.objects - gathered - len(self.distributed)
        if packed:
            yield f"  {_count(packed, 'object')} judged many at once where they are read"
        if gathered:
            yield f"  {_count(gathered, 'object')} brought to one worker each"
        if self.distributed:
            yield f"  {_count(len(self.distributed), 'log')} judged in pieces on all workers"


def plan(table: "DataFrame", thresholds: Thresholds) -> Plan:
    from pyspark.sql import functions as F

    sizes = table.groupBy("run", "object", "workload", "options").agg(
        F.count("*").alias("rows"),
        F.sum((F.col("step") == 0).cast("long")).alias("operations"),
    )
    is_large = F.col("rows") > thresholds.group
    totals = sizes.agg(
        F.size(F.collect_set("run")).alias("runs"),
        F.sum((F.col("object") != WHOLE).cast("long")).alias("objects"),
        F.sum("operations").alias("operations"),
        F.sum("rows").alias("rows"),
        F.sort_array(F.collect_set("workload")).alias("workloads"),
        F.collect_list(F.when(is_large, F.struct(*sizes.columns))).alias("large"),
    ).collect()[0]
    large = totals["large"]
    distributed = {
        named(row["run"], row["object"]): is_idempotent(json.loads(row["options"]))
        for row in large
        if row["rows"] > thresholds.one_worker
        and row["object"] != WHOLE
        and split_of(row["workload"]) is Split.STEPS
    }
    names = [named(row["run"], row["object"]) for row in large]
    return Plan(
        runs=totals["runs"],
        objects=totals["objects"] or 0,
        operations=totals["operations"] or 0,
        rows=totals["rows"] or 0,
        workloads=totals["workloads"],
        gathered=sorted(set(names) - set(distributed)),
        distributed=distributed,
    )


def _is_whole(name: str) -> bool:
    """Is it what concerns a run as a whole, and not an object of it?"""
    return run_and_name(name)[1] == WHOLE


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
