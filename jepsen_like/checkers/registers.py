"""The verdict on registers, each by the fastest algorithm that is exact for it.

    every change is to a value of its own               zones, all such keys in one pass
    the same, all writes, and each tells a version      versions, in one pass
    a compare-and-set failed and did not tell what of   zones first, and then search
    anything else                                       search, key by key, under a budget

`not-linearizable` is the rule; `phantom` and `G1a` are its simplest cases, and say more: a value
that nobody wrote, or whose write failed. `nonmonotonic-read`: stale reads of one process at one
node went back. For the latter what the registers themselves force is the order of the values.

Where nobody says what registers begin with, one that nil does not explain and another value does is
undecided: see `register_initial`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from jepsen_like.checkers.keyed_search import check_by_search
from jepsen_like.checkers.models import REGISTER
from jepsen_like.checkers.operations import NEVER, Operation
from jepsen_like.checkers.register_accesses import (
    Register,
    never_written,
    new_value,
    registers,
    without_useless,
)
from jepsen_like.checkers.register_chains import happened
from jepsen_like.checkers.register_initial import (
    Initial,
    beginning_with,
    supposed,
    why_doubted,
)
from jepsen_like.checkers.register_versions import check_versions
from jepsen_like.checkers.register_zones import check_zones
from jepsen_like.checkers.search import Budget
from jepsen_like.checkers.verdict import Outcome, Verdict, compose
from jepsen_like.histories.history import Kind

__all__ = ["check_registers"]


def check_registers(
    operations: Sequence[Operation], budget: Budget | None = None, *, initial: Initial = (None,)
) -> Verdict:
    """`initial`: the value that they begin with; empty if nobody knows it."""
    if initial:
        return _checked(beginning_with(operations, initial[0]), budget)
    verdict = _checked(operations, budget)
    doubts = dict(_explained(verdict, operations, budget))
    if not doubts:
        return verdict
    findings = tuple(each for each in verdict.findings if each.object not in doubts)
    why = Verdict.of([], doubts=doubts)
    return replace(
        verdict,
        outcome=Outcome.VIOLATED if findings else Outcome.UNDECIDED,
        findings=findings,
        reason="; ".join(filter(None, [verdict.reason, why.reason])),
        objects={**verdict.objects, **why.objects},
    )


def _explained(
    verdict: Verdict, operations: Sequence[Operation], budget: Budget | None
) -> Iterator[tuple[str, str]]:
    """Broken registers that a value to begin with would make right, and why they are doubted."""
    broken = {each.object: list[Operation]() for each in verdict.findings}
    for operation in operations if broken else ():
        if (own := broken.get(str(operation.argument[0]))) is not None:
            own.append(operation)
    for key, own in broken.items():
        (register,) = registers(own)
        for value in supposed(register):
            if _checked(beginning_with(own, value), budget).outcome is Outcome.VALID:
                yield key, why_doubted(value)


def _checked(operations: Sequence[Operation], budget: Budget | None) -> Verdict:
    zoned, versioned, searched = [], [], []
    for register in registers(operations):
        if not _is_written_once(register):
            searched.append(register)
        elif _has_versions(register):
            versioned.append(register)
        else:
            zoned.append(register)
    by_zones = check_zones([happened(register) for register in zoned])
    searched += [register for register in zoned if _is_left_open(register, by_zones)]
    verdict = compose(
        [
            by_zones,
            check_versions(versioned),
            *(_check_by_search(register, budget) for register in searched),
        ]
    )
    counts = {
        "registers": len({register.key for register in (*zoned, *versioned, *searched)}),
        "by zones": len(zoned),
        "by versions": len(versioned),
        "by search": len(searched),
    }
    return replace(verdict, counts=counts)


def _is_written_once(register: Register) -> bool:
    written = [new_value(each) for each in register.changes]
    return len(set(written)) == len(written) and None not in written


def _has_versions(register: Register) -> bool:
    ended = [each for each in register.accesses if each.ret != NEVER]
    return bool(ended) and all("version" in each.extra and each.f != "cas" for each in ended)


def _is_left_open(register: Register, by_zones: Verdict) -> bool:
    """Zones do not see what a compare-and-set tells that failed: the value was another."""
    is_broken = by_zones.objects[register.key] is Outcome.VIOLATED
    return not is_broken and any(each.kind is Kind.FAIL for each in register.accesses)


def _check_by_search(register: Register, budget: Budget | None) -> Verdict:
    unwritten = list(never_written(register))
    if unwritten:
        return Verdict.of(unwritten)
    return check_by_search(
        register.key, register.accesses, REGISTER, budget, without_useless=without_useless
    )
