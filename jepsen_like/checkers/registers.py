"""The verdict on registers, each by the fastest algorithm that is exact for it.

    every write is of a value of its own, no compare-and-set    zones, all such keys in one pass
    the same, and all that ended tells a version                versions, in one pass
    anything else                                               search, key by key, under a budget

`not-linearizable` is the rule; `phantom` and `G1a` are its simplest cases, and say more: a value
that nobody wrote, or whose write failed. `nonmonotonic-read`: stale reads of one process at one
node went back. For the latter what the registers themselves force is the order of the values.
"""

from collections.abc import Sequence

from jepsen_like.checkers.keyed_search import check_by_search
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
from jepsen_like.checkers.search import Budget
from jepsen_like.history import Kind
from jepsen_like.verdict import Verdict, compose

__all__ = ["check_registers"]


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
    return check_by_search(
        register.key, register.accesses, REGISTER, budget, without_useless=_without_unread
    )


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
