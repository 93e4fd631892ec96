"""Whether Spark says of many histories at once what is said of each of them without it."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from jepsen_like.histories.history import History
from spark.checks import check
from spark.plan import Thresholds
from spark.session import Settings
from tests.agreement.agreeing import history_of
from tests.agreement.models import MODELS
from tests.spark.agreement import broken, judged_alone, same
from tests.spark.histories import random_history, random_log
from tests.spark.tables import write_table

__all__ = ["IN_PIECES", "ON_SPARK", "differing"]

BATCH = 200  # runs judged at once: a verdict names so many findings, and no more
IN_PIECES = Thresholds(one_worker=0, piece=1_500)

# What is compared: a history of each number, whether each log is judged in pieces.
ON_SPARK: Mapping[str, tuple[Callable[[int], History], bool]] = {
    **{name: (partial(history_of, name, agreed), False) for name, agreed in MODELS.items()},
    "Kafka's anomalies, and the rest": (random_history, False),
    "Kafka's anomalies, in pieces": (random_log, True),
}


def differing(
    spark: SparkSession, settings: Settings, name: str, numbers: Sequence[int]
) -> list[str]:
    """The names of what was judged otherwise; a name is a history's, or that of its object."""
    make, is_in_pieces = ON_SPARK[name]
    found = []
    for begin in range(0, len(numbers), BATCH):
        histories = {f"{number}": make(number) for number in numbers[begin : begin + BATCH]}
        found += _differing(spark, settings, histories, is_in_pieces=is_in_pieces)
    return found


def _differing(
    spark: SparkSession,
    settings: Settings,
    histories: Mapping[str, History],
    *,
    is_in_pieces: bool,
) -> list[str]:
    expected = judged_alone(histories)
    with tempfile.TemporaryDirectory() as directory:
        table = Path(directory) / "table"
        write_table(histories, table)
        thresholds = IN_PIECES if is_in_pieces else None
        verdict = check(spark, [table], settings, thresholds=thresholds)
    told = broken if is_in_pieces else same
    if told(verdict) == told(expected):
        return []
    objects = set(verdict.objects.items()) ^ set(expected.objects.items())
    findings = {each.object for each in set(verdict.findings) ^ set(expected.findings)}
    return sorted({name for name, _ in objects} | findings) or ["counts"]
