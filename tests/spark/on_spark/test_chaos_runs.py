"""A run of chaos on real processes, judged by Spark's job as it is without; and spoiled, found."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jepsen_like.checkers import judge
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories.history import History, read_history
from jepsen_like.real.runs.chaos_run import execute
from jepsen_like.real.runs.outcome import Watcher
from jepsen_like.real.runs.run_options import RunOptions
from quorumlab.cli import main
from tests.jepsen_like.spoiled import SPOILED, spoiled

pytestmark = [pytest.mark.slow, pytest.mark.extra]
KEYS = ("outcome", "findings", "objects", "counts", "reason", "void")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with one run in it, of clients that are members of groups."""
    directory = tmp_path_factory.mktemp("runs")
    options = RunOptions(
        directory=directory / "kafka", workload="kafka", faults=("kill", "pause"), seconds=8, seed=1
    )
    ran = execute(options, Watcher())
    assert ran.verdict.outcome is Outcome.VALID, ran.verdict
    return directory


@pytest.fixture(scope="module")
def history(runs: Path) -> History:
    return read_history((runs / "kafka" / "history.msgpack").read_bytes())


def test_spark_says_what_is_said_without_it(
    spark: SparkSession, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = []
    for where in ("local", "spark"):
        code = main(["check", str(runs / "kafka"), "--on", where, "--format", "json"])
        verdict = json.loads(capsys.readouterr().out)
        told.append((code, {key: verdict[key] for key in KEYS}))
    assert told[1] == told[0]
    counts = told[0][1]["counts"]
    assert counts["records with sequences"] > 50
    assert counts["commits"] > 10


@pytest.mark.long  # what can be spoilt depends on what a run has seen; fast in the simulator
@pytest.mark.parametrize("how", SPOILED)
def test_violation_planted_in_what_was_recorded_is_found(history: History, how: str) -> None:
    rule, spoil = SPOILED[how]
    verdict = judge(spoiled(history, spoil))
    assert rule in {finding.rule for finding in verdict.findings}
