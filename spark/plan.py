"""How much there is to judge, and which way each part of it goes. Said before anything is judged.

whole     most objects: a worker reads all rows of one, and judges it with others in one pass
in pieces logs and registers that are too large for one worker: judged on all of them
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jepsen_like.checkers.judges import LOOKED_AT, Split, is_idempotent, split_of
from jepsen_like.checkers.registers import initial_of
from jepsen_like.histories.history import Kind
from spark.rows import WHOLE
from spark.verdicts import named

__all__ = ["Large", "Plan", "Thresholds", "plan"]

_REGISTERS = ("cas-register", "register")  # workloads
_SHOWING = sorted({*LOOKED_AT["log"], "cas", "read", "write"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """In rows."""

    one_worker: int = 16_000_000
    batch: int = 200_000  # judged in one pass
    piece: int = 1_000_000  # of a distributed log
    names: int = 10_000  # objects of which each is named in the verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Large:
    """A log or a register that is judged in pieces."""

    run: str
    object: str
    workload: str
    is_idempotent: bool  # are its producers
    shows: bool  # anything that is judged was ok

    @property
    def name(self) -> str:
        return named(self.run, self.object)

    @property
    def is_register(self) -> bool:
        return self.workload in _REGISTERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    runs: int
    objects: int
    operations: int
    rows: int
    workloads: Sequence[str]
    distributed: Sequence[Large] = ()

    def in_pieces(self) -> Iterator[Sequence[Large]]:
        """Those that are judged by the same rules."""
        alike: dict[tuple[bool, bool], list[Large]] = {}
        for large in self.distributed:
            alike.setdefault((large.is_register, large.is_idempotent), []).append(large)
        yield from alike.values()

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
            large = _count(len(self.distributed), "large object")
            yield f"  {large} judged in pieces on all workers"


def plan(table: DataFrame, thresholds: Thresholds) -> Plan:
    sizes = table.groupBy("run", "object", "workload", "options").agg(
        F.count("*").alias("rows"),
        F.sum((F.col("step") == 0).cast("long")).alias("operations"),
        F.max((F.col("kind") == Kind.OK.value) & F.col("f").isin(*_SHOWING)).alias("shows"),
    )
    is_large = F.col("rows") > thresholds.one_worker
    totals = sizes.agg(
        F.size(F.collect_set("run")).alias("runs"),
        F.sum((F.col("object") != WHOLE).cast("long")).alias("objects"),
        F.sum("operations").alias("operations"),
        F.sum("rows").alias("rows"),
        F.sort_array(F.collect_set("workload")).alias("workloads"),
        F.collect_list(F.when(is_large, F.struct(*sizes.columns))).alias("large"),
    ).collect()[0]
    return Plan(
        runs=totals["runs"],
        objects=totals["objects"] or 0,
        operations=totals["operations"] or 0,
        rows=totals["rows"] or 0,
        workloads=totals["workloads"],
        distributed=[
            _large(row)
            for row in totals["large"]
            if row["object"] != WHOLE and _may_be_cut(row["workload"], row["options"])
        ],
    )


def _may_be_cut(workload: str, options: str) -> bool:
    if workload in _REGISTERS:
        return initial_of(json.loads(options)) == [None]
    return split_of(workload) is Split.STEPS


def _large(row: Row) -> Large:
    return Large(
        run=row["run"],
        object=row["object"],
        workload=row["workload"],
        is_idempotent=is_idempotent(json.loads(row["options"])),
        shows=row["shows"],
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
