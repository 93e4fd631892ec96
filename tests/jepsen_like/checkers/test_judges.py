"""Which checkers judge which workload, and what shrinking leaves."""

import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.judges import JUDGED, LOOKED_AT
from jepsen_like.checkers.models import Model
from jepsen_like.checkers.operations import Operation
from jepsen_like.checkers.search import smallest
from jepsen_like.checkers.verdict import Outcome, Verdict, as_json, compose, evidence, place
from jepsen_like.histories.history import NEMESIS, Kind, MalformedHistory, Op, Value
from jepsen_like.workloads.registry import WORKLOADS
from tests.jepsen_like.play import Play

IN_VAIN: dict[str, tuple[str, Value]] = {
    **dict.fromkeys(("admin", "kafka", "log"), ("poll", [["poll"]])),
    "kv": ("get", ["k", None]),
    **dict.fromkeys(("append", "rw-register"), ("txn", [["r", "k", None]])),
    "queue": ("dequeue", ["k", None]),
    "total-queue": ("dequeue", None),
    "set": ("read", None),
}


def test_every_workload_has_a_judge() -> None:
    assert set(WORKLOADS) <= set(JUDGED)


@pytest.mark.parametrize("workload", sorted(JUDGED))
def test_history_without_any_success_shows_nothing(workload: str) -> None:
    play = Play(workload=workload)
    assert judge(play.history).outcome is Outcome.UNDECIDED
    play.line(Kind.INFO, NEMESIS, "kill", [1])
    play.invoke(0, *IN_VAIN.get(workload, ("read", ["k", None])))
    play.fail(0)
    verdict = judge(play.history)
    assert verdict.outcome is Outcome.UNDECIDED
    assert "no operation that is judged was ok" in verdict.reason


@pytest.mark.parametrize("workload", sorted(LOOKED_AT))
def test_history_of_another_workload_shows_nothing(workload: str) -> None:
    play = Play(workload=workload)
    play.did(0, "enqueue", ["k", 1], ["k", 1])
    verdict = judge(play.history)
    assert verdict.outcome is Outcome.UNDECIDED
    assert "no operation that is judged was ok" in verdict.reason


def test_observations_alone_do_not_show_that_a_log_is_valid() -> None:
    play = Play(workload="log")
    play.line(Kind.OK, "node-1", "observe", {"chaos-0": [1, 1, 1, [1]]})
    assert judge(play.history).outcome is Outcome.UNDECIDED
    play.read_all(0, {"chaos-0": []})
    assert judge(play.history).outcome is Outcome.VALID


def test_unknown_workload_is_undecided_and_the_known_ones_are_named() -> None:
    verdict = judge(Play(workload="atm").history)
    assert verdict.outcome is Outcome.UNDECIDED
    assert "cas-register" in verdict.reason


@pytest.mark.parametrize(
    ("workload", "f", "value", "extra"),
    [
        ("kv", "dance", ["k", 1], {}),
        ("log", "poll", [["poll", {"k": [["x", 1]]}]], {}),
        ("log", "poll", [["poll", {"k": [[-1, 1]]}]], {}),
        ("log", "poll", [["poll", {}]], {"ends": {"k": "x"}}),
        ("log", "send", [["send", "k", ["x", 1]]], {}),
        ("log", "send", [["send", "k", [1.5, 1]]], {}),
        ("log", "send", [["send", "k", [True, 1]]], {}),
        ("log", "send", [["send", "k", [-1001, 1]]], {}),
        ("log", "send", [["send", "k", [1 << 63, 1]]], {}),
        ("set", "add", {"a": 1}, {}),
        ("set", "read", [{"a": 1}], {}),
        ("set", "read-stale", [], {"node": [1]}),
    ],
)
def test_value_that_no_workload_has_says_where_it_is(
    workload: str, f: str, value: Value, extra: dict[str, Value]
) -> None:
    play = Play(workload=workload)
    play.did(0, f, value, value, **extra)
    with pytest.raises(MalformedHistory, match="operation 0"):
        judge(play.history)


@pytest.mark.parametrize(
    ("state", "incarnation"),
    [(["a", 1, 1, [1]], 0), ([1, {}, 1, [1]], 0), ([1, 1, None, [1]], 0), ([1, 1, 1, [1]], [1])],
)
def test_observation_that_is_none_says_where_it_is(state: Value, incarnation: Value) -> None:
    play = Play(workload="observe")
    extra = {"incarnation": incarnation}
    play.line(Kind.OK, "node-1", "observe", {"chaos-0": state}, extra=extra)
    with pytest.raises(MalformedHistory, match="operation 0"):
        judge(play.history)


@pytest.mark.parametrize("first", [-2, 1 << 40])
def test_index_of_no_line_says_so(first: int) -> None:
    ops = [
        Op(index=first + at, time_ns=at, kind=kind, process=0, f="send", value=[["send", "k", 1]])
        for at, kind in enumerate((Kind.INVOKE, Kind.INFO))
    ]
    with pytest.raises(MalformedHistory, match="index"):
        judge(Play(ops=ops).history)


def test_last_line_that_a_history_may_have_is_told() -> None:
    last = (1 << 31) - 1
    ops = [
        Op(index=last, time_ns=0, kind=Kind.INVOKE, process=0, f="send", value=[["send", "k", 1]])
    ]
    assert judge(Play(ops=ops).history).objects == {"k": Outcome.VALID}


@pytest.mark.parametrize(
    ("completed", "told"),
    [(9, (7, 9)), (8, (7, 8)), (None, (7,)), (3, (7,))],  # the last was written by nobody's clock
)
def test_place_keeps_the_lines_of_an_operation(
    completed: int | None, told: tuple[int, ...]
) -> None:
    operation = Operation(
        process=0,
        f="send",
        kind=Kind.OK,
        argument=None,
        call=0,
        ret=1,
        index=7,
        ret_index=completed,
    )
    assert evidence([place(operation)]) == told


@pytest.mark.parametrize("offset", [0, 1 << 40])
def test_least_and_largest_offset_are_read(offset: int) -> None:
    play = Play(workload="log")
    play.did(0, "send", [["send", "k", 1]], [["send", "k", [offset, 1]]])
    play.did(0, "poll", [["poll"]], [["poll", {"k": [[offset, 1]]}]])
    assert judge(play.history).outcome is Outcome.VALID


def test_observations_are_judged_beside_every_workload() -> None:
    play = Play(workload="log")
    play.line(Kind.OK, "node-1", "observe", {"chaos-0": [1, 1, 1, [1]]})
    play.line(Kind.OK, "node-2", "observe", {"chaos-0": [2, 1, 1, [2]]})
    assert {each.rule for each in judge(play.history).findings} == {"two-leaders", "two-states"}


def test_strings_of_porcupine_are_judged() -> None:
    play = Play(workload="kv")
    play.did(0, "append", ["k", "x"], None)
    play.did(1, "put", ["other", "z"], None)
    play.did(0, "append", ["k", "y"], None)
    play.did(0, "get", ["k", None], ["k", "xy"])
    assert judge(play.history).outcome is Outcome.VALID
    play.did(0, "get", ["k", None], ["k", "yx"])
    verdict = judge(play.history)
    assert verdict.objects == {"k": Outcome.VIOLATED, "other": Outcome.VALID}


def test_exit_code_says_what_the_verdict_is() -> None:
    assert {outcome.value: outcome.exit_code for outcome in Outcome} == {
        "valid": 0,
        "violated": 4,
        "undecided": 5,
    }


def test_worst_verdict_of_an_object_stays() -> None:
    parts = [
        Verdict.of([], objects=["a", "b"]),
        Verdict.of([], objects=["b"], doubts={"a": "why"}),
        Verdict.of([], objects=["a"]),
    ]
    verdict = compose(parts)
    assert verdict.objects == {"a": Outcome.UNDECIDED, "b": Outcome.VALID}
    assert as_json(verdict)["outcome"] == "undecided"
    assert as_json(verdict)["reason"] == "a: why"


def test_shrinking_leaves_what_it_takes_wherever_it_is() -> None:
    for wanted in ({3}, {0, 99}, {10, 11, 50}):
        assert set(smallest(range(100), lambda part, w=wanted: w <= set(part))) == wanted  # type: ignore[misc] # a default argument of a lambda


@pytest.mark.parametrize(("workload", "f"), [("queue", "drain"), ("register", "delete")])
def test_operation_that_an_object_does_not_have_is_told(workload: str, f: str) -> None:
    play = Play(workload=workload)
    play.did(0, f, ["k", None], ["k", None])
    with pytest.raises(MalformedHistory, match=f"has no '{f}'"):
        judge(play.history)


@pytest.mark.parametrize(("one", "other"), [(1, True), (0, False), (1, 1.0), ("1", 1)])
def test_values_of_two_kinds_are_two_values(one: Value, other: Value) -> None:
    for told, outcome in ((one, Outcome.VALID), (other, Outcome.VIOLATED)):
        register, queue, log = (Play(workload=name) for name in ("register", "queue", "log"))
        register.did(0, "write", ["k", one], None)
        register.did(0, "read", ["k", None], ["k", told])
        queue.did(0, "enqueue", ["k", one], None)
        queue.did(0, "dequeue", ["k", None], ["k", told])
        log.did(0, "send", [["send", "k", one]], [["send", "k", [0, one]]])
        log.read_all(0, {"k": [[0, told]]})
        assert [judge(each.history).outcome for each in (register, queue, log)] == [outcome] * 3


def test_what_is_no_number_is_the_same_everywhere() -> None:
    play = Play(workload="register")
    play.did(0, "write", ["k", float("nan")], None)
    play.did(0, "read", ["k", None], ["k", float("nan")])
    assert judge(play.history).outcome is Outcome.VALID


def test_strings_may_be_told_as_numbers() -> None:
    play = Play(workload="kv")
    play.did(0, "get", ["k", None], ["k", None])
    play.did(0, "put", ["k", 5], None)
    play.did(0, "get", ["k", None], ["k", 5])
    assert judge(play.history).outcome is Outcome.VALID


def test_own_model_has_objects_only_where_answers_name_them_too() -> None:
    def flag(state: bool, operation: Operation) -> bool:
        assert operation.argument == ["a", 1], "it is not taken apart"
        return state if operation.result is not state else True

    play = Play(workload="whatever")
    play.did(0, "test-and-set", ["a", 1], True)
    model = Model(initial=False, step=flag, reads=frozenset())
    assert judge(play.history, model=model).outcome is Outcome.VALID
