"""Banks, counters and total queues: what is moved, added or put in does not get lost."""

from collections.abc import Callable, Sequence
from random import Random

import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.operations import NEVER, operations
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories.history import History, Kind, Value
from tests.jepsen_like.play import Play

BANK: Value = {"total-amount": 10, "accounts": [0, 1]}


def read(play: Play, value: Value) -> None:
    play.did(1, "read", None, value)


def drained(play: Play, *left: Value) -> None:
    play.did(0, "enqueue", 1, 1)
    play.did(1, "drain", None, list(left))


PLANTED: Sequence[tuple[str, str, Callable[[Play], None]]] = [
    ("wrong-total", "bank", lambda play: read(play, {0: 7, 1: 2})),
    ("negative-balance", "bank", lambda play: read(play, {0: 12, 1: -2})),
    ("unknown-account", "bank", lambda play: read(play, {0: 5, 2: 5})),
    ("out-of-range", "counter", lambda play: read(play, 1)),
    ("lost-element", "total-queue", lambda play: drained(play)),
    ("phantom", "total-queue", lambda play: drained(play, 1, 2)),
]


@pytest.mark.parametrize(("rule", "workload", "plant"), PLANTED)
def test_what_is_planted_is_found(rule: str, workload: str, plant: Callable[[Play], None]) -> None:
    play = Play(workload=workload, options=dict(BANK))
    plant(play)
    verdict = judge(play.history)
    assert [each.rule for each in verdict.findings] == [rule]
    assert verdict.findings[0].ops


def test_totals_are_those_of_the_first_read_if_nobody_says() -> None:
    for total, outcome in ((10, Outcome.VALID), (11, Outcome.VIOLATED)):
        play = Play(workload="bank", options={"negative-balances?": True})
        read(play, {"a": 12, "b": -2})
        read(play, {"a": total - 5, "b": 5})
        assert judge(play.history).outcome is outcome


def test_what_unknown_dequeues_may_have_taken_is_not_said_to_be_lost() -> None:
    for f in ("dequeue", "drain"):
        play = Play(workload="total-queue")
        play.invoke(2, f)
        play.info(2)
        drained(play)
        verdict = judge(play.history)
        assert verdict.outcome is Outcome.UNDECIDED
        assert "1 elements never came out" in verdict.reason


def test_what_is_put_in_after_the_last_drain_may_stay() -> None:
    play = Play(workload="total-queue")
    drained(play, 1)
    play.did(0, "enqueue", 2, 2)
    assert judge(play.history).outcome is Outcome.VALID


def test_a_counter_may_be_any_sum_of_what_was_asked_for() -> None:
    """Compared with trying all subsets of what may have been added."""
    outcomes = {judge_of(seed) for seed in range(300)}
    assert outcomes == {Outcome.VALID, Outcome.VIOLATED}


def judge_of(seed: int) -> Outcome:
    history = counted(Random(seed))
    verdict = judge(history).outcome
    assert verdict is (Outcome.VALID if is_possible(history) else Outcome.VIOLATED), f"seed {seed}"
    return verdict


def counted(random: Random) -> History:
    play = Play(workload="counter")
    read(play, 0)
    pending: dict[int, str] = {}
    for _ in range(random.randint(4, 14)):
        process = random.randrange(2, 5)
        if process not in pending:
            pending[process] = random.choice(["add", "read"])
            amount = random.choice([1, 2, -1]) if pending[process] == "add" else None
            play.invoke(process, pending[process], amount)
        else:
            value = random.randint(-1, 4) if pending.pop(process) == "read" else None
            end = random.choice([play.ok, play.ok, play.fail])
            end(process, value)
    return play.history


def is_possible(history: History) -> bool:
    """Each read by itself: the least and the most that it may have seen."""
    every = operations(history.ops)
    adds = [each for each in every if each.f == "add" and each.kind is not Kind.FAIL]
    for each in every:
        if each.f != "read" or each.kind is not Kind.OK:
            continue
        sure = [add.argument for add in adds if add.ret < each.call and add.ret < NEVER]
        perhaps = [add.argument for add in adds if add.ret > each.call and add.call < each.ret]
        low = sum(sure) + sum(min(0, amount) for amount in perhaps)
        high = sum(sure) + sum(max(0, amount) for amount in perhaps)
        if not low <= each.result <= high:
            return False
    return True
