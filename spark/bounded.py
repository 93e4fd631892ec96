"""A job on Spark that may take so long, and no longer; and what is known of it meanwhile."""

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["OURS", "NotInTime", "bounded", "how_it_ended"]

# The virtual machines that we have started, which we may end.
OURS: "WeakKeyDictionary[SparkSession, subprocess.Popen[bytes]]" = WeakKeyDictionary()
Result = TypeVar("Result")
_LOOK_SECONDS = 0.5
_OUT_OF_MEMORY = 3  # the exit code that -XX:+ExitOnOutOfMemoryError has


class NotInTime(Exception):
    """The job was given up."""


def bounded(
    spark: "SparkSession",
    seconds: float,
    job: Callable[[], Result],
    progress: Callable[[float], None] = lambda share: None,
) -> Result:
    """What `job` returns or raises; `NotInTime` once it has taken too long.

    `progress` is told again and again which share is done of what Spark works on.

    It runs in a thread of its own: a virtual machine that is out of memory answers nothing, not
    even that the job shall be cancelled. Then the machine is ended, if it is ours.
    """
    results: list[Result] = []
    errors: list[BaseException] = []
    tag = f"quorumlab-{uuid4().hex}"

    def run() -> None:
        try:
            spark.addTag(tag)
            results.append(job())
        except BaseException as error:  # noqa: BLE001 - it is raised again, by the caller
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    deadline = time.monotonic() + seconds
    with _share_of(spark) as share:
        try:
            while thread.is_alive() and time.monotonic() < deadline:
                thread.join(min(_LOOK_SECONDS, max(0.0, deadline - time.monotonic())))
                progress(share())
        except BaseException:  # Ctrl-C ends the virtual machine too: nothing else can be told it
            _give_up(spark, tag)
            raise
    if errors:
        raise errors[0]
    if results:
        return results[0]
    _give_up(spark, tag)
    raise NotInTime(f"not done within {seconds:g} s")


def _give_up(spark: "SparkSession", tag: str) -> None:
    """End the virtual machine if it is ours; else what has this tag."""
    process = OURS.get(spark)
    if process is None:
        spark.interruptTag(tag)
    else:
        process.kill()


def how_it_ended(spark: "SparkSession") -> str | None:
    """How our virtual machine ended, if it was not asked to."""
    process = OURS.get(spark)
    if process is None:
        return None
    try:
        code = process.wait(1)
    except subprocess.TimeoutExpired:
        return None
    if code == _OUT_OF_MEMORY:
        return "was out of memory"
    return f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"


@contextmanager
def _share_of(spark: "SparkSession") -> Iterator[Callable[[], float]]:
    """Which share is done of what it works on."""
    if not _is_remote(spark):
        yield lambda: _share_done(spark)
        return
    shares = [0.0]

    def heard(stages: Any, **_: Any) -> None:
        total = sum(stage.num_tasks for stage in stages)
        shares[0] = sum(stage.num_completed_tasks for stage in stages) / total if total else 0.0

    handler: Any = heard  # its type is one of Spark Connect alone
    spark.registerProgressHandler(handler)
    try:
        yield lambda: shares[0]
    finally:
        spark.removeProgressHandler(handler)


def _is_remote(spark: "SparkSession") -> bool:
    return ".connect." in type(spark).__module__


def _share_done(spark: "SparkSession") -> float:
    from py4j.protocol import Py4JError

    try:
        tracker = spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    except (Py4JError, OSError):
        return 0.0  # it ends just now, or is gone
    total = sum(stage.numTasks for stage in stages if stage)
    return sum(stage.numCompletedTasks for stage in stages if stage) / total if total else 0.0
