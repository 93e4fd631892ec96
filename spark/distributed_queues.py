"""Queues too large for one worker, judged in pieces on all of them: how the rows move.

    table --by value--> judged, and handed on: when each value came and left
        --by moment--> what left too late; what had to leave, and was not seen to
            --by object, with dequeues of unknown end--> what nobody can have taken in time
        --by moment, with dequeues that found nothing--> which of them were wrong

Only enqueues and dequeues can be judged so. Where a value was enqueued twice, or where it is not
known what a dequeue of unknown end took and a queue may have been found empty wrongly, a search
would have to decide: the queue is undecided, unless something else is wrong.
"""

from collections.abc import Iterator, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jepsen_like.checkers.operations import NEVER
from jepsen_like.checkers.verdict import Verdict
from spark import queue_pieces, queue_spans
from spark.distributed import Pieces, decided, found_in, mapped, names_in, plain
from spark.kept import Keep, keeping
from spark.pieces import Mapped
from spark.queue_pieces import carried_back
from spark.queue_rows import ACCESSES, QUEUED
from spark.queue_spans import carried_spans
from spark.schema import NIL

__all__ = ["queues_in_pieces"]

_ODD = "too large for one worker, and not all of its operations are plain enqueues and dequeues"
_TWICE = "too large for one worker, and a value was enqueued twice"
_TAKEN = "too large for one worker, and what dequeues of unknown end took is not known"


def queues_in_pieces(table: DataFrame, names: Sequence[str], cut: Pieces) -> Verdict:
    """`table` has all rows of these queues, and no others; `names` have their runs."""
    with keeping() as keep:
        accesses, odd = plain(table, "enqueue", "dequeue")
        counted = {row["f"]: row["count"] for row in accesses.groupBy("f").count().collect()}
        counts = {f"{f}s": counted.get(f, 0) for f in ("enqueue", "dequeue")}
        doubts = dict.fromkeys(odd, _ODD)
        verdicts = list(_Queues(accesses, cut, keep).verdicts(doubts))
        return decided(names, counts, verdicts, doubts)


class _Queues:
    def __init__(self, accesses: DataFrame, cut: Pieces, keep: Keep) -> None:
        self._accesses, self._cut, self._keep = accesses.select(*ACCESSES), cut, keep

    def verdicts(self, doubts: dict[str, str]) -> Iterator[Verdict]:
        """Adds what is in doubt."""
        told = self._keep(self._by_value())
        yield from found_in(told)
        doubts.update(dict.fromkeys(names_in(told.filter(F.col("tag") == "twice")), _TWICE))
        values = told.filter(F.col("tag") == "value")
        order = self._keep(self._by_deadline(values))
        yield from found_in(order)
        unknown = self._asking(_is_unknown(), "unknown", "call")
        due = order.filter(F.col("tag") == "due")
        matched = due.union(unknown).repartition(self._cut.count, "run", "object")
        matched = self._keep(self._mapped(matched, queue_pieces.matched(self._cut.mb)))
        yield from found_in(matched)
        empty = self._asking(_is_empty(), "empty", "ret")
        if empty.isEmpty():
            return
        unsure = names_in(unknown)
        is_unsure = F.concat_ws("\t", "run", "object").isin(unsure)
        sure = self._covered(values.filter((F.col("dequeue") >= 0) | ~is_unsure), empty)
        yield from found_in(sure)
        if unsure:
            perhaps = self._covered(_as_taken(values, matched), empty)
            wrong = names_in(perhaps.filter(F.col("tag") == "wrong"))
            doubts.update({name: _TAKEN for name in wrong if name in unsure})

    def _mapped(self, frame: DataFrame, judge: Mapped) -> DataFrame:
        return mapped(frame, judge, QUEUED)

    def _by_value(self) -> DataFrame:
        telling = self._accesses.filter(~_is_empty() & ((F.col("f") == "enqueue") | _is_ok()))
        moved = telling.repartition(self._cut.count, "run", "object", "number", "value")
        return self._mapped(moved, queue_pieces.by_value(self._cut.mb))

    def _by_deadline(self, values: DataFrame) -> DataFrame:
        moments = F.explode(F.array("began", "came"))
        events = values.withColumn("moment", moments).filter(F.col("moment") < NEVER)
        pieces = self._in_order(events)
        begins = F.when(F.col("moment") == F.col("began"), F.col("gone"))
        earliest = F.min_by(F.struct(*QUEUED.names), begins).alias("earliest")
        found = pieces.groupBy("piece", "run", "object").agg(earliest).collect()
        carried = carried_back([each.asDict(recursive=True) for each in found])
        return self._mapped(pieces, queue_pieces.by_deadline(carried, self._cut.mb))

    def _covered(self, values: DataFrame, empty: DataFrame) -> DataFrame:
        spans = values.filter(F.col("came") < F.col("left")).withColumn("moment", F.col("came"))
        pieces = self._in_order(spans.union(empty))
        found = self._mapped(pieces, queue_spans.ends(self._cut.mb)).collect()
        carried = carried_spans([each.asDict() for each in found], self._cut.count)
        return self._keep(self._mapped(pieces, queue_spans.covered(carried, self._cut.mb)))

    def _in_order(self, frame: DataFrame) -> DataFrame:
        ranged = frame.repartitionByRange(self._cut.count, "run", "object", "moment")
        return self._keep(ranged.withColumn("piece", F.spark_partition_id().cast("long")))

    def _asking(self, wanted: Column, tag: str, moment: str) -> DataFrame:
        """Dequeues of which no value is known, as rows that are handed on."""
        dequeues = self._accesses.filter((F.col("f") == "dequeue") & wanted)
        return self._mapped(dequeues, queue_spans.asking(tag, moment, self._cut.mb))


def _is_ok() -> Column:
    return F.col("kind") == "ok"


def _is_unknown() -> Column:
    return F.col("kind") == "info"


def _is_empty() -> Column:
    is_nil = F.col("number").isNull() & (F.coalesce("value", F.lit(NIL)) == F.lit(NIL))
    return (F.col("f") == "dequeue") & _is_ok() & is_nil


def _as_taken(values: DataFrame, matched: DataFrame) -> DataFrame:
    """With what dequeues of unknown end took in time gone then."""
    took = matched.filter(F.col("tag") == "taken")
    took = took.select("run", "object", "enqueue", F.col("left").alias("at"))
    both = values.join(took, ["run", "object", "enqueue"], "left")
    return both.withColumn("left", F.coalesce("at", "left")).select(*QUEUED.names)
