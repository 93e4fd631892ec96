"""Registers, queues and sets in pieces are judged as whole ones, or undecided with a reason."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from jepsen_like.checkers import judge
from jepsen_like.checkers.verdict import Finding, Outcome, Verdict, compose
from jepsen_like.histories.history import INITIAL, History
from spark.checks import check
from spark.plan import Plan, Thresholds
from tests.agreement.agreeing import history_of
from tests.agreement.free import freely_played
from tests.agreement.free_objects import FREE_OBJECTS
from tests.agreement.models import MODELS
from tests.agreement.objects import INITIAL_VALUE
from tests.jepsen_like.play import Play
from tests.spark.conftest import SETTINGS
from tests.spark.tables import write_table
from tests.spark.test_value_pieces import two_orders
from tests.spark.total_queues import total_queue

pytestmark = [pytest.mark.slow, pytest.mark.extra]

OF_EACH = 20
SMALL = Thresholds(one_worker=0, by_operation=0, piece=3_000)
CAS = "register, compare-and-set"
BEGUN = "register, compare-and-set, begins with a value"
SEARCHED = ("queue, values come again", "queues", "register", "registers")  # where that decides
LIMITED = (*SEARCHED[:2], "register that", "registers")  # pieces leave some of them undecided
Row = dict[str, Any]


def histories() -> dict[str, History]:
    makers: dict[str, Callable[[int], History]] = {
        **{
            name: partial(history_of, name, agreed)
            for name, agreed in MODELS.items()
            if name.startswith(("queue", "set"))
        },
        CAS: partial(history_of, CAS, MODELS[CAS]),
        BEGUN: begun,
        **{name: partial(free, name) for name in ("sets", "registers", "queues")},
        "total queue": total_queue,
    }
    return {
        f"{name} {number}": make(number)
        for name, make in makers.items()
        for number in range(OF_EACH)
    }


def begun(number: int) -> History:
    history = history_of(BEGUN, MODELS[BEGUN], number)
    options = {INITIAL: [INITIAL_VALUE]}
    return replace(history, header=replace(history.header, options=options))


def wrong_itself(play: Play) -> None:
    """It accuses nobody, though an element is lost."""
    play.did(0, "add", 1, 1)
    play.did(0, "read", None, [])
    for _ in range(2):
        play.invoke(1, "add", 2)


def says_more(play: Play) -> None:
    """The write is no plain one; its value is no phantom."""
    play.did(0, "write", ["k", 1], ["k", 1], version=1)
    play.did(0, "read", ["k", None], ["k", 1])


PLANTED: Mapping[str, tuple[str, Callable[[Play], None], Outcome]] = {
    "set of two orders 0": ("set", two_orders, Outcome.VIOLATED),
    "set that is wrong itself 0": ("set", wrong_itself, Outcome.UNDECIDED),
    "register that says more 0": ("register", says_more, Outcome.UNDECIDED),
}


def planted() -> dict[str, History]:
    made = {}
    for run, (workload, plant, _) in PLANTED.items():
        play = Play(workload=workload)
        plant(play)
        made[run] = play.history
    return made


def free(name: str, number: int) -> History:
    lying = 0.0 if number % 2 else 0.1
    return freely_played(FREE_OBJECTS[name], Random(f"in pieces {name} {number}"), lying)


def test_objects_in_pieces_are_judged_as_whole_ones(spark: SparkSession, tmp_path: Path) -> None:
    runs, plans = histories() | planted(), list[Plan]()
    write_table(runs, tmp_path / "table")
    check(
        spark,
        [tmp_path / "table"],
        SETTINGS,
        thresholds=SMALL,
        said=plans.append,
        verdicts=str(tmp_path / "verdicts"),
    )
    ways = {large.way for large in plans[0].distributed}
    assert ways == {"queues", "registers", "sets", "total queues"}
    of_runs = defaultdict[str, list[Row]](list)
    for row in pq.read_table(tmp_path / "verdicts").to_pylist():
        of_runs[row["run"]].append(row)
    decided = Counter[tuple[str, Outcome]]()
    for run, history in runs.items():
        model, alone = run.rpartition(" ")[0], judge(history)
        told = compose(map(verdict_of, of_runs[run]))
        decided[model, told.outcome] += 1
        if told.outcome is not Outcome.UNDECIDED:
            assert told.outcome is alone.outcome, run
        elif alone.outcome is not Outcome.UNDECIDED:
            assert model.startswith(LIMITED), (run, told.reason)
        for name in {*alone.objects, *told.objects}:
            mine = told.objects.get(name, Outcome.VALID)  # valid elements are not named
            if mine is not Outcome.UNDECIDED:
                assert mine is alone.objects.get(name), (run, name)
                assert model.startswith(SEARCHED) or rules(told, name) == rules(alone, name), (
                    run,
                    name,
                )
    for model in {run.rpartition(" ")[0] for run in runs} - {"registers"}:
        expected = PLANTED.get(f"{model} 0", (..., ..., Outcome.VIOLATED))[2]
        assert decided[model, expected], model


def verdict_of(row: Row) -> Verdict:
    outcome, name = Outcome(row["outcome"]), row["object"]
    found = []
    if row["rule"]:
        found = [Finding(rule=row["rule"], object=name, detail="", ops=())]
    objects = {} if name is None else {name: outcome}
    reason = row["reason"] or ""
    return Verdict(outcome=outcome, findings=tuple(found), objects=objects, reason=reason)


def rules(verdict: Verdict, name: str) -> set[str]:
    return {each.rule for each in verdict.findings if each.object == name}
