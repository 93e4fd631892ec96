"""The verdict on registers, each by the fastest algorithm that is exact for it.

    every write is of a value of its own, no compare-and-set    zones, all such keys in one pass
    the same, and all that ended tells a version                versions, in one pass
    anything else                                               search, key by key, under a budget

`not-linearizable` is the rule; `phantom` and `G1a` are its simplest cases, and say more: a value
that nobody wrote, or whose write failed. `nonmonotonic-read`: stale reads of one process at one
node went back. For the latter what the registers themselves force is the order of the values.
"""

from collections.abc import Sequence

from jepsen_like.checkers.models import REGISTER
from jepsen_like.checkers.operations import NEVER, Operation
from jepsen_like.checkers.register_accesses import (
    Register,
    never_written,
    new_value,
    registers,
)
from jepsen_like.checkers.register_versions import check_versions
from jepsen_like.checkers.register_zones import check_zones
from jepsen_like.checkers.search import Budget, search
from jepsen_like.checkers.shrink import blamed
from jepsen_like.history import Kind
from jepsen_like.verdict import Finding, Outcome, Verdict, compose

__all__ = ["check_registers"]

# A search for the evidence looks again and again: each time with a small part of the budget.
_SHRINKING = Budget(steps=20_000, kept=20_000)


def check_registers(operations: Sequence[Operation], budget: Budget | None = None) -> Verdict:
    zoned, versioned, searched = [], [], []
    for register in registers(operations):
        if not _is_written_once(register):
            searched.append(register)
        elif all("version" in each.extra for each in register.accesses if each.ret != NEVER):
            versioned.append(register)
        else:
            zoned.append(register)
    verdict = compose(
        [
            check_zones(zoned),
            check_versions(versioned),
            *(_check_by_search(register, budget) for register in searched),
        ]
    )
    counts = {
        "registers": len(zoned) + len(versioned) + len(searched),
        "by zones": len(zoned),
        "by versions": len(versioned),
        "by search": len(searched),
    }
    return Verdict(
        outcome=verdict.outcome,
        findings=verdict.findings,
        reason=verdict.reason,
        counts=counts,
        objects=verdict.objects,
    )


def _is_written_once(register: Register) -> bool:
    written = [each.argument for each in register.changes]
    is_cas = any(each.f == "cas" for each in register.accesses)
    return not is_cas and len(set(written)) == len(written) and None not in written


def _check_by_search(register: Register, budget: Budget | None) -> Verdict:
    unwritten = list(never_written(register))
    if unwritten:
        return Verdict.of(unwritten)
    operations = _without_unread(register.accesses)
    answer = search(operations, REGISTER, budget)
    match answer.outcome:
        case Outcome.VALID:
            return Verdict.of([], objects=[register.key])
        case Outcome.UNDECIDED:
            return Verdict.of([], doubts={register.key: answer.reason})
        case Outcome.VIOLATED:
            return Verdict.of([_finding(register.key, operations, answer.blocked)])


def _finding(key: str, operations: Sequence[Operation], blocked: Operation | None) -> Finding:
    assert blocked is not None, key
    blame = blamed(
        operations,
        blocked,
        REGISTER,
        lambda part: (
            search(_without_unread(part), REGISTER, _SHRINKING).outcome is Outcome.VIOLATED
        ),
    )
    told = ", ".join(f"{_told(each)} ({each.index})" for each in blame)
    return Finding(
        rule="not-linearizable",
        object=key,
        detail=f"no order of these fits, whatever else happened: {told}",
        ops=tuple(sorted(index for each in blame for index in each.evidence)),
    )


def _told(operation: Operation) -> str:
    match operation.f:
        case "read":
            return f"read {operation.result!r}"
        case "cas":
            expected, new = operation.argument
            failed = "failed " if operation.kind is Kind.FAIL else ""
            return f"{failed}cas {expected!r} to {new!r}"
        case _:
            return f"{operation.f} {operation.argument!r}"


def _without_unread(operations: Sequence[Operation]) -> list[Operation]:
    """Without unknown changes to values that nobody saw or expected: they need not have happened.

    One may only have helped a compare-and-set to fail that tells no more than that.
    """
    if any(each.kind is Kind.FAIL for each in operations):
        return list(operations)
    kept = list(operations)
    while True:
        wanted = {each.result for each in kept if each.f == "read"}
        wanted |= {each.argument[0] for each in kept if each.f == "cas"}
        useful = [each for each in kept if each.ret != NEVER or new_value(each) in wanted]
        if len(useful) == len(kept):
            return kept
        kept = useful
