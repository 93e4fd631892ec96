"""Spark Connect: there is no virtual machine here, and its workers have our code from us."""

from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from jepsen_like.checkers import judge
from jepsen_like.histories.history import encode_header, encode_op
from jepsen_like.sim.assemblies.quorum.simulation import run
from jepsen_like.sim.runs.sweep import run_all
from quorumlab import convert, findings
from spark.bounded import NotInTime, bounded
from spark.checks import check
from spark.plan import Thresholds
from spark.session import Settings
from spark.sweeps import sweep_seeds
from tests.jepsen_like.checkers.test_kafka_log import PLANTED, three_sent
from tests.spark import judged_tables
from tests.spark.agreement import broken, judged_alone
from tests.spark.judged_tables import OnAnySession
from tests.spark.tables import write_table

pytestmark = pytest.mark.extra

SETTINGS = Settings(seconds=300)


class TestOnConnect(OnAnySession):
    of_each_model = 4

    @pytest.fixture
    def session(self, connected: SparkSession) -> SparkSession:
        by_value: Any = cloudpickle.register_pickle_by_value
        by_value(judged_tables)  # as a notebook's own are
        return connected


def test_logs_are_judged_in_pieces_there(connected: SparkSession, tmp_path: Path) -> None:
    histories = {}
    for rule, plant in PLANTED[:4]:
        play = three_sent()
        plant(play)
        histories[rule] = play.history
    write_table(histories, tmp_path / "table")
    in_rows = Thresholds(one_worker=0, piece=3)
    verdict = check(connected, [tmp_path / "table"], SETTINGS, thresholds=in_rows)
    assert broken(verdict) == broken(judged_alone(histories))


def test_files_are_converted_and_judged_there(connected: SparkSession, tmp_path: Path) -> None:
    play = three_sent()
    _rule, plant = PLANTED[0]
    plant(play)
    path = tmp_path / "history.msgpack"
    path.write_bytes(encode_header(play.history.header) + b"".join(map(encode_op, play.ops)))
    found = findings(convert(connected, [path.as_uri()])).collect()
    expected = {(f"file:{path}", each.rule) for each in judge(play.history).findings}
    assert expected
    assert {(row.run, row.rule) for row in found} == expected


def test_seeds_are_swept_there(connected: SparkSession) -> None:
    here = run_all(run, "votes_twice", range(3))
    there = sweep_seeds(connected, range(3), SETTINGS, run=run, plant="votes_twice")
    assert (there.failures, there.coverage) == (here.failures, here.coverage)


def test_job_that_takes_too_long_is_given_up_and_the_session_goes_on(
    connected: SparkSession,
) -> None:
    def job() -> int:
        long = connected.range(10**9).crossJoin(connected.range(10**6).toDF("other"))
        return long.filter("(id + other) % 7 = 3").count()

    with pytest.raises(NotInTime):
        bounded(connected, 1, job)
    assert connected.range(3).count() == 3
