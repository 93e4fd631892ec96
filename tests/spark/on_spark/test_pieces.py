"""A log that is judged in pieces breaks the rules that it breaks as a whole, and no others."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jepsen_like.histories.history import History
from spark.checks import check
from spark.plan import Plan, Thresholds
from tests.agreement.agreeing import history_of
from tests.agreement.models import MODELS
from tests.jepsen_like.checkers.test_kafka_log import PLANTED, three_sent
from tests.jepsen_like.play import Play
from tests.spark import test_register_pieces
from tests.spark.agreement import broken, judged_alone
from tests.spark.conftest import SETTINGS
from tests.spark.histories import random_log
from tests.spark.tables import write_table

pytestmark = pytest.mark.slow

IN_PIECES = Thresholds(one_worker=0, piece=1000)
IN_ROWS = Thresholds(one_worker=0, piece=3)
BETWEEN = ("poll-skip", "nonmonotonic-send", "not-linearizable")  # they take rows of two pieces
RANDOM = 30


def planted() -> dict[str, History]:
    """One history for each kind of violation, with nothing else in it."""
    histories = {}
    for number, (rule, plant) in enumerate(PLANTED):
        play = three_sent()
        plant(play)
        histories[f"planted-{number}-{rule}"] = play.history
    return histories


@pytest.mark.extra
def test_logs_in_pieces_break_the_rules_that_they_break_as_whole_ones(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Which operations show it may be others. Producers are idempotent: others are judged apart."""
    random = {f"random-{seed}": random_log(seed) for seed in range(RANDOM)}
    idempotent = {
        run: history for run, history in random.items() if history.header.options["idempotent"]
    }
    histories = planted() | idempotent
    expected = judged_alone(histories)
    write_table(histories, tmp_path / "table")
    plans: list[Plan] = []
    verdict = check(spark, [tmp_path / "table"], SETTINGS, thresholds=IN_PIECES, said=plans.append)
    assert len(plans[0].distributed) > len(histories)
    assert {each.rule for each in expected.findings} >= {rule for rule, _ in PLANTED}
    assert broken(verdict) == broken(expected)


@pytest.mark.extra
def test_findings_between_two_pieces_are_found(spark: SparkSession, tmp_path: Path) -> None:
    """In pieces of about three rows. All other rules, without Spark: see `test_small_pieces`."""
    histories = {}
    for rule, plant in PLANTED:
        if rule in BETWEEN and rule not in histories:
            play = three_sent()
            plant(play)
            histories[rule] = play.history
    write_table(histories, tmp_path / "table")
    verdict = check(spark, [tmp_path / "table"], SETTINGS, thresholds=IN_ROWS)
    assert broken(verdict) == broken(judged_alone(histories))


@pytest.mark.extra
def test_registers_in_pieces_are_judged_as_whole_ones(spark: SparkSession, tmp_path: Path) -> None:
    name = "register, written once"
    histories = {f"random-{seed}": history_of(name, MODELS[name], seed) for seed in range(12)}
    for plant in (test_register_pieces.clashing, test_register_pieces.overtaken):
        play = Play(workload="register")
        plant(play)
        histories[plant.__name__] = play.history
    expected = judged_alone(histories)
    write_table(histories, tmp_path / "table")
    plans: list[Plan] = []
    verdict = check(spark, [tmp_path / "table"], SETTINGS, thresholds=IN_ROWS, said=plans.append)
    assert len(plans[0].distributed) == len(verdict.objects) == len(expected.objects)
    assert verdict.objects == expected.objects
    assert {each.object for each in verdict.findings} == {each.object for each in expected.findings}
    assert {each.rule for each in verdict.findings} <= {each.rule for each in expected.findings}
