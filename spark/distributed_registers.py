"""Registers too large for one worker, judged in pieces on all of them: how the rows move.

    table --by value--> judged, and handed on:
        zones  --by the moment at which they begin--> in order, with what is carried on: judged

Only reads and writes, each value written once, can be judged so. What else there is in a register
makes it undecided, unless something is wrong all the same.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jepsen_like.checkers.verdict import Outcome, Verdict, compose
from spark import register_pieces
from spark.distributed import Pieces, found_in, mapped
from spark.piece_rows import HANDED_ON
from spark.register_pieces import ACCESSES, carried_on
from spark.verdicts import named

__all__ = ["registers_in_pieces"]

_ODD = "too large for one worker, and there are operations in it that are no plain read or write"
_TWICE = "too large for one worker, and a value was written to it twice"


def registers_in_pieces(table: DataFrame, names: Sequence[str], cut: Pieces) -> Verdict:
    """`table` has all rows of these registers, and no others; `names` have their runs."""
    kept: list[DataFrame] = []

    def keep(frame: DataFrame) -> DataFrame:
        kept.append(frame.persist(StorageLevel.DISK_ONLY))
        return kept[-1]

    try:
        counts = {"registers": len(names), "by zones": len(names)}
        verdicts = [Verdict.of([], counts, objects=names), *_verdicts(table, cut, keep)]
        return _settled(compose(verdicts))
    finally:
        for frame in kept:
            frame.unpersist()


def _verdicts(
    table: DataFrame, cut: Pieces, keep: Callable[[DataFrame], DataFrame]
) -> Iterator[Verdict]:
    is_plain = (F.col("what") == "access") & F.col("f").isin("read", "write")
    yield _doubted(table.filter(~is_plain), _ODD)
    moved = table.filter(is_plain).select(*ACCESSES)
    moved = moved.repartition(cut.count, "run", "object", "number", "value")
    zones = keep(mapped(moved, register_pieces.by_value(cut.mb)))
    yield from found_in(zones)
    yield _doubted(zones.filter(F.col("tag") == "twice"), _TWICE)
    begin = F.least("lower", "upper")
    of_zones = zones.filter(F.col("tag") == "zone").withColumn("call", begin)
    ranged = of_zones.repartitionByRange(cut.count, "run", "object", "call")
    pieces = keep(ranged.withColumn("piece", F.spark_partition_id().cast("long")))
    carried = carried_on(_ends_of(pieces))
    yield from found_in(mapped(pieces, register_pieces.by_moment(carried, cut.mb)))


def _ends_of(pieces: DataFrame) -> list[dict[str, Any]]:
    """The forward zone that reaches furthest, of each piece and register."""
    row = F.struct(*HANDED_ON.names)
    is_forward = F.col("lower") < F.col("upper")
    furthest = F.max_by(row, F.when(is_forward, F.col("upper"))).alias("latest")
    ends = pieces.groupBy("piece", "run", "object").agg(furthest)
    return [each.asDict(recursive=True) for each in ends.collect()]


def _doubted(rows: DataFrame, why: str) -> Verdict:
    of = rows.select("run", "object").distinct().collect()
    return Verdict.of([], doubts={named(row["run"], row["object"]): why for row in of})


def _settled(verdict: Verdict) -> Verdict:
    """A register that is violated is not in doubt as well."""
    if verdict.outcome is not Outcome.VIOLATED:
        return verdict
    doubts = {name: _ODD for name, of in verdict.objects.items() if of is Outcome.UNDECIDED}
    return Verdict.of(verdict.findings, verdict.counts, objects=verdict.objects, doubts=doubts)
