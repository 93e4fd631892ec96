"""Is there an order of the operations that their intervals and the model allow? By search.

This is for objects that carry no witness of their order. Searches take turns, since each is fast
where the others are slow: depth first finds an order soon if there is one, and the frontier proves
soon that there is none; with many unknown operations, it does so sooner if it allows more than is
true. Registers have a frontier of their own. The first search that decides has decided; if none
does within the budget, the answer is undecided. The budget is looked at inside the loops.

Exponential in the number of operations open at a time, at worst; so is the problem.
Source: Wing and Gong 1993; Lowe 2017; Porcupine and Knossos for what is worth remembering.

The evidence of a violation is the fewest operations that still show it. A part of a history proves
something about the whole only if leaving the rest out can make nothing worse. Reads may be left
out. What changes the state may not: without a write, a read of it would be wrong. So a change is
made unknown instead: it may happen at any time after its call, or never. The operations that must
stay as they are, so that there still is no order, are the evidence. Source: Zeller and Hildebrandt,
"Simplifying and isolating failure-inducing input" (ddmin).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, islice
from typing import TypeVar

from jepsen_like.checkers.models import REGISTER, Model
from jepsen_like.checkers.operations import NEVER, NO_LINE, Operation, pair_of
from jepsen_like.checkers.register_search import register_frontier
from jepsen_like.checkers.search_depth import TURN, Answer, Search, asked, depth_first
from jepsen_like.checkers.search_frontier import frontier, refuting
from jepsen_like.checkers.verdict import Finding, Outcome, Verdict, compose
from jepsen_like.histories.history import Kind, MalformedHistory

__all__ = [
    "Answer",
    "Budget",
    "check_as",
    "check_by_search",
    "check_keyed",
    "refuted",
    "search",
    "smallest",
]

_SELDOM = 8  # turns of the others: the frontier remembers every choice of unknown operations


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The bounds of a search. A core knows no clock: its caller says when it is late."""

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
    is_register, has_unknown = model is REGISTER, any(each.ret == NEVER for each in operations)
    proves = register_frontier(operations) if is_register else frontier(operations, model)
    searchers = [
        _Searcher("depth first", depth_first(operations, model)),
        _Searcher("frontier", proves, _SELDOM if has_unknown and not is_register else 1),
    ]
    if has_unknown:
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


Item = TypeVar("Item")
TRIES = 400  # of one shrinking
_FIRST_TRIED = 4  # operations


def smallest(items: Sequence[Item], still: Callable[[Sequence[Item]], bool]) -> list[Item]:
    """Some of the items, of which none can be left out, or what TRIES have come to."""
    kept, parts, tries = list(items), 2, 0
    while len(kept) > 1 and tries < TRIES:
        size = -(-len(kept) // parts)
        for begin in range(0, len(kept), size):
            rest = kept[:begin] + kept[begin + size :]
            tries += 1
            if rest and still(rest):
                kept, parts = rest, max(parts - 1, 2)
                break
        else:
            if size == 1:
                break
            parts = min(2 * parts, len(kept))
    return kept


def blamed(
    operations: Sequence[Operation],
    blocked: Operation,
    model: Model,
    violates: Callable[[Sequence[Operation]], bool],
    *,
    repeats: bool,
) -> list[Operation]:
    """Operations that together have no order, whatever the others did; [] if none were found.

    They are sought in what began before the return of `blocked`, and then in everything. `repeats`:
    for `violates` an unknown operation happens as often as it likes, so that of those that ask for
    the same the first will do.
    """
    for past in ([each for each in operations if each.call < blocked.ret], list(operations)):
        ended = [each for each in past if each.ret <= blocked.ret or len(past) == len(operations)]
        relaxed = _Relaxed.of(past, model, repeats=repeats)
        ended = [each for each in ended if each.ret != NEVER]

        def still(hard: Sequence[Operation], relaxed: _Relaxed = relaxed) -> bool:
            return violates(relaxed.but(hard))

        found = smallest(_tail(ended, still), still)
        if found:
            return found
    return []


def _tail(
    ended: Sequence[Operation], still: Callable[[Sequence[Operation]], bool]
) -> list[Operation]:
    """Most violations are young: the last few operations, or twice as many, or all, or none."""
    latest = sorted(ended, key=lambda each: -each.ret)
    size = _FIRST_TRIED
    while latest:
        if still(latest[:size]):
            return sorted(latest[:size], key=lambda each: each.call)
        if size >= len(latest):
            break
        size *= 2
    return []


@dataclass(frozen=True, slots=True)
class _Relaxed:
    """All changes of unknown end, by what they ask for; reads are left out."""

    alike: Sequence[Sequence[Operation]]  # by their calls
    repeats: bool

    @classmethod
    def of(cls, operations: Sequence[Operation], model: Model, *, repeats: bool) -> "_Relaxed":
        alike: dict[str, list[Operation]] = {}
        for each in operations:
            if not model.is_read(each):
                relaxed = replace(each, kind=Kind.INFO, ret=NEVER)
                alike.setdefault(asked(each), []).append(relaxed)
        return cls(list(alike.values()), repeats)

    def but(self, hard: Sequence[Operation]) -> list[Operation]:
        """With these as they are. In the order of their calls."""
        kept = {each.index for each in hard}
        found = list(hard)
        for group in self.alike:
            others = (each for each in group if each.index not in kept)
            found += islice(others, 1 if self.repeats else None)
        return sorted(found, key=lambda each: each.call)


# The evidence is searched for again and again; what is found when this is spent must do.
_SHRINKING_STEPS, _STEPS_A_TRY = 60_000, 6_000

Prune = Callable[[Sequence[Operation]], list[Operation]]
_Prove = Callable[[Sequence[Operation], Model, Budget], Answer]


def check_as(operations: Sequence[Operation], model: Model, budget: Budget | None) -> Verdict:
    """By a model that nobody knew: if all values are [key, value], the key a name, there is an
    object for each key; otherwise there is one."""
    if all(map(_has_names, operations)):
        return check_keyed(operations, model, budget)
    named = [
        replace(each, argument=["", each.argument], result=["", each.result]) for each in operations
    ]
    return check_keyed(named, model, budget)


def _has_names(operation: Operation) -> bool:
    match operation.argument, operation.result if operation.kind is Kind.OK else None:
        case [str(), _], None:
            return True
        case [str(name), _], [other, _]:
            return bool(other == name)
        case _:
            return False


def check_keyed(operations: Sequence[Operation], model: Model, budget: Budget | None) -> Verdict:
    """Objects of any model: arguments and results are [key, value], and what failed did nothing."""
    keyed: dict[str, list[Operation]] = {}
    for each in operations:
        if each.kind is Kind.FAIL or (each.ret == NEVER and each.f in model.reads):
            continue
        try:
            key, argument = pair_of(each.argument)
            is_told = each.kind is Kind.OK and each.result is not None
            result = pair_of(each.result)[1] if is_told else None
        except ValueError as error:
            raise MalformedHistory(
                f"operation {each.index}: no [key, value]: "
                f"{each.argument!r:.100} -> {each.result!r:.100}"
            ) from error
        keyed.setdefault(str(key), []).append(replace(each, argument=argument, result=result))
    return compose(check_by_search(key, own, model, budget) for key, own in keyed.items())


def check_by_search(
    key: str,
    operations: Sequence[Operation],
    model: Model,
    budget: Budget | None,
    *,
    without_useless: Prune = list,
) -> Verdict:
    """`without_useless` leaves out unknown operations that no order needs."""
    kept = without_useless(operations)
    answer = search(kept, model, budget)
    match answer.outcome:
        case Outcome.VALID:
            return Verdict.of([], objects=[key])
        case Outcome.UNDECIDED:
            return Verdict.of([], doubts={key: answer.reason})
        case Outcome.VIOLATED:
            assert answer.blocked is not None, key
            evidence = _Evidence(model, without_useless, (budget or Budget()).is_late)
            return Verdict.of([_finding(key, kept, answer.blocked, evidence)])


def _finding(
    key: str,
    operations: Sequence[Operation],
    blocked: Operation,
    evidence: "_Evidence",
) -> Finding:
    for prove in (refuted, search):  # in nearly every history the quick proof will do
        violates, repeats = partial(evidence.violates, prove), prove is refuted
        evidence.left = _SHRINKING_STEPS
        if blame := blamed(operations, blocked, evidence.model, violates, repeats=repeats):
            break
    told = ", ".join(map(_told_with_line, blame))
    detail = f"no order of these fits, whatever else happened: {told}"
    if not blame:
        detail = f"no order of all operations has a place for {_told_with_line(blocked)}"
    return Finding.of("not-linearizable", key, detail, *(blame or [blocked]))


@dataclass(slots=True)
class _Evidence:
    """Whether some operations show a violation: as often as the steps and the time allow it."""

    model: Model
    without_useless: Prune
    is_late: Callable[[], bool]
    left: int = _SHRINKING_STEPS

    def violates(self, prove: _Prove, part: Sequence[Operation]) -> bool:
        if self.left <= 0 or self.is_late():
            return False
        budget = Budget(steps=min(self.left, _STEPS_A_TRY), is_late=self.is_late)
        answer = prove(self.without_useless(part), self.model, budget)
        self.left -= max(answer.steps, len(part))
        return answer.outcome is Outcome.VIOLATED


def _told_with_line(operation: Operation) -> str:
    if operation.index == NO_LINE:
        return f"it begins with {operation.argument!r:.60}"
    return f"{_told(operation)} ({operation.index})"


def _told(operation: Operation) -> str:
    failed = "failed " if operation.kind is Kind.FAIL else ""
    what = operation.result if operation.argument is None else operation.argument
    return f"{failed}{operation.f} {what!r:.60}"
