"""Logs too large for one worker, judged in pieces on all of them: how the rows move.

    table --by value--> judged, and handed on:
        unread sends          --> with the highest reads: losses
        what was seen where   --by offset--> in order, with what is carried on: judged; gaps
        located sends, reads  --by session--> row after row: judged; jumps
                                             jumps that are no gaps: skips

Only what was found, the whole readings and what is carried from piece to piece come to the driver.
Rules are in `jepsen_like.checkers`; pieces, and what reaches over their borders, in `pieces`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jepsen_like.checkers.kafka_log import skips
from jepsen_like.checkers.verdict import Verdict, compose
from spark import pieces
from spark.columns import log_columns
from spark.kept import Keep, keeping
from spark.piece_rows import COLUMNS, HANDED_ON, INPUT, jumped
from spark.pieces import at_borders, carried_on, jumps_in, verdicts_in
from spark.schema import ddl_of
from spark.verdicts import decoded, named

__all__ = ["Pieces", "decided", "found_in", "judged_in_pieces", "mapped", "names_in", "plain"]

_SKIPS_SHOWN = 300
_FEW = 100_000  # unread sends, that one worker judges at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    count: int
    mb: int  # that a worker may take
    is_idempotent: bool


def judged_in_pieces(table: DataFrame, names: Sequence[str], cut: Pieces) -> Verdict:
    """`table` has all rows of these logs, and no others; `names` have their runs."""
    with keeping() as keep:
        return compose([Verdict.of([], objects=names), *_verdicts(table, cut, keep)])


def _verdicts(table: DataFrame, cut: Pieces, keep: Keep) -> Iterator[Verdict]:
    steps = table.select(*COLUMNS).filter(F.col("what").isin("send", "read", "end"))
    is_reading = (F.col("what") == "end") & F.col("start").isNotNull()
    readings = _collected(steps.filter(is_reading), INPUT)
    yield Verdict.of([], {"readings to the end": len(readings)})

    place = F.coalesce("number", F.when(F.col("what") == "end", F.col("offset")))
    moved = steps.filter(~is_reading).repartition(cut.count, "run", "object", place, "value")
    judge = pieces.by_value(readings, cut.mb, is_idempotent=cut.is_idempotent)
    values = keep(mapped(moved, judge))
    yield from found_in(values)
    yield from _losses(values, readings, cut)

    seen = keep(_ranged(values.filter(F.col("tag") == "seen"), cut, "offset", "invoked"))
    gaps = keep(mapped(seen, pieces.by_offset(carried_on(_ends_of_offsets(seen)), cut.mb)))
    yield from found_in(gaps)

    sessions = keep(_sessions(steps, values, cut))
    walked = keep(mapped(sessions, pieces.walk(cut.mb)))
    yield from found_in(walked)
    borders = at_borders(_ends_of_sessions(sessions))
    yield from map(decoded, verdicts_in(borders))
    yield _skipped(walked, borders, gaps)


def _losses(values: DataFrame, readings: pa.Table, cut: Pieces) -> Iterator[Verdict]:
    highest = _collected(values.filter(F.col("tag") == "highest").select(*COLUMNS), INPUT)
    unread = values.filter(F.col("tag") == "unread").select(*COLUMNS)
    if unread.count() <= _FEW:
        unread = unread.coalesce(1)
    guests = pa.concat_tables([highest, readings])
    yield from found_in(mapped(unread, pieces.losses(guests, cut.mb)))


def _sessions(steps: DataFrame, values: DataFrame, cut: Pieces) -> DataFrame:
    """The reads of each process, and its sends to known offsets, one stretch after the other."""
    reads = steps.filter((F.col("what") == "read") & F.col("session").isNotNull())
    sends = steps.filter((F.col("what") == "send") & F.col("offset").isNotNull())
    located = values.filter(F.col("tag") == "located").select(*COLUMNS)
    walks = reads.unionByName(sends.filter(F.col("kind") != "fail")).unionByName(located)
    of_process = F.concat(F.lit("sends of "), "process")
    stretch = F.when(F.col("what") == "read", F.col("session").cast("string")).otherwise(of_process)
    return _ranged(walks.withColumn("stretch", stretch), cut, "stretch", "call", "step")


def _ends_of_sessions(sessions: DataFrame) -> list[dict[str, Any]]:
    """The first and the last row of each piece."""
    order, row = F.struct("run", "object", "stretch", "call", "step"), F.struct(*COLUMNS)
    ends = sessions.groupBy("piece").agg(
        F.min_by(row, order).alias("first"), F.max_by(row, order).alias("last")
    )
    return [each.asDict(recursive=True) for each in ends.collect()]


def _ends_of_offsets(seen: DataFrame) -> list[dict[str, Any]]:
    """The row with the latest bound, and the read of the last offset, of each piece and log."""
    row = F.struct(*HANDED_ON.names)
    ends = seen.groupBy("piece", "run", "object").agg(
        F.max_by(row, "lower").alias("latest"),
        F.max_by(row, F.when(F.col("what") == "read", F.col("offset"))).alias("last"),
    )
    return [each.asDict(recursive=True) for each in ends.collect()]


def _skipped(walked: DataFrame, borders: Iterable[pa.Table], gaps: DataFrame) -> Verdict:
    """Jumps over an offset that somebody saw: those that are no gaps."""
    jumps = walked.filter(F.col("tag") == "jump")
    if more := jumps_in(borders):
        jumps = jumps.union(walked.sparkSession.createDataFrame(more, walked.schema))
    empty = gaps.filter(F.col("tag") == "gap").select("run", "object", "offset", "next")
    skipped = jumps.join(empty, ["run", "object", "offset", "next"], "left_anti")
    found = _collected(skipped.select(*HANDED_ON.names).limit(_SKIPS_SHOWN), HANDED_ON)
    return Verdict.of(skips(log_columns(jumped(found))))


def _ranged(frame: DataFrame, cut: Pieces, *order: str) -> DataFrame:
    """Sorted, and cut into pieces that follow one another; `piece` is the number of each."""
    columns = ("run", "object", *order)
    by_range = columns if "call" in order else columns[:3]  # nothing at one offset is cut apart
    ranged = frame.repartitionByRange(cut.count, *by_range).sortWithinPartitions(*columns)
    return ranged.withColumn("piece", F.spark_partition_id().cast("long"))


def mapped(frame: DataFrame, judge: pieces.Mapped, schema: pa.Schema = HANDED_ON) -> DataFrame:
    return frame.mapInArrow(judge, ddl_of(schema))


def found_in(frame: DataFrame) -> Iterator[Verdict]:
    told = frame.filter(F.col("tag") == "verdict").select("verdict").collect()
    return (decoded(row["verdict"]) for row in told)


def _collected(frame: DataFrame, schema: pa.Schema) -> pa.Table:
    return frame.toArrow().cast(schema)


def names_in(rows: DataFrame) -> list[str]:
    """The objects of these rows, with their runs."""
    return [named(*row) for row in rows.select("run", "object").distinct().collect()]


def plain(table: DataFrame, *fs: str) -> tuple[DataFrame, list[str]]:
    """The rows of objects that have only accesses of these kinds, and the names of the others:
    of those no row can be judged, since what the others do is not looked at."""
    is_plain = (F.col("what") == "access") & F.col("f").isin(*fs)
    odd = names_in(table.filter(~is_plain))
    return table.filter(~F.concat_ws("\t", "run", "object").isin(odd)), odd


def decided(
    names: Sequence[str],
    counts: Mapping[str, int],
    verdicts: Iterable[Verdict],
    doubts: Mapping[str, str],
) -> Verdict:
    """What all pieces of these objects say. An object that is violated is not in doubt as well."""
    found = compose([Verdict.of([], counts), *verdicts])
    broken = {each.object for each in found.findings}
    left = {name: why for name, why in sorted(doubts.items()) if name not in broken}
    return Verdict.of(found.findings, found.counts, objects=names, doubts=left)
