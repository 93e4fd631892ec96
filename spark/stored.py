"""Histories in a store that Spark reads, judged there: `quorumlab check s3a://…` and its like.

Nothing is opened here, and no path on a worker: Spark reads, and hands over rows. `places` tells
what the names stand for.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jepsen_like.checkers.verdict import Verdict
from jepsen_like.histories.history import MalformedHistory
from spark.checks import judged_as_planned, tasks_for, within
from spark.conversion import convert, files, united
from spark.judging import Limits
from spark.kept import kept
from spark.library import WrongSchema, selected, told_of
from spark.places import CATALOG, HISTORY, home, is_directory, is_table
from spark.plan import Plan, Thresholds
from spark.session import Settings
from spark.shipping import ship

__all__ = ["NothingThere", "beside_histories", "check_stored"]


class NothingThere(Exception):
    """Spark finds no histories under this name; the message says why."""


def check_stored(
    spark: SparkSession,
    targets: Sequence[str],
    settings: Settings,
    *,
    model: str | None = None,
    thresholds: Thresholds | None = None,
    said: Callable[[Plan], None] = lambda plan: None,
    progress: Callable[[float], None] = lambda share: None,
    verdicts: str | None = None,
) -> Verdict:
    """The verdict on the histories there. All else is as of `spark.checks.check`.

    Raises `NothingThere`, `MalformedHistory` for one that is damaged, and `OutputExists`.
    """
    bounds = thresholds or Thresholds()

    def job() -> Verdict:
        ship(spark)
        table = _found(spark, targets, model)
        looked_at = nullcontext(table) if all(map(is_table, targets)) else kept(table, None)
        with looked_at as rows, _named_if_damaged():
            return judged_as_planned(
                rows, _whole_of(rows), settings, bounds, said=said, verdicts=verdicts
            )

    return within(spark, settings, job, progress)


def beside_histories(spark: SparkSession, target: str, name: str) -> Mapping[str, str]:
    """The content of the files of this name that lie beside a history.msgpack, by their paths."""
    is_deep = is_directory(target)
    if not is_deep and not target.endswith(f"/{HISTORY}"):
        return {}
    found = partial(files, spark, [target if is_deep else home(target)], is_deep=is_deep)
    with _opened(target):
        homes = {home(row.path) for row in found(HISTORY).select("path").collect()}
        told = {row.path: row.content for row in found(name).select("path", "content").collect()}
    return {
        path: content.decode(errors="replace")
        for path, content in told.items()
        if home(path) in homes
    }


def _found(spark: SparkSession, targets: Sequence[str], model: str | None) -> DataFrame:
    found = []
    for target in targets:
        with _opened(target):
            if target.startswith(CATALOG):
                found.append(selected(spark.table(target.removeprefix(CATALOG))))
                continue
            if is_directory(target) and files(spark, [target], HISTORY).select("path").isEmpty():
                raise NothingThere(f"{target}: no {HISTORY} in it or below it")
            found.append(convert(spark, [target], model))
    return united(found)


def _whole_of(rows: DataFrame) -> Callable[[Plan, Limits], DataFrame]:
    def whole(parts: Plan, limits: Limits) -> DataFrame:
        apart = [large.name for large in parts.distributed]
        mine = rows.filter(~F.concat_ws("\t", "run", "object").isin(apart)) if apart else rows
        tasks = tasks_for(parts.runs + parts.objects, parts.rows)
        return told_of(mine, replace(limits, tasks=tasks))

    return whole


@contextmanager
def _opened(target: str) -> Iterator[None]:
    try:
        yield
    except WrongSchema as error:
        raise NothingThere(f"{target}: {error}") from error
    except (PySparkException, Py4JError) as error:
        raise NothingThere(f"{target}: {_why(error)}") from error


def _why(error: Exception) -> str:
    """The line that says it, of what Java and Spark say."""
    lines = [line.strip(": ") for line in str(error).splitlines() if line.strip(": ")]
    raised = [line for line in lines if re.match(r"[\w.$]+(Exception|Error): ", line)]
    return f"{(raised or lines or [type(error).__name__])[0]:.300}"


@contextmanager
def _named_if_damaged() -> Iterator[None]:
    """What a worker says of a file comes as text."""
    try:
        yield
    except AnalysisException:
        raise
    except PySparkException as error:
        found = re.search(r"\bMalformedHistory: (.*)", str(error))
        if found is None:
            raise
        raise MalformedHistory(found[1]) from error
