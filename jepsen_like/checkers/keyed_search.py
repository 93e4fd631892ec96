"""The verdict of a search on one object after the other, with the fewest operations as evidence."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from jepsen_like.checkers.models import Model
from jepsen_like.checkers.operations import NEVER, NO_LINE, Operation, lines_of
from jepsen_like.checkers.search import Answer, Budget, refuted, search
from jepsen_like.checkers.shrink import blamed
from jepsen_like.checkers.verdict import Finding, Outcome, Verdict, compose
from jepsen_like.histories.history import Kind, MalformedHistory, Value

__all__ = ["check_as", "check_by_search", "check_keyed"]

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
    told = [operation.argument]
    if operation.kind is Kind.OK and operation.result is not None:
        told.append(operation.result)
    match told:
        case [[str(name), _], *results]:
            return all(_is_of(name, each) for each in results)
        case _:
            return False


def _is_of(name: str, result: Value) -> bool:
    match result:
        case [other, _]:
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
            key, argument = each.argument
            result = each.result[1] if each.kind is Kind.OK and each.result is not None else None
        except (IndexError, TypeError, ValueError) as error:
            raise MalformedHistory(
                f"operation {each.index}: no [key, value]: {each.argument!r:.100}"
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
    return Finding(
        rule="not-linearizable",
        object=key,
        detail=detail,
        ops=lines_of(blame or [blocked]),
    )


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
