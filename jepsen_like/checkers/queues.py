"""The verdict on FIFO queues: every value came from an enqueue, left once, in order, or stays.

- `phantom`, `G1a`: a value was dequeued that nobody enqueued, or whose enqueue failed
- `duplicate-element`: one value was dequeued twice
- `not-linearizable`: it was dequeued before it was enqueued, or no order fits (by search)
- `out-of-order`: a value that came later left before
- `lost-element`: it never left, though a later one did
- `wrongly-empty`: a queue was found empty, and some value was there all the time

Exact where every enqueue brings a value of its own. Otherwise, and where a dequeue of unknown end
leaves open what was there, it is left to a search, queue by queue, under a budget.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from jepsen_like.checkers.log_columns import FAIL, OK
from jepsen_like.checkers.models import QUEUE
from jepsen_like.checkers.operations import Operation, exact
from jepsen_like.checkers.pairing import Column
from jepsen_like.checkers.queue_columns import NOTHING, Covered, QueueColumns, QueueOrder
from jepsen_like.checkers.search import Budget, check_keyed
from jepsen_like.checkers.verdict import Finding, Outcome, Told, Verdict, compose, report

__all__ = [
    "check_queue_columns",
    "check_queues",
    "never_enqueued",
    "pair_of",
    "pairs_of",
    "values_of",
    "with_search",
]


def check_queues(operations: Sequence[Operation], budget: Budget | None = None) -> Verdict:
    def of(left: Collection[str]) -> Sequence[Operation]:
        return [each for each in operations if str(each.argument[0]) in left]

    return with_search(check_queue_columns(QueueColumns.of(operations)), of, budget)


def with_search(
    verdict: Verdict, of: Callable[[Collection[str]], Sequence[Operation]], budget: Budget | None
) -> Verdict:
    """Search the keys that the columns left open; `of` has the operations of some keys."""
    left = {key for key, how in verdict.objects.items() if how is Outcome.UNDECIDED}
    if not left:
        return verdict
    known = {key: how for key, how in verdict.objects.items() if key not in left}
    return compose(
        [
            Verdict.of(verdict.findings, verdict.counts, objects=known),
            check_keyed([_exact(each) for each in of(left)], QUEUE, budget),
        ]
    )


def _exact(operation: Operation) -> Operation:
    argument, result = map(exact, (operation.argument, operation.result))
    return replace(operation, argument=argument, result=result)


def check_queue_columns(columns: QueueColumns) -> Verdict:
    """Undecided where only a search can tell."""
    repeated = set(_names(columns, np.flatnonzero(columns.is_repeated)))
    order = QueueOrder(columns)
    covered = order.covered()
    findings = [
        *values_of(columns),
        *pairs_of(columns, "out-of-order", order.out_of_order()),
        *pairs_of(columns, "lost-element", order.lost()),
        *_wrongly_empty(columns, order, covered),
    ]
    findings = [each for each in findings if each.object not in repeated]
    findings += never_enqueued(columns)
    open_keys = _names(columns, columns.dequeues.key[covered.perhaps])
    doubts = {
        **dict.fromkeys(open_keys, "what dequeues of unknown end took is not known"),
        **dict.fromkeys(repeated, "a value was enqueued twice"),
    }
    broken = {each.object for each in findings}
    return Verdict.of(
        findings,
        {"enqueues": len(columns.enqueues.key), "dequeues": len(columns.dequeues.key)},
        objects=columns.keys,
        doubts={key: why for key, why in sorted(doubts.items()) if key not in broken},
    )


def _names(columns: QueueColumns, keys: Column) -> list[str]:
    return [columns.keys[key] for key in np.unique(keys).tolist()]


def never_enqueued(columns: QueueColumns) -> list[Finding]:
    taken, enqueues = columns.taken, columns.enqueues
    failed = dict(
        zip(
            enqueues.value[enqueues.kind == FAIL].tolist(),
            enqueues.operation[enqueues.kind == FAIL].tolist(),
            strict=True,
        )
    )
    values = np.flatnonzero((taken.dequeue != NOTHING) & (taken.enqueue == NOTHING))
    never = taken.in_order(values)
    has_failed = np.isin(never, list(failed))

    def aborted(at: int) -> Told:
        value = never[has_failed][at]
        told = f"{columns.values[value]!r} was dequeued, and its enqueue failed"
        return told, (failed[value], columns.dequeues.operation[taken.dequeue[value]])

    def phantom(at: int) -> Told:
        value = never[~has_failed][at]
        told = f"{columns.values[value]!r} was dequeued, and nobody enqueued it"
        return told, (columns.dequeues.operation[taken.dequeue[value]],)

    return [
        *report("G1a", columns.keys, taken.key[never[has_failed]], aborted),
        *report("phantom", columns.keys, taken.key[never[~has_failed]], phantom),
    ]


def values_of(columns: QueueColumns) -> list[Finding]:
    """What is wrong with single values, each of which was enqueued once."""
    return [*_twice(columns), *_early(columns)]


def _twice(columns: QueueColumns) -> list[Finding]:
    taken, dequeues = columns.taken, columns.dequeues
    took = np.flatnonzero((dequeues.kind == OK) & (dequeues.value != NOTHING))
    again = took[taken.dequeue[dequeues.value[took]] != took]

    def tell(at: int) -> Told:
        value = dequeues.value[again[at]]
        ops = dequeues.operation[taken.dequeue[value]], dequeues.operation[again[at]]
        return f"{columns.values[value]!r} was dequeued twice", ops

    return report("duplicate-element", columns.keys, dequeues.key[again], tell)


def _early(columns: QueueColumns) -> list[Finding]:
    taken = columns.taken
    is_early = (taken.enqueue != NOTHING) & (taken.dequeue_ret < taken.enqueue_call)
    early = taken.in_order(np.flatnonzero(is_early))

    def tell(at: int) -> Told:
        told = f"{columns.values[early[at]]!r} was dequeued before it was enqueued"
        return told, _places(columns, [early[at]])

    return report("not-linearizable", columns.keys, taken.key[early], tell)


_PAIRS = {
    "out-of-order": "left after {}, which came later",
    "lost-element": "never left, and {} did, which came later",
}


def pairs_of(columns: QueueColumns, rule: str, pairs: tuple[Column, Column]) -> list[Finding]:
    """`pairs`: values that broke the rule, and for each another that shows it."""

    def tell(at: int) -> Told:
        return pair_of(columns, rule, *(int(each[at]) for each in pairs))

    return report(rule, columns.keys, columns.taken.key[pairs[0]], tell)


def pair_of(columns: QueueColumns, rule: str, first: int, second: int) -> tuple[str, list[int]]:
    """The detail, and the places of the operations that show it."""
    told = _PAIRS[rule].format(repr(columns.values[second]))
    return f"{columns.values[first]!r} {told}", _places(columns, [first, second])


def _wrongly_empty(columns: QueueColumns, order: QueueOrder, covered: Covered) -> list[Finding]:
    dequeues, empty = columns.dequeues, covered.surely

    def tell(at: int) -> Told:
        values = order.chain(covered, empty[at])
        told = ", then ".join(repr(columns.values[value]) for value in values)
        shows = (dequeues.operation[empty[at]], *_places(columns, values))
        return f"it was found empty, and {told} was there", shows

    return report("wrongly-empty", columns.keys, dequeues.key[empty], tell)


def _places(columns: QueueColumns, values: Iterable[int]) -> list[int]:
    """The enqueue and the dequeue of each, if there is one."""
    ends = (columns.taken.enqueue, columns.enqueues), (columns.taken.dequeue, columns.dequeues)
    return [
        int(end.operation[rows[value]])
        for value in values
        for rows, end in ends
        if rows[value] != NOTHING
    ]
