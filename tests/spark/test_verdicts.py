"""Rows of verdicts say all that the checkers say, of every model, and what cannot be judged."""

from dataclasses import replace

import pyarrow as pa
import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.search import Budget
from jepsen_like.checkers.verdict import Finding, Outcome, Verdict
from spark.judging import Judging, Limits
from spark.library import brought_along
from spark.schema import VERSION
from spark.verdict_rows import TOLD, Part, batch_of, rows_of
from spark.verdicts import decoded, encoded, named
from tests.agreement.agreeing import history_of
from tests.agreement.models import MODELS
from tests.jepsen_like.play import Play
from tests.spark import judged_tables
from tests.spark.agreement import same
from tests.spark.judged_tables import COUNTER
from tests.spark.tables import table_of
from tests.spark.told import told, verdict_in

FINDING = Finding(rule="phantom", object="k", detail="77 was read", ops=(1, 2))
VERDICT = Verdict.of([FINDING], objects=["k", "other"])
HISTORIES = 20


def test_names_of_valid_objects_are_not_handed_on_by_pieces() -> None:
    handed_on = decoded(encoded(VERDICT))
    assert set(handed_on.objects) == {"k"}
    assert (handed_on.outcome, handed_on.findings) == (VERDICT.outcome, VERDICT.findings)


@pytest.mark.parametrize("model", MODELS)
def test_rows_say_what_is_said_of_the_history(model: str) -> None:
    for number in range(HISTORIES):
        history = history_of(model, MODELS[model], number)
        expected = judge(history)
        verdict = told(table_of(history, "run"))
        assert same(verdict) == same(expected), f"number {number}"
        assert set(verdict.reason.split("; ")) == set(expected.reason.split("; ")), number


@pytest.mark.parametrize(
    "verdict",
    [
        VERDICT,
        Verdict.of([], {"seen": 3}),
        Verdict.of([], objects=["a", "b"]),
        Verdict.of([], doubts={"a: b": "too large; and more", "c": "who knows"}),
        Verdict.of([FINDING], {"seen": 1}, doubts={"other": "who knows"}),
        Verdict.undecided("no checker knows it"),
        replace(Verdict.of([], doubts={"a": "too large"}), reason="all is lost; a: too large"),
    ],
)
def test_nothing_of_a_verdict_is_lost_in_rows(verdict: Verdict) -> None:
    rows = batch_of([*rows_of(Part("run", "set", verdict))]).to_pylist()
    found = verdict_in(rows)
    assert replace(found, reason=verdict.reason) == verdict
    assert set(found.reason.split("; ")) == set(verdict.reason.split("; "))


def test_names_of_many_runs_carry_them() -> None:
    one, other = named("a", "k"), named("b", "k")
    verdict = Verdict.of([], objects=[one, other], doubts={other: "?"})
    rows = list(rows_of(Part("a", "log", verdict, is_of_many=True)))
    assert [(row.run, row.object, row.outcome, row.reason) for row in rows] == [
        ("a", "k", "valid", None),
        ("b", "k", "undecided", "?"),
    ]


def registers(**written: object) -> pa.Table:
    """Each is written and read; what is a list is read as nobody has written it."""
    play = Play(workload="register")
    for key, value in written.items():
        play.did(0, "write", [key, 1], [key, 1])
        play.did(0, "read", [key, None], [key, value])
    return table_of(play.history, "run")


def test_object_that_makes_no_sense_is_undecided_alone() -> None:
    rows = registers(a=1, b=2, c=1, d=1)
    damaged = {"what": "operation", "argument": b"\xc1"}
    given = [row | (damaged if row["object"] == "c" else {}) for row in rows.to_pylist()]
    verdict = told(pa.Table.from_pylist(given, rows.schema))
    outcomes = {name: of.value for name, of in verdict.objects.items()}
    assert outcomes == {"a": "valid", "b": "violated", "c": "undecided", "d": "valid"}
    assert "c: it makes no sense" in verdict.reason


def test_rows_of_another_version_are_undecided_and_name_both() -> None:
    rows = registers(a=1)
    other = rows.append_column("schema", pa.array([VERSION + 1] * len(rows)))
    reason = told(other).reason
    assert f"version {VERSION + 1} of the schema, not {VERSION}" in reason
    same_one = rows.append_column("schema", pa.array([VERSION] * len(rows)))
    assert told(same_one).outcome is Outcome.VALID


def test_search_ends_after_its_steps_and_not_by_a_clock() -> None:
    play = Play(workload="kv")
    for process in range(12):
        play.invoke(process, "append", ["k", "x" if process % 2 else "y"])
    for process in range(12):
        play.ok(process, ["k", None])
    play.did(20, "get", ["k", None], ["k", "x" * 6 + "y" * 5 + "z"])
    limits = Limits(steps=1)
    once, twice = (told(table_of(play.history, "run"), limits) for _ in range(2))
    assert once == twice
    assert once.outcome is Outcome.UNDECIDED
    assert limits.budget == Budget(steps=1)


def test_model_that_comes_by_value_says_illegal_as_ours_do() -> None:
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    judging = Judging(limits=Limits(), models=brought_along({"counter": COUNTER}))
    cloudpickle.register_pickle_by_value(judged_tables)
    try:
        there = cloudpickle.loads(cloudpickle.dumps(judging.told))
    finally:
        cloudpickle.unregister_pickle_by_value(judged_tables)
    for seen, outcome in ((3, "valid"), (4, "violated")):
        play = Play(workload="counter")
        play.did(0, "add", ["k", 3], ["k", 3])
        play.did(1, "read", ["k", None], ["k", seen])
        batches = there(table_of(play.history, "run").to_batches())
        rows = [row for batch in batches for row in batch.to_pylist() if row["object"] == "k"]
        assert [row["outcome"] for row in rows] == [outcome]


def test_counts_and_seconds_of_a_pass_are_told_once() -> None:
    batches = list(Judging(limits=Limits()).told(registers(a=1, b=1).to_batches()))
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert [dict(row["counts"]) for row in rows if row["counts"]] == [
        {"registers": 2, "by zones": 2}
    ]
    assert len([row for row in rows if row["seconds"] is not None]) == 1
    assert batches[0].schema == TOLD
