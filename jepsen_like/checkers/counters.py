"""A counter (Jepsen's `counter`): each read lies between what it must have seen and what it may.

    add 3
    read     ok 7

It must have seen what was acknowledged before it began. It may have seen what had been asked for by
the time when it ended; of that, an amount below zero lowers what it must show. `out-of-range` is
the rule. Whether the reads fit into one order is not asked.
"""

from collections.abc import Sequence

import numpy as np

from jepsen_like.checkers.operations import Operation, malformed, not_of
from jepsen_like.checkers.pairing import Column
from jepsen_like.checkers.verdict import Finding, Verdict
from jepsen_like.histories.history import Kind

__all__ = ["check_counter"]

_SHOWN = 3
_AMOUNT_MAX = 1 << 40  # sums of these stay numbers of 64 bits


def check_counter(operations: Sequence[Operation]) -> Verdict:
    """Raises `MalformedHistory`."""
    for each in operations:
        if each.f not in ("add", "read"):
            raise not_of(each, "a counter")
    adds = [each for each in operations if each.f == "add" and each.kind is not Kind.FAIL]
    reads = [each for each in operations if each.f == "read" and each.kind is Kind.OK]
    amount = _numbers(adds, [each.argument for each in adds])
    seen = _numbers(reads, [each.result for each in reads])
    calls, rets = (
        np.array([getattr(each, of) for each in reads], np.int64) for of in ("call", "ret")
    )
    low = high = np.zeros(len(reads), np.int64)
    for sign in (1, -1):
        of_sign = amount * sign > 0
        asked = _sums([each.call for each in adds], amount * of_sign, rets)
        surely = _sums([each.ret for each in adds], amount * of_sign, calls)
        low = low + (surely if sign > 0 else asked)
        high = high + (asked if sign > 0 else surely)
    wrong = np.flatnonzero((seen < low) | (seen > high))
    findings = [
        Finding.of(
            "out-of-range",
            "counter",
            f"{reads[at].index} read {seen[at]}, which must lie from {low[at]} to {high[at]}",
            reads[at],
        )
        for at in wrong[:_SHOWN].tolist()
    ]
    return Verdict.of(findings, {"adds": len(adds), "reads": len(reads), "wrong": len(wrong)})


def _numbers(operations: Sequence[Operation], told: Sequence[object]) -> Column:
    for operation, each in zip(operations, told, strict=True):
        if type(each) is not int or abs(each) > _AMOUNT_MAX:
            raise malformed(operation, f"{operation.f} of a counter")
    return np.array(told, np.int64)


def _sums(moments: Sequence[int], amounts: Column, until: Column) -> Column:
    """What had come together before each of the moments `until`."""
    moment = np.array(moments, np.int64)
    order = np.argsort(moment, kind="stable")
    sums = np.concatenate([[0], np.cumsum(amounts[order])])
    return sums[np.searchsorted(moment[order], until)]
