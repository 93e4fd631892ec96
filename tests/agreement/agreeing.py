"""Whether all ways to judge a history agree: all orders tried, the searches, the fast checker."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from jepsen_like.checkers.models import ILLEGAL, Model
from jepsen_like.checkers.operations import NEVER, Operation, operations
from jepsen_like.checkers.search import Answer, Budget, refuted, search
from jepsen_like.checkers.search_depth import Search, depth_first
from jepsen_like.checkers.search_frontier import frontier
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories.history import History, Kind
from tests.agreement.models import Agreed
from tests.agreement.playing import played
from tests.agreement.rows import Tally
from tests.jepsen_like.checkers.oracle import Step, is_linearizable

__all__ = ["compared", "history_of"]

_BOUNDED = Budget(steps=2000)  # what may happen again and again may do so without end


def history_of(name: str, agreed: Agreed, number: int) -> History:
    random = Random(f"{name}-{number}")
    return played(agreed.simulated(random), random).history


def compared(name: str, agreed: Agreed, numbers: Iterable[int]) -> Tally:
    tally = Tally()
    for number in numbers:
        history = history_of(name, agreed, number)
        mine = list(_able(history, agreed))
        is_right = is_linearizable(mine, agreed.initial, _steps(agreed))
        truth = Outcome.VALID if is_right else Outcome.VIOLATED
        verdict = agreed.fast(history)
        fast = verdict.outcome
        tally.add_reason(verdict, f"{name} {number}")
        tally.truth[truth] += 1
        tally.unknown += any(each.ret == NEVER for each in mine)
        tally.undecided += fast is Outcome.UNDECIDED
        for who, outcome in _searched(mine, agreed.model):
            if outcome is not truth:
                tally.wrong.append(f"{name} {number}: {who} says {outcome}, truth is {truth}")
        if fast not in (truth, Outcome.UNDECIDED):
            tally.wrong.append(f"{name} {number}: fast says {fast}, truth is {truth}")
    return tally


def _able(history: History, agreed: Agreed) -> Iterator[Operation]:
    """What says something: not reads without an answer, nor what failed and tells nothing."""
    for each in operations(history.ops):
        says_nothing = each.kind is Kind.FAIL and not each.extra
        if says_nothing or (each.ret == NEVER and each.f in agreed.reads):
            continue
        if not agreed.is_keyed:
            yield each
        elif each.kind is Kind.OK:
            yield replace(each, argument=each.argument[1], result=each.result[1])
        else:
            yield replace(each, argument=each.argument[1], result=None)


def _searched(mine: Sequence[Operation], model: Model) -> Iterator[tuple[str, Outcome]]:
    """By all searches in turns, by each alone; the one that only refutes, if it does."""
    yield "search", search(mine, model).outcome
    refutes = refuted(mine, model, _BOUNDED).outcome
    if refutes is not Outcome.UNDECIDED:
        yield "refuted", refutes
    for each in (depth_first, frontier):
        yield each.__name__, _ended(each(mine, model))


def _ended(running: Search) -> Outcome:
    while True:
        try:
            next(running)
        except StopIteration as end:
            answer: Answer = end.value
            return answer.outcome


def _steps(agreed: Agreed) -> Step:
    def steps(state: Any, operation: Operation) -> Sequence[Any]:
        after = agreed.step(state, operation)
        return [] if after is ILLEGAL else [after]

    return steps
