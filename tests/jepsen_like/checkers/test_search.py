"""Both searches agree with trying all orders, and stay within their budget."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from jepsen_like.checkers.models import ILLEGAL, REGISTER, Model
from jepsen_like.checkers.operations import NEVER, Operation, operations
from jepsen_like.checkers.search import Budget, search
from jepsen_like.checkers.search_answer import Search
from jepsen_like.checkers.search_depth import depth_first
from jepsen_like.checkers.search_frontier import frontier
from jepsen_like.history import Kind
from jepsen_like.verdict import Outcome
from tests.jepsen_like.checkers.oracle import is_linearizable
from tests.jepsen_like.play import Play

HISTORIES = 200


def register_steps(state: Any, operation: Operation) -> Sequence[Any]:
    after = REGISTER.step(state, operation)
    return [] if after is ILLEGAL else [after]


def decided(running: Search) -> Outcome:
    try:
        while True:
            next(running)
    except StopIteration as end:
        outcome: Outcome = end.value.outcome
        return outcome


def random_registers(random: Random, *, processes: int, events: int, lies: float) -> Play:
    """Takes effect at the return; some answers are lies, some ends are unknown."""
    play = Play()
    state: int | None = None
    free = list(range(processes))
    pending: dict[int, tuple[str, Any]] = {}
    late: list[tuple[str, Any]] = []
    for number in range(events):
        if late and random.random() < 0.2:
            state = applied(state, *late.pop())[0]
        if free and random.random() < 0.55:
            process = free.pop(random.randrange(len(free)))
            f = random.choice(["read", "read", "write", "cas"])
            small = random.randrange(3), random.randrange(3)
            argument = {"read": None, "write": small[0], "cas": list(small)}[f]
            play.invoke(process, f, argument)
            pending[process] = f, argument
        elif pending:
            process = random.choice(sorted(pending))
            f, argument = pending.pop(process)
            if f != "read" and random.random() < 0.2:
                late.append((f, argument))
                play.info(process)
                free.append(1000 + number)
                continue
            state, is_ok = applied(state, f, argument)
            if not is_ok:
                play.fail(process, mismatch=True)
            elif f == "read":
                play.ok(process, random.randrange(3) if random.random() < lies else state)
            else:
                play.ok(process)
            free.append(process)
    return play


def applied(state: int | None, f: str, argument: Any) -> tuple[int | None, bool]:
    match f:
        case "write":
            return argument, True
        case "cas":
            is_ok = state == argument[0]
            return (argument[1] if is_ok else state), is_ok
        case _:
            return state, True


def of_register(play: Play) -> list[Operation]:
    return [each for each in operations(play.ops) if each.f != "read" or each.ret != NEVER]


@pytest.mark.parametrize("seed", range(3))
def test_register_is_judged_as_by_trying_all_orders(seed: int) -> None:
    outcomes = {Outcome.VALID: 0, Outcome.VIOLATED: 0}
    for number in range(HISTORIES):
        random = Random(f"{seed}-{number}")
        play = random_registers(random, processes=3, events=16, lies=0.2)
        paired = of_register(play)
        is_valid = is_linearizable(paired, None, register_steps)
        expected = Outcome.VALID if is_valid else Outcome.VIOLATED
        assert decided(depth_first(paired, REGISTER)) is expected, (seed, number, play.ops)
        assert decided(frontier(paired, REGISTER)) is expected, (seed, number, play.ops)
        assert search(paired, REGISTER).outcome is expected
        outcomes[expected] += 1
    assert min(outcomes.values()) > HISTORIES // 10, outcomes


def test_violation_names_the_operation_that_has_no_place() -> None:
    play = Play()
    play.did(0, "write", 1, None)
    play.did(0, "read", None, 2)
    answer = search(operations(play.ops), REGISTER)
    assert answer.outcome is Outcome.VIOLATED
    assert answer.blocked is not None
    assert answer.blocked.f == "read"


def hard_history() -> list[Operation]:
    """Many writes at once, and a read of a value that nobody wrote."""
    play = Play()
    for process in range(14):
        play.invoke(process, "write", process)
    for process in range(14):
        play.ok(process)
    play.did(0, "read", None, 99)
    return operations(play.ops)


def test_search_that_takes_too_long_is_undecided() -> None:
    answer = search(hard_history(), REGISTER, Budget(steps=2000))
    assert answer.outcome is Outcome.UNDECIDED
    assert "not decided" in answer.reason


def test_search_that_is_late_is_undecided() -> None:
    answer = search(hard_history(), REGISTER, Budget(is_late=lambda: True))
    assert answer.outcome is Outcome.UNDECIDED


def test_search_that_remembers_too_much_is_undecided_and_says_which_did() -> None:
    answer = search(hard_history(), REGISTER, Budget(kept=1000))
    assert answer.outcome is Outcome.UNDECIDED
    assert "depth first" in answer.reason
    assert "frontier" in answer.reason


def test_model_of_ones_own_takes_a_few_lines() -> None:
    def counter(state: int, operation: Operation) -> Any:
        if operation.f == "add":
            return state + operation.argument
        return state if operation.result == state else ILLEGAL

    model = Model(initial=0, step=counter, reads=frozenset({"read"}))
    play = Play()
    play.did(0, "add", 2, None)
    play.did(0, "read", None, 2)
    assert search(operations(play.ops), model).outcome is Outcome.VALID
    play.did(0, "read", None, 3)
    assert search(operations(play.ops), model).outcome is Outcome.VIOLATED


def test_unknown_write_may_come_late_or_never() -> None:
    for seen in ([1, 1], [1, 2], [2, 2]):
        play = Play()
        play.did(0, "write", 1, None)
        play.invoke(1, "write", 2)
        play.info(1)
        for value in seen:
            play.did(0, "read", None, value)
        assert search(operations(play.ops), REGISTER).outcome is Outcome.VALID, seen


def test_failed_cas_says_that_the_value_was_another() -> None:
    play = Play()
    play.did(0, "write", 1, None)
    play.invoke(0, "cas", [1, 2])
    play.fail(0, mismatch=True)
    assert operations(play.ops)[-1].kind is Kind.FAIL
    assert search(operations(play.ops), REGISTER).outcome is Outcome.VIOLATED
