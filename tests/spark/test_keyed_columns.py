"""Registers and queues as columns: what is sound is valid, what is valid and plain is sound."""

from dataclasses import replace

import msgpack
import pyarrow as pa
import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.operations import Operation, operations
from jepsen_like.checkers.queue_columns import QueueColumns
from jepsen_like.checkers.queues import check_queue_columns
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.checkers.zones import sound
from jepsen_like.histories.history import Kind
from spark.columns import Values, objects, plain, queue_columns, register_columns
from spark.columns import operations as operations_of
from spark.judging import Limits, judged
from spark.verdicts import named
from tests.agreement.agreeing import history_of
from tests.agreement.models import MODELS
from tests.jepsen_like.play import Play
from tests.spark.tables import table_of

HISTORIES = 300
KEYED = [name for name in MODELS if name.startswith(("register", "queue"))]


def test_register_is_sound_if_and_only_if_it_is_valid() -> None:
    name = "register, written once"
    told = set()
    for number in range(HISTORIES):
        history = history_of(name, MODELS[name], number)
        accesses, others = plain(table_of(history, "run"), "read", "write")
        assert not len(others)
        is_sound = bool(sound(register_columns(accesses)).all())
        outcome = judge(history).outcome
        assert is_sound == (outcome is not Outcome.VIOLATED), number
        told.add(is_sound)
    assert told == {True, False}


@pytest.mark.parametrize("name", ["queue", "queue, values come again"])
def test_queue_is_judged_as_its_operations(name: str) -> None:
    for number in range(HISTORIES):
        history = history_of(name, MODELS[name], number)
        accesses, _ = plain(table_of(history, "run"), "enqueue", "dequeue")
        expected = check_queue_columns(QueueColumns.of(operations(history.ops)))
        verdict = check_queue_columns(queue_columns(accesses))
        assert verdict.counts == expected.counts
        assert verdict.outcome is expected.outcome, number
        assert [(each.rule, each.detail, each.ops) for each in verdict.findings] == [
            (each.rule, each.detail, each.ops) for each in expected.findings
        ]


@pytest.mark.parametrize("name", KEYED)
def test_operations_come_back_from_the_table_as_they_went(name: str) -> None:
    def told(operation: Operation) -> Operation:
        """Nobody asks for the result of one that is not ok."""
        return operation if operation.kind is Kind.OK else replace(operation, result=None)

    for number in range(5):
        history = history_of(name, MODELS[name], number)
        found = operations_of(table_of(history, "run"), keyed=True)
        assert [told(each) for each in found] == [
            told(replace(each, argument=[named("run", each.argument[0]), *each.argument[1:]]))
            for each in operations(history.ops)
        ]


def test_objects_of_several_runs_have_their_names() -> None:
    play = Play(workload="register")
    play.did(0, "write", ["k", 1], None)
    tables = [table_of(play.history, run) for run in ("a", "b")]
    names, key = objects(pa.concat_tables(tables))
    assert (names, key.tolist()) == ([named("a", "k"), named("b", "k")], [0, 1])


def test_queue_with_anything_but_plain_accesses_is_judged_as_well() -> None:
    play = Play(workload="queue")
    play.did(0, "enqueue", ["k", 1], None)
    for _ in range(2):
        play.did(1, "dequeue", ["k", None], ["k", 1], told="by hand")
    verdict = judged(table_of(play.history, "run"), Limits(mb=4096))
    assert verdict.objects == {named("run", "k"): Outcome.VIOLATED}


@pytest.mark.parametrize(
    ("workload", "change", "ask"), [("register", "write", "read"), ("queue", "enqueue", "dequeue")]
)
def test_mappings_are_no_values(workload: str, change: str, ask: str) -> None:
    """The same one may be written in another order of its keys."""
    for asked, told in (({"a": 1, (2,): 3}, {(2,): 3, "a": 1}), ([{"a": 1}], [{"a": 1}])):
        play = Play(workload=workload)
        play.did(0, change, ["k", asked], ["k", asked])
        play.did(1, ask, ["k", None], ["k", told])
        verdict = judged(table_of(play.history, "run"), Limits(mb=4096))
        assert verdict.outcome is Outcome.UNDECIDED
        assert "makes no sense" in verdict.reason


def test_object_with_anything_but_plain_accesses_is_left_to_others() -> None:
    play = Play(workload="cas-register")
    for key in ("plain", "versioned", "set", "failed"):
        play.did(0, "write", [key, 1], None)
    play.did(0, "read", ["versioned", None], ["versioned", 1], version=1)
    play.did(0, "cas", ["set", [1, 2]], None)
    play.invoke(0, "write", ["failed", "a string"])
    play.fail(0)
    accesses, others = plain(table_of(play.history, "run"), "read", "write")
    assert register_columns(accesses).keys == [named("run", key) for key in ("failed", "plain")]
    assert set(others.column("object").to_pylist()) == {"versioned", "set"}


@pytest.mark.parametrize("initial", [[], [None], [0], [2]])
@pytest.mark.parametrize("name", ["register, begins with a value", "register, written once"])
def test_registers_begin_with_what_the_run_says(name: str, initial: list[object]) -> None:
    limits = Limits(mb=4096)
    for number in range(HISTORIES // 10):
        history = history_of(name, MODELS[name], number)
        header = replace(history.header, options={"initial": initial})
        history = replace(history, header=header)
        expected, verdict = judge(history), judged(table_of(history, "run"), limits)
        is_shown = "no operation that is judged" not in expected.reason
        assert not is_shown or verdict.outcome is expected.outcome, number
        assert [each.ops for each in verdict.findings] == [each.ops for each in expected.findings]


def test_values_are_ints_and_then_others() -> None:
    packed = [msgpack.packb(value) for value in ("a", 1.5)]
    values = Values(pa.array([7, 9]), pa.array(packed, pa.binary()))
    assert [values[code] for code in range(len(values))] == [7, 9, "a", 1.5]
