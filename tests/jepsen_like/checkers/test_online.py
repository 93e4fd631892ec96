"""What is told while a history is written is right, and stays so however the lines arrive."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.online.intervals import Intervals
from jepsen_like.checkers.online.run import VERSION, OnlineRun, StateOfAnotherVersion, why_refused
from jepsen_like.checkers.online.told import Doubt, Limits
from jepsen_like.checkers.verdict import Finding, Outcome
from jepsen_like.histories.history import Header, History, Kind
from tests.agreement.agreeing import history_of
from tests.agreement.free import FREE
from tests.agreement.models import MODELS
from tests.jepsen_like.checkers.online_judging import (
    LEFT_TO_THE_JUDGE,
    disagreements,
    found,
    shuffled_and_cut,
    told_of,
)
from tests.jepsen_like.checkers.test_kafka_log import PLANTED, three_sent
from tests.jepsen_like.play import Play
from tests.spark.histories import random_history, random_log

VERSIONED = "register, versions"
KINDS = {
    "log": lambda seed: history_of("log", MODELS["log"], seed),
    "register": lambda seed: history_of(
        "register, written once", MODELS["register, written once"], seed
    ),
    VERSIONED: lambda seed: history_of(VERSIONED, MODELS[VERSIONED], seed),
    "anything": lambda seed: FREE["registers"].make(Random(seed), (0.0, 0.1, 0.4)[seed % 3]),
    "several keys": random_history,
    "several logs": random_log,
}


def histories(kind: str, count: int) -> Iterator[History]:
    for seed in range(count):
        history = KINDS[kind](seed)
        is_looked_at = all(op.f != "read-stale" for op in history.ops)
        if why_refused(history.header.workload) is None and is_looked_at:
            yield history


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_accused_that_is_valid_and_little_is_left_to_the_judge(kind: str) -> None:
    for history in histories(kind, 30):
        run, told = told_of(history)
        assert not list(disagreements(history, told, has_versions=kind == VERSIONED)), history
        assert not found(told) or run.outcome is Outcome.VIOLATED


@pytest.mark.parametrize("kind", ["register", "several keys", "several logs"])
def test_restarts_order_and_repetition_change_nothing(kind: str) -> None:
    for seed, history in enumerate(histories(kind, 15)):
        run, told = told_of(history)
        again, retold = told_of(history, restarts=True)
        assert retold == told
        assert again.dumps() == run.dumps()
        assert shuffled_and_cut(history, Random(seed)) == told, seed


@pytest.mark.parametrize("kind", ["log", "register", "several logs"])
def test_what_is_told_holds_of_the_lines_so_far(kind: str) -> None:
    for history in histories(kind, 4):
        run = OnlineRun.of(history.header)
        accused: set[str] = set()
        for count, op in enumerate(history.ops, 1):
            accused |= found(run.take([op]))
            so_far = judge(replace(history, ops=history.ops[:count]))
            if not any(each.rule.startswith("lint-") for each in so_far.findings):
                assert accused <= {each.object for each in so_far.findings}, count


@pytest.mark.parametrize("kind", ["log", "register", "several keys", "several logs"])
def test_who_remembers_little_accuses_nobody_falsely(kind: str) -> None:
    for history in histories(kind, 30):
        for limits in (Limits(values=2, unknown=1), Limits(values=6, unknown=3)):
            told = told_of(history, limits)[1]
            assert not [each for each in disagreements(history, told) if "accused" in each]


@pytest.mark.parametrize("kind", ["register", VERSIONED, "anything", "several keys"])
def test_what_registers_forget_changes_nothing(kind: str) -> None:
    """But that a value may be written again that is not known any more."""
    for history in histories(kind, 60):
        much, little = (told_of(history, Limits(zones=zones))[1] for zones in (99, 0))
        doubted = {each.object for each in much if isinstance(each, Doubt)}
        last = [
            {each.object: max(each.ops) for each in told if isinstance(each, Finding)}
            for told in (much, little)
        ]
        assert {name: last[1][name] for name in last[1] if name not in doubted} == last[0]


@pytest.mark.parametrize(("rule", "plant"), PLANTED)
def test_planted_violations_of_logs_are_told_at_once(
    rule: str, plant: Callable[[Play], object]
) -> None:
    play = three_sent()
    plant(play)
    told = told_of(play.history)[1]
    rules = {each.rule for each in told if isinstance(each, Finding)}
    if "phantom" in rules:  # what is sent after it was read is one until then
        rules.add("not-linearizable")
    assert rule in rules | LEFT_TO_THE_JUDGE


def test_offset_that_nobody_saw_is_skipped_by_nobody_until_somebody_saw_it() -> None:
    play = Play()
    play.invoke(2, "send", [["send", "k", "b"]])
    for offset, value in ((0, "a"), (2, "c")):
        play.send(0, "k", value, offset)
    for offset, value in ((0, "a"), (2, "c")):
        play.poll(1, {"k": [[offset, value]]})
    assert not told_of(play.history)[1]
    play.ok(2, [["send", "k", [1, "b"]]])
    (told,) = told_of(play.history)[1]
    assert isinstance(told, Finding)
    assert told.rule == "poll-skip"


def test_send_may_not_land_before_what_was_there_when_it_began() -> None:
    """Not even if an earlier record was the last to be read."""
    play = Play()
    for offset, value in ((0, "a"), (5, "b")):
        play.send(0, "k", value, offset)
    play.poll(1, {"k": [[0, "a"]]})
    play.send(2, "k", "c", 3)
    (told,) = told_of(play.history)[1]
    assert isinstance(told, Finding)
    assert told.rule == "not-linearizable"


def test_intervals_are_a_set() -> None:
    random = Random(7)
    intervals, numbers = Intervals(), set[int]()
    for _ in range(600):
        number, other = random.randrange(24), random.randrange(24)
        if random.random() < 0.6:
            assert intervals.add(number) is (number not in numbers)
            numbers.add(number)
        else:
            intervals.discard(number)
            numbers.discard(number)
        between = min((each for each in numbers if number < each < other), default=None)
        assert intervals.first_between(number, other) == between
        assert all((each in intervals) is (each in numbers) for each in range(24))


def test_reader_that_moves_on_has_found_all_that_was_known() -> None:
    for reads, is_missed in (([[0, "a"], [1, "b"]], False), ([[0, "a"]], True)):
        play = Play()
        play.send(0, "k", "a", 0)
        play.send(0, "k", "b", 1)
        play.read_all(1, {"k": reads})
        assert not told_of(play.history)[1]
        play.did(1, "assign", ["k"], ["k"], seek="beginning")
        told = told_of(play.history)[1]
        assert [each.rule for each in told if isinstance(each, Finding)] == ["unseen"] * is_missed


def test_later_record_shows_that_an_earlier_one_is_missing() -> None:
    play = Play()
    for offset, value in enumerate("abc"):
        play.send(0, "k", value, offset)
    play.invoke(1, "assign", ["k"], seek="beginning")
    play.ok(1, ["k"])
    play.poll(1, {"k": [[1, "b"], [2, "c"]]}, caught_up=True)
    (told,) = told_of(play.history)[1]
    assert isinstance(told, Finding)
    assert (told.rule, told.object, told.ops) == ("unseen", "k", (1, 8, 9))


def test_read_of_what_was_replaced_is_told_at_its_return() -> None:
    play = Play(workload="register")
    for value in range(3):
        play.did(0, "write", ["x", value], ["x", value])
    last = play.did(1, "read", ["x", None], ["x", 1])
    play.did(1, "read", ["x", None], ["x", 2])
    (told,) = told_of(play.history)[1]
    assert isinstance(told, Finding)
    assert max(told.ops) == last


@pytest.mark.parametrize(
    ("f", "value", "why"),
    [("cas", ["x", [1, 2]], "compare-and-set"), ("write", ["x", 1], "1 is written again")],
)
def test_what_takes_a_search_is_left_to_the_judge_alone(f: str, value: object, why: str) -> None:
    play = Play(workload="cas-register")
    play.did(0, "write", ["x", 1], ["x", 1])
    play.did(0, f, value, value)
    play.did(0, "read", ["y", None], ["y", 5])
    doubt, finding = told_of(play.history)[1]
    assert isinstance(doubt, Doubt)
    assert (doubt.object, finding.object) == ("x", "y")
    assert why in doubt.why
    assert "use judge" in doubt.why


@pytest.mark.parametrize("workload", ["set", "queue", "kafka", "kv", "observe", "partition-epoch"])
def test_models_that_need_the_whole_history_are_refused_by_name(workload: str) -> None:
    play = Play(workload=workload)
    play.did(0, "read", None, [])
    (doubt,) = told_of(play.history)[1]
    assert isinstance(doubt, Doubt)
    assert doubt.why.startswith(f"{workload}: needs all of the history: use judge")


def test_history_that_is_wrong_itself_accuses_nobody_from_there_on() -> None:
    play = Play(workload="register")
    play.invoke(0, "write", ["x", 1])
    play.invoke(0, "write", ["x", 2])
    play.did(1, "read", ["x", None], ["x", 3])
    run, told = told_of(play.history)
    (doubt,) = told
    assert isinstance(doubt, Doubt)
    assert "lint-overlap" in doubt.why
    assert run.outcome is Outcome.UNDECIDED


def test_line_that_never_comes_is_told() -> None:
    play = Play(workload="register")
    for value in range(9):
        play.did(0, "write", ["x", value], ["x", value])
    run = OnlineRun.of(play.history.header, Limits(waiting=10))
    (doubt,) = run.take([op for op in play.ops if op.index != 2])
    assert isinstance(doubt, Doubt)
    assert "wait for line 2" in doubt.why


def test_state_does_not_grow_with_the_history() -> None:
    sizes = []
    for records in (300, 900):
        play = Play()
        for value in range(records):
            play.send(0, "k", value, value)
            play.poll(1, {"k": [[value, value]]})
        registers = Play(workload="register")
        for value in range(records):
            registers.did(0, "write", ["x", value], ["x", value])
            registers.did(1, "read", ["x", None], ["x", value])
        limits = Limits(values=200)
        sizes += [len(told_of(each.history, limits)[0].dumps()) for each in (play, registers)]
    assert sizes[2] < 1.5 * sizes[0]
    assert sizes[3] < 1.5 * sizes[1]


def test_state_of_another_version_is_refused() -> None:
    state = OnlineRun.of(Header(workload="log", seed=0)).dumps()
    assert state[1] == VERSION
    with pytest.raises(StateOfAnotherVersion, match="a state of version 99"):
        OnlineRun.loads(state[:1] + b"\x63" + state[2:])


def test_write_that_failed_and_was_read_is_told_when_it_fails() -> None:
    play = Play(workload="register")
    play.invoke(0, "write", ["x", 1])
    play.did(1, "read", ["x", None], ["x", 1])
    play.line(Kind.FAIL, 0, "write", ["x", 1])
    (told,) = told_of(play.history)[1]
    assert isinstance(told, Finding)
    assert told.rule == "G1a"
