"""Spark says what the checkers say without it, whichever way the objects of a history go."""

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories.history import Kind, Lines, MalformedHistory
from spark.checks import UnreadableTable, check, reason_of
from spark.parquet import Sizes, write_parquet
from spark.plan import Plan, Thresholds
from spark.session import Settings, SparkUnavailable, one_master, session
from spark.table_files import SummedUp, summed_up
from tests.jepsen_like.play import Play
from tests.spark.agreement import judged_alone, same
from tests.spark.conftest import SETTINGS
from tests.spark.histories import random_history
from tests.spark.tables import write_table

pytestmark = pytest.mark.slow

RUNS = 12


@pytest.mark.extra
def test_many_runs_are_judged_as_each_of_them_without_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    histories = {f"run-{seed}": random_history(seed) for seed in range(RUNS)}
    write_table(histories, tmp_path / "table")
    plans: list[Plan] = []
    verdict = check(
        spark,
        [tmp_path / "table"],
        SETTINGS,
        thresholds=Thresholds(batch=500),
        said=plans.append,
    )
    assert same(verdict) == same(judged_alone(histories))
    assert plans[0].runs == RUNS
    assert not plans[0].distributed


@pytest.mark.extra
def test_objects_of_several_groups_of_rows_are_judged_as_a_whole(
    spark: SparkSession, tmp_path: Path
) -> None:
    histories = {f"run-{seed}": random_history(seed) for seed in range(8)}
    for run, history in histories.items():
        path, sizes = tmp_path / run, Sizes(chunk=20, group=10)
        write_parquet(history.header, [Lines.of(history.ops)], path, run=run, sizes=sizes)
    verdict = check(
        spark,
        sorted(tmp_path.iterdir()),
        SETTINGS,
        thresholds=Thresholds(batch=1),
    )
    assert same(verdict) == same(judged_alone(histories))


@pytest.mark.extra
def test_history_that_makes_no_sense_hides_no_other(spark: SparkSession, tmp_path: Path) -> None:
    senseless, right, wrong = (Play(workload="register") for _ in range(3))
    senseless.did(0, "write", 7, 7)
    right.did(0, "write", ["k", 1], ["k", 1])
    wrong.did(0, "read", ["k", None], ["k", 2])
    histories = {"no": senseless.history, "right": right.history, "wrong": wrong.history}
    write_table(histories, tmp_path / "table")
    verdict = check(spark, [tmp_path / "table"], SETTINGS)
    assert [each.object for each in verdict.findings] == ["wrong: k"]
    assert verdict.objects == {"right: k": Outcome.VALID, "wrong: k": Outcome.VIOLATED}
    assert "no: it makes no sense: operation 0: not what a write of a" in verdict.reason


@pytest.mark.extra
def test_history_without_any_success_shows_nothing(spark: SparkSession, tmp_path: Path) -> None:
    silent, shown = Play(), Play()
    silent.invoke(0, "send", [["send", "chaos-0", 1]])
    silent.info(0)
    silent.line(Kind.OK, "node-1", "observe", {"chaos-0": [1, 1, 1, [1]]})
    silent.did(1, "enqueue", ["k", 1], ["k", 1])
    shown.read_all(0, {"chaos-0": []})
    histories = {"shown": shown.history, "silent": silent.history}
    for runs, outcome in ((["shown"], Outcome.VALID), (["shown", "silent"], Outcome.UNDECIDED)):
        write_table({run: histories[run] for run in runs}, tmp_path / "table")
        verdict = check(spark, [tmp_path / "table"], SETTINGS)
        assert verdict.outcome is outcome
    assert verdict.reason == "silent: no operation that is judged was ok, which shows nothing"


@pytest.mark.extra
def test_object_that_needs_too_much_memory_is_undecided(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Its rows alone are more than a worker may take, whatever one has in reserve."""
    play = Play()
    for number in range(48):
        play.send(0, "chaos-0", f"{number:0{1 << 20}}", number)
    write_parquet(play.history.header, [Lines.of(play.ops)], tmp_path / "table", run="run")
    verdict = check(spark, [tmp_path / "table"], replace(SETTINGS, worker_mb=32))
    assert verdict.outcome.exit_code == 5
    assert "32 MB" in verdict.reason


def one_run(tmp_path: Path) -> Path:
    write_table({"run": random_history(1)}, tmp_path / "table")
    return tmp_path / "table"


@pytest.mark.extra
def test_damaged_table_is_no_verdict(spark: SparkSession, tmp_path: Path) -> None:
    table = one_run(tmp_path)
    content = table.read_bytes()
    table.write_bytes(content[:400] + bytes([content[400] ^ 1]) + content[401:])
    with pytest.raises(MalformedHistory, match="damaged"):
        check(spark, [table], SETTINGS)


@pytest.mark.extra
def test_worker_that_does_not_see_a_table_is_named(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = one_run(tmp_path)
    (part,) = summed_up(table)
    elsewhere = [SummedUp(f"{part.path}-elsewhere", *part[1:])]
    monkeypatch.setattr("spark.checks.summed_up", lambda path: elsewhere)
    with pytest.raises(UnreadableTable, match="every machine of the cluster must see"):
        check(spark, [table], SETTINGS)


@pytest.mark.extra
def test_session_of_the_process_is_used_and_goes_on_and_no_second_one_is_started(
    spark: SparkSession,
) -> None:
    with session(Settings()) as running:
        assert running.sparkContext is spark.sparkContext
    assert spark.range(3).count() == 3
    with pytest.raises(SparkUnavailable, match="stop it first"), session(SETTINGS):
        pass


@pytest.mark.parametrize("submitted", [None, "spark://host:7077", "local[2]"])
def test_master_is_that_of_spark_submit_unless_another_one_is_named(submitted: str | None) -> None:
    default = Settings().master
    assert one_master(default, submitted) == (submitted or default)
    assert one_master("local[2]", "local[2]") == "local[2]"
    if submitted == "spark://host:7077":
        with pytest.raises(SparkUnavailable, match="leave --master out"):
            one_master("local[2]", submitted)


TRACEBACK = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "spark/table_files.py", line 47, in read
{}

\tat org.apache.spark.api.python.BasePythonRunner
"""


@pytest.mark.parametrize(
    ("error", "ended", "reason"),
    [
        ("pyarrow.lib.ArrowMemoryError: malloc failed", None, "a worker would have needed more"),
        ("MemoryError", None, "a worker would have needed more than 6144 MB"),
        ("FileNotFoundError: /x/table", None, "Spark gave up: FileNotFoundError: /x/table"),
        ("java.lang.OutOfMemoryError: heap", "was out of memory", "2048 MB, was out of memory"),
        ("[PYTHON_VERSION_MISMATCH] 3.12", None, "have PYSPARK_PYTHON name one that does"),
        ("java.io.InvalidClassException: x", None, "install the pyspark of their version"),
        ("", None, "Spark gave up: An exception was thrown"),
    ],
)
def test_why_spark_gave_up_is_told(error: str, ended: str | None, reason: str) -> None:
    assert reason in reason_of(RuntimeError(TRACEBACK.format(error)), ended, Settings())
