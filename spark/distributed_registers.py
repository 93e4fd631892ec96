"""Registers too large for one worker, judged in pieces on all of them: how the rows move.

    table --by value--> judged, and handed on:
        zones  --by the moment at which they begin--> in order, with what is carried on: judged

Only reads and writes, each value written once, can be judged so. A register with anything else in
it is undecided; one to which a value was written twice is, unless something else is wrong.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jepsen_like.checkers.verdict import Verdict
from spark import register_pieces
from spark.distributed import Pieces, decided, found_in, mapped, names_in, plain
from spark.kept import Keep, keeping
from spark.piece_rows import HANDED_ON
from spark.register_pieces import ACCESSES, carried_on

__all__ = ["registers_in_pieces"]

_ODD = "too large for one worker, and there are operations in it that are no plain read or write"
_TWICE = "too large for one worker, and a value was written to it twice"


def registers_in_pieces(table: DataFrame, names: Sequence[str], cut: Pieces) -> Verdict:
    """`table` has all rows of these registers, and no others; `names` have their runs."""
    with keeping() as keep:
        counts = {"registers": len(names), "by zones": len(names)}
        accesses, odd = plain(table, "read", "write")
        zones = keep(_zones(accesses, cut))
        twice = names_in(zones.filter(F.col("tag") == "twice"))
        doubts = {**dict.fromkeys(twice, _TWICE), **dict.fromkeys(odd, _ODD)}
        return decided(names, counts, _found(zones, cut, keep), doubts)


def _zones(accesses: DataFrame, cut: Pieces) -> DataFrame:
    moved = accesses.select(*ACCESSES)
    moved = moved.repartition(cut.count, "run", "object", "number", "value")
    return mapped(moved, register_pieces.by_value(cut.mb))


def _found(zones: DataFrame, cut: Pieces, keep: Keep) -> Iterator[Verdict]:
    yield from found_in(zones)
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
