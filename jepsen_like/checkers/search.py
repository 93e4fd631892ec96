"""Is there an order of the operations that their intervals and the model allow? By search.

For objects that carry no witness of their order. Searches take turns, since each is fast where the
others are slow: depth first finds an order soon if there is one, and the frontier proves soon that
there is none; with many unknown operations, it does so sooner if it allows more than is true.
Whichever decides first has decided; if none does within the budget, the answer is undecided. The
budget is looked at inside the loops.

Exponential in the number of operations open at a time, at worst; so is the problem.
Source: Wing and Gong 1993; Lowe 2017; Porcupine and Knossos for what is worth remembering.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count

from jepsen_like.checkers.models import Model
from jepsen_like.checkers.operations import NEVER, Operation
from jepsen_like.checkers.search_answer import TURN, Answer, Search
from jepsen_like.checkers.search_depth import depth_first
from jepsen_like.checkers.search_frontier import frontier
from jepsen_like.checkers.search_refuting import refuting
from jepsen_like.checkers.verdict import Outcome

__all__ = ["Answer", "Budget", "refuted", "search"]

_SELDOM = 8  # turns of the others: the frontier remembers every choice of unknown operations


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a search may take. A core knows no clock: whoever has one says when it is late."""

    steps: int = 1_000_000  # configurations looked at, by all searches: half a minute or so
    kept: int = 1_000_000  # configurations remembered by each: some hundred MB
    is_late: Callable[[], bool] = _never


@dataclass(slots=True)
class _Searcher:
    name: str
    search: Search
    rounds: int = 1  # until it has a turn
    why_stopped: str = ""


def search(operations: Sequence[Operation], model: Model, budget: Budget | None = None) -> Answer:
    """`operations` of one object, in order of their calls. None has failed without effect; reads
    are ok."""
    allowed = budget or Budget()
    searchers = [
        _Searcher("depth first", depth_first(operations, model)),
        _Searcher("frontier", frontier(operations, model)),
    ]
    if any(each.ret == NEVER for each in operations):
        searchers[1].rounds = _SELDOM
        searchers.append(_Searcher("refuting", refuting(operations, model)))
    return _decided(searchers, allowed)


def refuted(operations: Sequence[Operation], model: Model, budget: Budget) -> Answer:
    """Violated, or undecided: only the search that allows more than is true."""
    return _decided([_Searcher("refuting", refuting(operations, model))], budget)


def _decided(searchers: Sequence[_Searcher], allowed: Budget) -> Answer:
    steps = 0
    for number in count():
        running = [each for each in searchers if not each.why_stopped]
        if not running:
            break
        for searcher in (each for each in running if number % each.rounds == 0):
            try:
                kept = next(searcher.search)
            except StopIteration as end:
                answer: Answer = end.value
                if answer.outcome is not Outcome.UNDECIDED:
                    return replace(answer, steps=steps)
                searcher.why_stopped = answer.reason
                continue
            steps += TURN
            if kept > allowed.kept:
                searcher.why_stopped = f"{searcher.name} remembers {kept} configurations"
                searcher.search.close()
        if steps > allowed.steps or allowed.is_late():
            late = f"not decided after {steps} configurations"
            return Answer(outcome=Outcome.UNDECIDED, reason=late, steps=steps)
    full = " and ".join(each.why_stopped for each in searchers)
    return Answer(outcome=Outcome.UNDECIDED, reason=full, steps=steps)
