"""The search says what was blocked, and stays within its budget; it is right: `tests/agreement`."""

from random import Random
from typing import Any

import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.models import ILLEGAL, QUEUE, REGISTER, Model
from jepsen_like.checkers.operations import Operation, operations
from jepsen_like.checkers.search import Budget, refuted, search
from jepsen_like.checkers.search_depth import Answer, Search, depth_first
from jepsen_like.checkers.search_frontier import frontier
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories.history import Kind
from tests.jepsen_like.play import Play


def test_violation_names_the_operation_that_has_no_place() -> None:
    play = Play()
    play.did(0, "write", 1, None)
    play.did(0, "read", None, 2)
    answer = search(operations(play.ops), REGISTER)
    assert answer.outcome is Outcome.VIOLATED
    assert answer.blocked is not None
    assert answer.blocked.f == "read"


def answer_of(turns: Search) -> Answer:
    while True:
        try:
            next(turns)
        except StopIteration as ended:
            answer: Answer = ended.value
            return answer


@pytest.mark.parametrize("one_search", [depth_first, frontier])
def test_operation_that_cannot_have_happened_is_left_out(one_search: Any) -> None:
    """Nothing can be dequeued before the first value is enqueued."""
    play = Play()
    play.invoke(1, "dequeue")
    play.did(0, "enqueue", "a", None)
    play.did(0, "dequeue", None, "b")
    answer = answer_of(one_search(operations(play.ops), QUEUE))
    assert answer.outcome is Outcome.VIOLATED


def test_refuting_does_not_count_how_often_something_unknown_happens() -> None:
    play = Play()
    for process, value in enumerate((1, 2)):
        play.invoke(process, "write", value)
        play.info(process)
    for value in (1, 2, 1):
        play.did(5, "read", None, value)
    paired = operations(play.ops)
    assert refuted(paired, REGISTER, Budget()).outcome is Outcome.UNDECIDED
    assert search(paired, REGISTER).outcome is Outcome.VIOLATED
    play.did(5, "read", None, 3)
    assert refuted(operations(play.ops), REGISTER, Budget()).outcome is Outcome.VIOLATED


def test_violation_among_many_unknown_operations_is_found_soon() -> None:
    """Neither of the exact searches comes to an end here."""
    play = Play()
    random = Random(1)
    for process in range(60):
        play.invoke(process, "write", random.randrange(5))
        play.info(process)
    for _ in range(100):
        for process in range(100, 104):
            play.invoke(process, *random.choice([("write", 1), ("write", 2), ("cas", [3, 4])]))
        for process in range(100, 104):
            play.ok(process)
    play.did(0, "read", None, 77)
    answer = search(operations(play.ops), REGISTER, Budget(steps=100_000))
    assert answer.outcome is Outcome.VIOLATED


def hard_history() -> list[Operation]:
    """Many values are enqueued at once, and one is dequeued that nobody enqueued."""
    play = Play()
    for process in range(14):
        play.invoke(process, "enqueue", process)
    for process in range(14):
        play.ok(process)
    play.did(0, "dequeue", None, 99)
    return operations(play.ops)


def test_search_that_takes_too_long_is_undecided() -> None:
    answer = search(hard_history(), QUEUE, Budget(steps=2000))
    assert answer.outcome is Outcome.UNDECIDED
    assert "not decided" in answer.reason


def test_search_that_is_late_is_undecided() -> None:
    answer = search(hard_history(), QUEUE, Budget(is_late=lambda: True))
    assert answer.outcome is Outcome.UNDECIDED


def test_evidence_is_not_shrunk_when_it_is_late() -> None:
    play = Play(workload="register")
    for value in (1, 2, 1):
        play.did(0, "write", ["k", value], None)
    play.did(0, "read", ["k", None], ["k", 2])
    (finding,) = judge(play.history, Budget(is_late=lambda: True)).findings
    assert finding.detail == "no order of all operations has a place for read 2 (6)"


def test_evidence_is_of_the_first_operation_that_has_no_place() -> None:
    play = Play(workload="register")
    for value in (1, 2, 1):
        play.did(0, "write", ["k", value], None)
    play.did(0, "read", ["k", None], ["k", 2])
    for value in (3, 4):
        play.did(0, "write", ["k", value], None)
    last = play.did(0, "read", ["k", None], ["k", 3])
    (finding,) = judge(play.history).findings
    assert max(finding.ops) == last - 6


def test_search_that_remembers_too_much_is_undecided_and_says_which_did() -> None:
    answer = search(hard_history(), QUEUE, Budget(kept=1000))
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
