"""A queue of which only the accounts are asked (Jepsen's `total-queue`): what went in comes out.

    enqueue 3
    dequeue     ok 3; ok None if it was found empty
    drain       ok [3, 4]: as many dequeues

- `phantom`: something came out that nobody put in
- `lost-element`: something was acknowledged, a drain that began later ended, and it never came out

What a dequeue of unknown end took is not known: each of them excuses one element, and a drain of
unknown end all. The order, and what comes out twice, are counted, and wrong for a `queue` only.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest

from jepsen_like.checkers.operations import Operation, exact, malformed, not_of
from jepsen_like.checkers.verdict import Finding, Verdict
from jepsen_like.histories.history import Kind

__all__ = ["Accounts", "accounts_of", "check_total_queue", "verdict_on"]

_SHOWN = 3
_LOST = "what dequeues of unknown end took is not known, and {} elements never came out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """The accounts of some values, with all drains; all of them say together what is wrong."""

    phantoms: Sequence[Finding]  # the first of them
    lost: Sequence[Finding]
    excused: int  # how many elements dequeues of unknown end may have taken
    is_open: bool  # so may a drain
    has_nil: bool
    counts: Mapping[str, int]


def check_total_queue(operations: Sequence[Operation]) -> Verdict:
    """Raises `MalformedHistory`."""
    return verdict_on([accounts_of(operations)])


def accounts_of(operations: Sequence[Operation]) -> Accounts:
    """Raises `MalformedHistory`."""
    asked, came_out = Counter[Hashable](), Counter[Hashable]()
    called: dict[Hashable, int] = {}
    put: dict[Hashable, list[Operation]] = {}
    took: dict[Hashable, Operation] = {}
    for each in operations:
        if each.f == "enqueue":
            if each.kind is not Kind.FAIL:
                asked[_exact(each, each.argument)] += 1
                called.setdefault(_exact(each, each.argument), each.call)
            if each.kind is Kind.OK:
                put.setdefault(_exact(each, each.argument), []).append(each)
        elif each.f not in ("dequeue", "drain"):
            raise not_of(each, "a queue")
        for value in _taken(each):
            came_out[value] += 1
            if value not in took or each.ret < took[value].ret:
                took[value] = each
    phantoms = [each for each, by in took.items() if each not in called or by.ret < called[each]]
    lost = _lost(operations, put, came_out)
    excused = sum(each.f == "dequeue" and each.kind is Kind.INFO for each in operations)
    came = (
        Finding.of("phantom", "queue", f"{each!r} came out, which nobody had put in", took[each])
        for each in phantoms
    )
    never = (
        Finding.of("lost-element", "queue", f"{value!r} was put in, and never came out", by)
        for value, by in lost
    )
    return Accounts(
        phantoms=_first(came),
        lost=_first(never),
        excused=excused,
        is_open=any(each.f == "drain" and each.kind is Kind.INFO for each in operations),
        has_nil=None in asked,
        counts={
            "enqueues": sum(asked.values()),
            "came out": sum(came_out.values()),
            "came out twice": sum(max(0, came_out[each] - asked[each]) for each in asked),
            "recovered": sum(each in asked and each not in put for each in came_out),
            "lost": len(lost),
        },
    )


def verdict_on(parts: Sequence[Accounts]) -> Verdict:
    """The accounts of all values."""
    if any(each.has_nil for each in parts):
        return Verdict.undecided("nil was put in, which cannot be told from nothing")
    counts = Counter[str]()
    for each in parts:
        counts.update(each.counts)
    findings = _first(finding for each in parts for finding in each.phantoms)
    doubts = {}
    excused = sum(each.excused for each in parts)
    if counts["lost"] and (any(each.is_open for each in parts) or counts["lost"] <= excused):
        doubts["queue"] = _LOST.format(counts["lost"])
    else:
        findings += _first(finding for each in parts for finding in each.lost)
    return Verdict.of(findings, dict(counts), objects=["queue"], doubts=doubts)


def _first(findings: Iterable[Finding]) -> list[Finding]:
    return nsmallest(_SHOWN, findings, key=lambda each: (each.ops, each.detail))


def _taken(operation: Operation) -> Sequence[Hashable]:
    if operation.kind is not Kind.OK or operation.f == "enqueue":
        return []
    told = operation.result
    if operation.f == "dequeue":
        return [] if told is None else [_exact(operation, told)]
    if told is None:
        return []
    if not isinstance(told, list | tuple):
        raise malformed(operation, "a drain")
    return [_exact(operation, each) for each in told]


def _exact(operation: Operation, value: object) -> Hashable:
    try:
        return exact(value)
    except TypeError as error:
        raise malformed(operation, f"an {operation.f}") from error


def _lost(
    operations: Sequence[Operation],
    put: dict[Hashable, list[Operation]],
    came_out: Counter[Hashable],
) -> list[tuple[Hashable, Operation]]:
    """Each enqueue that no dequeue answers, and who has put that in: those of the last drain."""
    drains = [each for each in operations if each.f == "drain" and each.kind is Kind.OK]
    last = max((each.call for each in drains if each.result is not None), default=-1)
    missing = []
    for value, by in put.items():
        before = [each for each in by if each.ret < last]
        missing += [(value, each) for each in before[came_out[value] :]]
    return missing
