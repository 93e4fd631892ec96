"""How much there is to judge, and which way each part of it goes. Said before anything is judged.

whole     most objects: a worker reads all rows of one, and judges it with others in one pass
in pieces logs, registers, queues, sets and transactions that are too large for one worker: judged
          on all of them

A set, a total queue or a history of transactions is judged operation by operation: that takes more
memory than columns do. What is in its lists counts as rows as well.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from jepsen_like.checkers.isolation_levels import ISOLATION, LEVELS, STRICT
from jepsen_like.checkers.judges import LOOKED_AT, Split, is_idempotent, split_of
from jepsen_like.checkers.micro_operations import WRITE_OF
from jepsen_like.checkers.registers import initial_of
from jepsen_like.histories.history import Kind
from spark.rows import WHOLE
from spark.verdicts import named

__all__ = ["Large", "Plan", "Thresholds", "plan"]

_WAYS = {
    "append": "transactions",
    "cas-register": "registers",
    "queue": "queues",
    "register": "registers",
    "rw-register": "transactions",
    "set": "sets",
    "total-queue": "total queues",
}
_BY_OPERATION = (*WRITE_OF, "set", "total-queue")
_CHANGES = {"add", "cas", "dequeue", "drain", "enqueue", "read-stale", "remove", "write"}
_SHOWING = sorted({*LOOKED_AT["log"], *_CHANGES, "read"})
_BYTES_LISTED = 4  # of an element of a list, about


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """In rows."""

    one_worker: int = 16_000_000
    by_operation: int = 2_000_000  # what one worker judges operation by operation
    batch: int = 200_000  # judged in one pass
    piece: int = 1_000_000  # of a distributed log
    names: int = 10_000  # objects of which each is named in the verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Large:
    """What is judged in pieces."""

    run: str
    object: str
    workload: str
    size: int  # in rows, and in what is in lists
    is_idempotent: bool  # are its producers
    shows: bool  # anything that is judged was ok
    isolation: str  # that its transactions promise
    initial: str | None  # value of a register, as JSON; None: it is none

    @property
    def name(self) -> str:
        return named(self.run, self.object)

    @property
    def way(self) -> str:
        """Whose rules it is judged by."""
        return _WAYS.get(self.workload, "logs")


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
        alike: dict[tuple[str | bool | None, ...], list[Large]] = {}
        for large in self.distributed:
            by = large.way, large.workload, large.is_idempotent, large.isolation, large.initial
            alike.setdefault(by, []).append(large)
        yield from alike.values()

    def lines(self) -> Iterator[str]:
        workloads = ", ".join(self.workloads)
        yield (
            f"{_count(self.operations, 'operation')} in {_count(self.runs, 'run')} ({workloads}), "
            f"{_count(self.objects, 'object')}, {_count(self.rows, 'row')}"
        )
        whole = self.objects - sum(large.object != WHOLE for large in self.distributed)
        if whole:
            yield f"  {_count(whole, 'object')} judged many at once where they are read"
        if self.distributed:
            large = _count(len(self.distributed), "large object")
            yield f"  {large} judged in pieces on all workers"


def plan(table: DataFrame, thresholds: Thresholds) -> Plan:
    sizes = table.groupBy("run", "object", "workload", "options").agg(
        F.count("*").alias("rows"),
        F.sum((F.col("step") == 0).cast("long")).alias("operations"),
        F.sum(F.octet_length("result")).alias("listed"),
        F.max((F.col("kind") == Kind.OK.value) & F.col("f").isin(*_SHOWING)).alias("shows"),
    )
    is_by_operation = F.col("workload").isin(*_BY_OPERATION)
    listed = F.floor(F.coalesce("listed", F.lit(0)) / _BYTES_LISTED)
    size = F.col("rows") + F.when(is_by_operation, listed).otherwise(0)
    sizes = sizes.withColumn("size", size)
    most = F.when(is_by_operation, thresholds.by_operation).otherwise(thresholds.one_worker)
    is_large = F.col("size") > most
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
            if _may_be_cut(row["object"], row["workload"], row["options"])
        ],
    )


def _may_be_cut(name: str, workload: str, options: str) -> bool:
    match _WAYS.get(workload):
        case "registers":
            return name != WHOLE and _initial(options) is not None
        case "transactions":
            return _isolation(options) in LEVELS
        case "queues":
            return name != WHOLE
        case None:
            return name != WHOLE and split_of(workload) is Split.STEPS
        case _:
            return True


def _initial(options: str) -> str | None:
    """What registers begin with, as JSON; None: nobody knows, or it is no single value."""
    match initial_of(json.loads(options)):
        case [None | bool() | int() | float() | str() as value]:
            return json.dumps(value)
        case _:
            return None


def _isolation(options: str) -> str:
    return str(json.loads(options).get(ISOLATION, STRICT))


def _large(row: Row) -> Large:
    is_register = _WAYS.get(row["workload"]) == "registers"
    return Large(
        run=row["run"],
        object=row["object"],
        workload=row["workload"],
        size=row["size"],
        is_idempotent=is_idempotent(json.loads(row["options"])),
        isolation=_isolation(row["options"]),
        initial=_initial(row["options"]) if is_register else None,
        shows=row["shows"],
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
