"""Histories judged on Spark: the table is read by the workers, and only verdicts come back.

    table -> plan -> packed, gathered, distributed -> verdicts -> one verdict

See `plan` for which object goes which way. The same pure checkers judge everywhere.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jepsen_like.history import MalformedHistory
from jepsen_like.verdict import Verdict
from spark.batches import RESULT, judging
from spark.distributed import Pieces, judged_in_pieces
from spark.judging import Bounds
from spark.plan import Plan, Thresholds, plan
from spark.schema import SCHEMA, struct_of
from spark.session import NotInTime, Settings, bounded
from spark.verdicts import decoded, summed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["check", "read_table"]

_SEARCH_SHARE = 0.8  # of the time of the job at most, so that it ends in time


def check(
    spark: "SparkSession",
    paths: Sequence[Path],
    settings: Settings,
    *,
    thresholds: Thresholds | None = None,
    said: Callable[[Plan], None] = lambda plan: None,
) -> Verdict:
    """The verdict on the histories in these files. `said` is told the plan first.

    Undecided if it takes longer than the settings allow. Raises `MalformedHistory`.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    limits = thresholds or Thresholds()
    seconds = min(settings.search_seconds, _SEARCH_SHARE * settings.seconds)
    bounds = Bounds(until=time.time() + seconds, mb=settings.worker_mb)

    def job() -> Verdict:
        table = read_table(spark, paths)
        parts = plan(table, limits)
        said(parts)
        return _judged(table, parts, bounds, limits)

    try:
        return bounded(spark, settings.seconds, job)
    except NotInTime as late:
        return Verdict.undecided(str(late))
    except (PySparkException, Py4JError, OSError) as error:
        return Verdict.undecided(_reason(error, settings))


def _reason(error: Exception, settings: Settings) -> str:
    from pyspark.errors import PySparkException

    if "MemoryError" in str(error):
        return f"a worker would have needed more than {settings.worker_mb} MB"
    if isinstance(error, PySparkException):
        return f"Spark gave up: {str(error).splitlines()[0]:.300}"
    # Nobody answers: the virtual machine has ended itself.
    return f"Spark is gone; its driver may have needed more than {settings.driver_mb} MB"


def read_table(spark: "SparkSession", paths: Sequence[Path]) -> "DataFrame":
    return spark.read.schema(struct_of(SCHEMA)).parquet(
        *(path.absolute().as_uri() for path in paths)
    )


def _judged(table: "DataFrame", parts: Plan, bounds: Bounds, limits: Thresholds) -> Verdict:
    judge = judging(bounds, rows=limits.batch, with_names=parts.objects <= limits.names)
    large = [*parts.gathered, *parts.distributed]
    results = (table.filter(~_is_one_of(large)) if large else table).mapInArrow(judge, RESULT)
    if parts.gathered:
        gathered = table.filter(_is_one_of(parts.gathered)).repartition("run", "object")
        in_order = gathered.sortWithinPartitions("run", "object", "call", "step")
        results = results.union(in_order.mapInArrow(judge, RESULT))
    verdicts = []
    for row in results.collect():
        if row["error"] is not None:
            raise MalformedHistory(row["error"])
        verdicts.append(decoded(row["verdict"]))
    for is_idempotent, names in parts.in_pieces():
        cut = Pieces(
            count=-(-parts.rows // limits.piece), mb=bounds.mb, is_idempotent=is_idempotent
        )
        verdicts.append(judged_in_pieces(table.filter(_is_one_of(names)), names, cut))
    return summed(verdicts, single_run=parts.runs == 1)


def _is_one_of(names: Sequence[str]) -> "Column":
    from pyspark.sql import functions as F

    return F.concat_ws("\t", "run", "object").isin(list(names))
