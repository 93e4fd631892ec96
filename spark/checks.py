"""Histories judged on Spark: the table is read by the workers, and only verdicts come back.

    table -> plan -> objects as a whole, logs in pieces -> verdicts -> one verdict

See `plan` for which object goes which way. The same pure checkers judge everywhere.
"""

import re
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jepsen_like.checkers.judges import shows_nothing
from jepsen_like.checkers.verdict import Verdict
from jepsen_like.histories.history import MalformedHistory
from spark.distributed import Pieces, judged_in_pieces
from spark.judging import Bounds, Judging
from spark.plan import Plan, Thresholds, plan
from spark.schema import SCHEMA, struct_of
from spark.session import NotInTime, Settings, bounded, how_it_ended
from spark.table_files import Stretch, SummedUp, damaged, is_intact, read, stretches, summed_up
from spark.verdicts import decoded, of_run, summed

__all__ = ["UnreadableTable", "check", "reason_of"]


class UnreadableTable(Exception):
    """A worker does not see it; the message says which, and what to do."""


Result = tuple[str | None, str | None]  # a verdict as JSON, or why there is none
_TASKS_OF_A_CORE = 4  # so that a slow one does not keep all others waiting for long
_SILENT_NAMED = 10
_SEARCH_SHARE = 0.8  # of the time of the job at most, so that it ends in time


def check(
    spark: SparkSession,
    paths: Sequence[Path],
    settings: Settings,
    *,
    thresholds: Thresholds | None = None,
    said: Callable[[Plan], None] = lambda plan: None,
) -> Verdict:
    """The verdict on the histories in these files. `said` is told the plan first.

    Undecided if it takes longer than the settings allow. Raises `MalformedHistory`, and
    `UnreadableTable` where workers do not see a file.
    """
    limits = thresholds or Thresholds()
    seconds = min(settings.search_seconds, _SEARCH_SHARE * settings.seconds)
    bounds = Bounds(until=time.time() + seconds, mb=settings.worker_mb)

    def job() -> Verdict:
        _look_for_damage(spark, paths)
        table = read_table(spark, paths)
        parts = plan(table, limits)
        said(parts)
        judging = Judging(
            bounds=bounds, rows=limits.batch, with_names=parts.objects <= limits.names
        )
        results = _whole(spark, paths, parts, judging)
        verdicts = [*map(_verdict, results), *_in_pieces(table, parts, bounds, limits)]
        return summed([*verdicts, *_silent(parts)], single_run=parts.runs == 1)

    try:
        return bounded(spark, settings.seconds, job)
    except NotInTime as late:
        return Verdict.undecided(str(late))
    except (PySparkException, Py4JError, OSError) as error:
        return Verdict.undecided(reason_of(error, how_it_ended(spark), settings))


def reason_of(error: Exception, ended: str | None, settings: Settings) -> str:
    """Finds the line that says what happened, in a traceback from a worker through Java."""
    told = str(error)
    if re.search(r"\b(Arrow)?MemoryError\b", told):
        return f"a worker would have needed more than {settings.worker_mb} MB"
    if ended is not None:
        return f"Spark's driver, which may take {settings.driver_mb} MB, {ended}"
    lines = [line for line in told.splitlines() if line.strip()] or [type(error).__name__]
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception): ", line)]
    return f"Spark gave up: {(raised or lines)[0].strip():.300}"


def _look_for_damage(spark: SparkSession, paths: Sequence[Path]) -> None:
    """Before anything is read that is judged: every byte is looked at, by the workers."""
    parts = [part for path in paths for part in summed_up(path)]
    context = spark.sparkContext
    tasks = max(1, min(len(parts), context.defaultParallelism * _TASKS_OF_A_CORE))
    for part, why in context.parallelize(parts, tasks).map(_trouble).filter(any).collect():
        raise UnreadableTable(why) if why else damaged(part)


def _trouble(part: SummedUp) -> tuple[str, str]:
    """The file that a worker found damaged, or why it cannot be read; neither if all is well."""
    try:
        return ("", "") if is_intact(part) else (part.path, "")
    except OSError as error:
        return part.path, (
            f"the worker on {socket.gethostname()} cannot read {part.path} ({error.strerror}): "
            "every machine of the cluster must see the histories under the same path, in a "
            "directory that all of them share; or judge here, without --master"
        )


def read_table(spark: SparkSession, paths: Sequence[Path]) -> DataFrame:
    return spark.read.schema(struct_of(SCHEMA)).parquet(
        *(path.absolute().as_uri() for path in paths)
    )


def _whole(
    spark: SparkSession, paths: Sequence[Path], parts: Plan, judging: Judging
) -> list[Result]:
    """Each worker reads what it judges itself."""
    apart = list(parts.distributed)
    found = stretches(paths, apart)
    context = spark.sparkContext
    tasks = min(len(found), context.defaultParallelism * _TASKS_OF_A_CORE)

    def judge(mine: Iterable[Stretch]) -> Iterator[Result]:
        return judging.of(read(mine, apart))

    return context.parallelize(found, max(1, tasks)).mapPartitions(judge).collect()


def _in_pieces(
    table: DataFrame, parts: Plan, bounds: Bounds, limits: Thresholds
) -> Iterator[Verdict]:
    for is_idempotent, names in parts.in_pieces():
        count = -(-parts.rows // limits.piece)
        cut = Pieces(count=count, mb=bounds.mb, is_idempotent=is_idempotent)
        yield judged_in_pieces(
            table.filter(F.concat_ws("\t", "run", "object").isin(names)), names, cut
        )


def _silent(parts: Plan) -> Iterator[Verdict]:
    if not parts.runs:
        yield shows_nothing()
    for run in parts.silent[:_SILENT_NAMED]:
        yield of_run(run, shows_nothing())
    more = len(parts.silent) - _SILENT_NAMED
    if more > 0:
        yield Verdict.undecided(f"so it is in {more} more runs")


def _verdict(result: Result) -> Verdict:
    verdict, error = result
    if verdict is None:
        raise MalformedHistory(error)
    return decoded(verdict)
