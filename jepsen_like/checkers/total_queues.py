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
from collections.abc import Hashable, Sequence

from jepsen_like.checkers.operations import Operation, exact, malformed, not_of
from jepsen_like.checkers.verdict import Finding, Verdict
from jepsen_like.histories.history import Kind

__all__ = ["check_total_queue"]

_SHOWN = 3
_LOST = "what dequeues of unknown end took is not known, and {} elements never came out"


def check_total_queue(operations: Sequence[Operation]) -> Verdict:
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
    if None in asked:
        return Verdict.undecided("nil was put in, which cannot be told from nothing")
    phantoms = [each for each, by in took.items() if each not in called or by.ret < called[each]]
    lost = _lost(operations, put, came_out)
    findings = [
        Finding.of("phantom", "queue", f"{value!r} came out, which nobody had put in", took[value])
        for value in phantoms[:_SHOWN]
    ]
    excused = sum(each.f == "dequeue" and each.kind is Kind.INFO for each in operations)
    is_open = any(each.f == "drain" and each.kind is Kind.INFO for each in operations)
    doubts = {}
    if lost and (is_open or len(lost) <= excused):
        doubts["queue"] = _LOST.format(len(lost))
    else:
        findings += [
            Finding.of("lost-element", "queue", f"{value!r} was put in, and never came out", by)
            for value, by in lost[:_SHOWN]
        ]
    counts = {
        "enqueues": sum(asked.values()),
        "came out": sum(came_out.values()),
        "came out twice": sum(max(0, came_out[each] - asked[each]) for each in asked),
        "recovered": sum(each in asked and each not in put for each in came_out),
        "lost": len(lost),
    }
    return Verdict.of(findings, counts, objects=["queue"], doubts=doubts)


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
