"""Tables of our own, judged on Spark: what `quorumlab check` does with them.

    table -> plan -> objects as a whole, large ones in pieces -> rows of verdicts -> one verdict

The workers read groups of rows themselves, which is several times as fast as rows that Spark has
read: they need not pass from its virtual machine to Python. What follows is that of `library`.
"""

import json
import re
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyspark
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jepsen_like.checkers.judges import shows_nothing
from jepsen_like.checkers.verdict import Verdict
from spark.bounded import NotInTime, bounded, how_it_ended
from spark.distributed import Pieces, judged_in_pieces
from spark.distributed_queues import queues_in_pieces
from spark.distributed_registers import registers_in_pieces
from spark.distributed_transactions import transactions_in_pieces
from spark.distributed_values import sets_in_pieces, total_queues_in_pieces
from spark.judging import Judging, Limits
from spark.kept import kept
from spark.library import believed, told_of
from spark.plan import Large, Plan, Thresholds, plan
from spark.rows import WHOLE
from spark.schema import SCHEMA, ddl_of
from spark.session import Settings
from spark.shipping import ship
from spark.summary import summed
from spark.table_files import (
    Stretch,
    SummedUp,
    damaged,
    is_intact,
    read,
    shared_out,
    stretches,
    summed_up,
)
from spark.verdict_rows import TOLD, Part, VerdictRow, batch_of, rows_of

__all__ = ["UnreadableTable", "check", "judged_as_planned", "reason_of", "tasks_for", "within"]

_TASKS_MIN, _TASKS_MAX = 8, 200  # whatever there is to do
_TASK_BYTES = 16 << 20
_TASK_ROWS = 100_000
_PYTHON = ".".join(map(str, sys.version_info[:2]))
_MISFITS = {  # what Spark says, and what it means
    "[PYTHON_VERSION_MISMATCH]": f"the workers do not run Python {_PYTHON}, as this process does: "
    "have PYSPARK_PYTHON name one that does, on each of them",
    "InvalidClassException": f"the workers do not run Spark {pyspark.__version__}, as this process "
    "does: install the pyspark of their version",
}


class UnreadableTable(Exception):
    """A worker does not see it; the message says which, and what to do."""


def check(
    spark: SparkSession,
    paths: Sequence[Path],
    settings: Settings,
    *,
    thresholds: Thresholds | None = None,
    said: Callable[[Plan], None] = lambda plan: None,
    progress: Callable[[float], None] = lambda share: None,
    verdicts: str | None = None,
) -> Verdict:
    """The verdict on the histories in these files. `said` is told the plan first, and `progress`,
    again and again, which share is done of the stages that Spark works on.

    Undecided if it takes longer than the settings allow. `verdicts` is where the table of them is
    written, as Parquet. Raises `MalformedHistory` for a table that is damaged, `UnreadableTable`
    where workers do not see it, and `OutputExists`.
    """
    bounds = thresholds or Thresholds()

    def job() -> Verdict:
        ship(spark)
        _look_for_damage(spark, paths)
        table = read_table(spark, paths)
        return judged_as_planned(
            table, partial(_whole, spark, paths), settings, bounds, said=said, verdicts=verdicts
        )

    return within(spark, settings, job, progress)


def judged_as_planned(
    table: DataFrame,
    whole: Callable[[Plan, Limits], DataFrame],
    settings: Settings,
    bounds: Thresholds,
    *,
    said: Callable[[Plan], None],
    verdicts: str | None,
) -> Verdict:
    """`whole` tells of all objects but those that go in pieces."""
    parts = plan(table, bounds)
    said(parts)
    limits = Limits(mb=settings.worker_mb, steps=settings.search_steps, rows=bounds.batch)
    told = whole(parts, limits)
    if parts.distributed:
        told = told.union(_in_pieces(table, parts, bounds, limits))
    with_names = parts.objects <= bounds.names
    if not parts.runs:
        return shows_nothing()
    with kept(believed(told), verdicts) as rows:
        return summed(rows, single_run=parts.runs == 1, with_names=with_names)


def within(
    spark: SparkSession,
    settings: Settings,
    job: Callable[[], Verdict],
    progress: Callable[[float], None],
) -> Verdict:
    """What the job says; undecided if it takes too long, or Spark gives up."""
    try:
        return bounded(spark, settings.seconds, job, progress)
    except NotInTime as late:
        return Verdict.undecided(str(late))
    except (PySparkException, Py4JError, OSError) as error:
        return Verdict.undecided(reason_of(error, how_it_ended(spark), settings))


def reason_of(error: Exception, ended: str | None, settings: Settings) -> str:
    """Finds the line that says what happened, in a traceback from a worker through Java."""
    told = str(error)
    if re.search(r"\b(Arrow)?MemoryError\b", told):
        return f"a worker would have needed more than {settings.worker_mb} MB"
    for mark, misfit in _MISFITS.items():
        if mark in told:
            return misfit
    if ended is not None:
        return f"Spark's driver, which may take {settings.driver_mb} MB, {ended}"
    lines = [line for line in told.splitlines() if line.strip()] or [type(error).__name__]
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception): ", line)]
    return f"Spark gave up: {(raised or lines)[0].strip():.300}"


# --- what the workers do ----------------------------------------------------------------------


def _look_for_damage(spark: SparkSession, paths: Sequence[Path]) -> None:
    """Before anything is read that is judged: every byte is looked at, by the workers."""
    parts = [part for path in paths for part in summed_up(path)]
    frame = spark.createDataFrame(parts, "path string, begin bigint, size bigint, crc bigint")
    spread = frame.repartition(_tasks(len(parts), sum(part.size for part in parts) // _TASK_BYTES))
    for part, why in spread.mapInArrow(_damaged, "path string, why string").collect():
        raise UnreadableTable(why) if why else damaged(part)


def _tasks(parts: int, wanted: int) -> int:
    """A part is not cut."""
    return max(1, min(parts, max(_TASKS_MIN, wanted), _TASKS_MAX))


def tasks_for(parts: int, rows: int) -> int:
    return _tasks(parts, rows // _TASK_ROWS)


def _damaged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        troubles = (_trouble(SummedUp(**row)) for row in batch.to_pylist())
        found = [trouble for trouble in troubles if trouble is not None]
        columns = zip(*found, strict=True) if found else ((), ())
        yield pa.RecordBatch.from_arrays(
            [pa.array(column, pa.string()) for column in columns], names=["path", "why"]
        )


def _trouble(part: SummedUp) -> tuple[str, str | None] | None:
    """The file that is damaged, or why it cannot be read."""
    try:
        return None if is_intact(part) else (part.path, None)
    except OSError as error:
        return part.path, (
            f"the worker on {socket.gethostname()} cannot read {part.path} ({error.strerror}): "
            "every machine of the cluster must see the histories under the same path, in a "
            "directory that all of them share; or put them where all of them can read, and name "
            "them as Spark does (s3a://…); or judge here, without --master"
        )


def read_table(spark: SparkSession, paths: Sequence[Path]) -> DataFrame:
    return spark.read.schema(ddl_of(SCHEMA)).parquet(*(path.absolute().as_uri() for path in paths))


def _whole(spark: SparkSession, paths: Sequence[Path], parts: Plan, limits: Limits) -> DataFrame:
    apart = [large.name for large in parts.distributed]
    found = stretches(paths, apart)
    count = tasks_for(len(found), sum(each.rows for each in found))
    tasks = shared_out(found, count)
    rows = [
        (number, each.path, list(each.groups), each.rows)
        for number, mine in enumerate(tasks)
        for each in mine
    ]
    frame = spark.createDataFrame(rows, "task int, path string, groups array<int>, rows bigint")
    spread = frame.repartitionByRange(max(1, len(tasks)), "task")
    reading = _Reading(judging=Judging(limits=limits), apart=apart)
    return spread.mapInArrow(reading.told, ddl_of(TOLD))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """Each worker reads what it judges itself."""

    judging: Judging
    apart: Sequence[str]

    def told(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        mine = (
            Stretch(path=row["path"], groups=row["groups"], rows=row["rows"])
            for batch in batches
            for row in batch.to_pylist()
        )
        return self.judging.told(read(mine, self.apart))


def _in_pieces(table: DataFrame, parts: Plan, bounds: Thresholds, limits: Limits) -> DataFrame:
    rows: list[VerdictRow] = []
    told = table.sparkSession.createDataFrame([], ddl_of(TOLD))
    for alike in parts.in_pieces():
        names = [large.name for large in alike]
        mine = table.filter(F.concat_ws("\t", "run", "object").isin(names))
        size = max(parts.rows, sum(large.size for large in alike))
        for part in _found(mine, alike, -(-size // bounds.piece), limits):
            rows += rows_of(part)
        rows += map(_shown, alike)
        if any(large.object == WHOLE for large in alike):  # what is no operation of its own
            others = mine.filter(~F.col("what").isin("access", "operation"))
            told = told.union(told_of(others, limits))
    found = [
        {**row, "counts": None if row["counts"] is None else dict(row["counts"])}
        for row in batch_of(rows).to_pylist()
    ]
    return told.union(table.sparkSession.createDataFrame(found, ddl_of(TOLD)))


def _found(mine: DataFrame, alike: Sequence[Large], count: int, limits: Limits) -> Iterator[Part]:
    first = alike[0]
    cut = Pieces(count=count, mb=limits.mb, is_idempotent=first.is_idempotent)
    if first.way == "sets":
        of_runs = sets_in_pieces(mine, cut, limits.budget)
    elif first.way == "total queues":
        of_runs = total_queues_in_pieces(mine, cut)
    elif first.way == "transactions":
        of_runs = transactions_in_pieces(mine, first.workload, first.isolation, cut)
    else:
        verdict = _keyed(mine, alike, cut, limits)
        yield Part(first.run, first.workload, verdict, is_of_many=True)
        return
    yield from (Part(run, first.workload, verdict) for run, verdict in of_runs.items())


def _keyed(mine: DataFrame, alike: Sequence[Large], cut: Pieces, limits: Limits) -> Verdict:
    first, names = alike[0], [large.name for large in alike]
    match first.way:
        case "queues":
            return queues_in_pieces(mine, names, cut)
        case "registers":
            begins = None if first.initial is None else json.loads(first.initial)
            return registers_in_pieces(mine, names, cut, limits.budget, begins)
        case _:
            return judged_in_pieces(mine, names, cut)


def _shown(large: Large) -> VerdictRow:
    reason = shows_nothing().reason
    return VerdictRow(large.run, large.workload, reason=reason, shows=large.shows)
