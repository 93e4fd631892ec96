"""Registers too large for one worker, judged in pieces on all of them: how the rows move.

    table --by value--> judged, and handed on:
        zones  --by the moment at which they begin--> in order, with what is carried on: judged

Only reads and writes, each value written once, and nil at the beginning, can be judged so. All
other registers are searched, see `distributed_searches`: those with a compare-and-set, and those to
which a value was written twice, unless something else is wrong.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jepsen_like.checkers.search import Budget
from jepsen_like.checkers.verdict import Verdict, compose
from jepsen_like.histories.history import Value
from spark import register_pieces
from spark.distributed import Pieces, decided, found_in, mapped, names_in, plain
from spark.distributed_searches import Searches
from spark.kept import Keep, keeping
from spark.moves import OnSpark
from spark.piece_rows import HANDED_ON
from spark.register_pieces import ACCESSES, carried_on
from spark.searched_rows import READ_FROM, text_of

__all__ = ["registers_in_pieces"]


def registers_in_pieces(
    table: DataFrame, names: Sequence[str], cut: Pieces, budget: Budget, initial: Value = None
) -> Verdict:
    """`table` has all rows of these registers, and no others; `names` have their runs. `initial`:
    what they begin with. The budget is that of the search of one stretch."""
    with keeping() as keep:
        by_zones, searched = Verdict.of([]), list(names)
        if initial is None:
            by_zones, searched = _by_zones(table, cut, keep)
        counts = {
            "registers": len(names),
            "by zones": len(names) - len(searched),
            "by search": len(searched),
        }
        found, doubts = [by_zones], dict[str, str]()
        if searched:
            moves = OnSpark(pieces=cut.count, keep=keep)
            search = Searches(moves=moves, budget=budget, mb=cut.mb, initial=text_of(initial))
            rows = table.filter(_is_of(searched)).select(*READ_FROM)
            verdict, doubts = search.judged(rows)
            found.append(verdict)
        return decided(names, counts, found, doubts)


def _is_of(names: Sequence[str]) -> Column:
    return F.concat_ws("\t", "run", "object").isin(list(names))


def _by_zones(table: DataFrame, cut: Pieces, keep: Keep) -> tuple[Verdict, list[str]]:
    """What zones show, and the registers of which they do not show enough."""
    accesses, odd = plain(table, "read", "write")
    zones = keep(_zones(accesses, cut))
    verdict = compose([Verdict.of([]), *_found(zones, cut, keep)])
    broken = {each.object for each in verdict.findings}
    twice = names_in(zones.filter(F.col("tag") == "twice"))
    return verdict, [*odd, *(name for name in twice if name not in broken)]


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
