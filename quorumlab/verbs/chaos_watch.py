"""`quorumlab chaos run --watch spark`: what is certain of a run is told while it goes on.

The verdict of the run is still that on its whole history: see `spark.streaming` for what can be
known before.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jepsen_like.checkers.online.run import why_refused
from quorumlab.arguments import Failed, UsageError
from spark.session import Settings, SparkUnavailable, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["refuse_unwatchable", "watched"]

_SETTINGS = Settings(master="local[2]", driver_mb=1024)
_SECONDS = 5.0  # between two lines of how far it is


def refuse_unwatchable(workload: str) -> None:
    if why := why_refused(workload):
        raise UsageError(f"--watch spark: {why}")


@contextmanager
def watched(history: Path, tell: Callable[[str], None]) -> Iterator[None]:
    """Spark is there before the run begins, and has seen all of the history when this ends.

    Raises `Failed` if there is no Spark. A watch that fails later is begun again at the end, and
    stops no run.
    """
    try:
        with session(_SETTINGS) as spark, tempfile.TemporaryDirectory() as checkpoint:
            telling = _Telling(tell)
            query = _begun(spark, history, checkpoint, telling)
            try:
                yield
                if _why_not_finished(query) is not None:  # it goes on where it was
                    query = _begun(spark, history, checkpoint, telling)
                    if why := _why_not_finished(query):
                        tell(f"watch        gave up: {why}")
            finally:
                query.stop()
    except SparkUnavailable as error:
        raise Failed(f"--watch spark: {error}") from error


def _begun(
    spark: "SparkSession", history: Path, checkpoint: str, telling: "_Telling"
) -> "StreamingQuery":
    from spark.streaming import growing_files, watch

    spark.conf.set("spark.sql.shuffle.partitions", "1")  # there is one run
    verdicts = watch(growing_files(spark, str(history.absolute())))
    writer = verdicts.writeStream.foreachBatch(telling).trigger(processingTime="1 second")
    return writer.option("checkpointLocation", checkpoint).start()


def _why_not_finished(query: "StreamingQuery") -> str | None:
    from pyspark.errors import PySparkException

    try:
        query.processAllAvailable()
    except PySparkException as error:
        return (str(error).strip().splitlines() or [type(error).__name__])[0]
    return None


class _Telling:
    """Told of each batch: a line for what is certain, and now and then one for how far it is."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._next = 0.0

    def __call__(self, verdicts: Any, _: int) -> None:
        for row in verdicts.collect():
            name = "the run" if row.object is None else row.object
            if row.rule is not None:
                self._tell(f"watch        VIOLATED {row.rule} of {name}: {row.detail}")
            elif row.counts is None:
                self._tell(f"watch        undecided: {name}: {row.reason}")
            elif time.monotonic() >= self._next:
                self._next = time.monotonic() + _SECONDS
                counts = row.counts
                self._tell(
                    f"watch        {row.outcome} up to line {row.upto}: {counts['operations']:,} "
                    f"operations on {counts['objects']} objects"
                )
