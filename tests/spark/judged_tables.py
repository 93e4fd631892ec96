"""What holds of `spark.judge` on any session: the tests of classic ones and of Spark Connect."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import quorumlab
import spark as our_spark
from jepsen_like.checkers.models import ILLEGAL, Model
from jepsen_like.checkers.operations import Operation
from jepsen_like.histories.history import History
from spark import Limits, findings, judge
from spark.judging import Batches
from spark.library import WrongSchema
from spark.schema import SCHEMA, ddl_of, sql_of
from spark.verdict_rows import VERDICTS
from tests.agreement.agreeing import history_of
from tests.agreement.models import MODELS
from tests.jepsen_like.play import Play
from tests.spark.agreement import judged_alone, same
from tests.spark.histories import random_history
from tests.spark.tables import write_table
from tests.spark.told import verdict_in

__all__ = ["LIMITS", "OnAnySession", "histories_of_all_models", "table"]

LIMITS = Limits(tasks=3)


def histories_of_all_models(count: int) -> dict[str, History]:
    """By the name of the model and the number, which make it again."""
    made = {
        f"{model} {number}": history_of(model, agreed, number)
        for model, agreed in MODELS.items()
        for number in range(count)
    }
    return made | {f"any {seed}": random_history(seed) for seed in range(count)}


def table(session: SparkSession, histories: dict[str, History], directory: Path) -> DataFrame:
    write_table(histories, directory / "table")
    return session.read.parquet((directory / "table").as_uri())


def raising(_: Batches) -> Iterator[pa.RecordBatch]:
    raise AssertionError("it is run")


def counting(state: int, operation: Operation) -> object:
    """A counter that is added to and read."""
    if operation.f == "add":
        return state + operation.argument
    return state if operation.result == state else ILLEGAL


COUNTER = Model(initial=0, step=counting, reads=frozenset({"read"}))


class OnAnySession:
    """`session` is a fixture."""

    of_each_model = 25

    @pytest.mark.extra
    def test_verdicts_are_those_of_each_history_alone(
        self, session: SparkSession, tmp_path: Path
    ) -> None:
        histories = histories_of_all_models(self.of_each_model)
        rows = judge(table(session, histories, tmp_path), limits=LIMITS).toArrow().to_pylist()
        assert {row["run"] for row in rows} == set(histories)
        verdict = verdict_in(rows, single_run=False)
        assert same(verdict) == same(judged_alone(histories))

    def test_nothing_is_run_before_it_is_asked_for(self, session: SparkSession) -> None:
        rows = session.range(1).mapInArrow(raising, ddl_of(SCHEMA))
        assert judge(rows).columns == VERDICTS.names

    def test_table_has_the_columns_that_it_tells(self, session: SparkSession) -> None:
        fields = judge(session.createDataFrame([], ddl_of(SCHEMA))).schema.fields
        assert {each.name: each.dataType.simpleString() for each in fields} == {
            each.name: sql_of(each.type) for each in VERDICTS
        }

    def test_what_is_no_table_of_histories_is_refused_at_once(self, session: SparkSession) -> None:
        rows = session.createDataFrame([], ddl_of(SCHEMA))
        with pytest.raises(WrongSchema, match="run is missing"):
            judge(rows.drop("run"))
        with pytest.raises(WrongSchema, match="call is string, not bigint"):
            judge(
                rows.selectExpr("*", "'x' as text").drop("call").withColumnRenamed("text", "call")
            )
        with pytest.raises(ValueError, match="no model chess: there are"):
            judge(rows, ["chess"])
        with pytest.raises(ValueError, match="log: its operations are cut apart"):
            judge(rows, {"log": COUNTER})

    def test_findings_say_what_is_wrong_and_can_be_joined(
        self, session: SparkSession, tmp_path: Path
    ) -> None:
        play = Play(workload="register")
        play.did(0, "read", ["k", None], ["k", 7])
        rows = table(session, {"run": play.history}, tmp_path)
        rows = rows.drop("error", "extra").selectExpr("*", "1 as of_somebody_else")
        owners = session.createDataFrame([("k", "Ada")], "object string, owner string")
        (found,) = findings(rows, limits=LIMITS).join(owners, "object").collect()
        assert (found["rule"], found["owner"]) == ("phantom", "Ada")
        assert (found["operations"], found["outcome"]) == ([0, 1], "violated")
        assert found["says"] == "Something is read that nobody wrote, or not yet."

    def test_models_are_chosen_or_brought_along(
        self, session: SparkSession, tmp_path: Path
    ) -> None:
        histories = {}
        for run, seen in (("right", 3), ("wrong", 4)):
            play = Play(workload="counter")
            play.did(0, "add", ["k", 3], ["k", 3])
            play.did(1, "read", ["k", None], ["k", seen])
            histories[run] = play.history
        registers = Play(workload="register")
        registers.did(0, "read", ["r", None], ["r", None])
        rows = table(session, {**histories, "other": registers.history}, tmp_path)
        own = judge(rows, {"counter": COUNTER}, limits=LIMITS).filter("object is not null")
        told = {(row["run"], row["model"], row["outcome"]) for row in own.collect()}
        assert told == {
            ("right", "counter", "valid"),
            ("wrong", "counter", "violated"),
            ("other", "register", "valid"),
        }
        chosen = judge(rows, ["register"], limits=LIMITS).filter("model != 'observe'")
        assert {row["run"] for row in chosen.collect()} == {"other"}


def test_library_is_that_of_the_project() -> None:
    assert quorumlab.judge is our_spark.judge is judge
    assert quorumlab.findings is findings
