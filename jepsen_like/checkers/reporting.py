"""From rows that break a rule to findings that a person can read: the first of each object.

A broken log breaks a rule a million times. The first few say what is wrong; the rest is a number.

A *place* says in one number where in a history an operation has its invocation and its completion.
Rows carry it instead of the operation, so that what was found far from the history (in columns, in
another process, on another machine) still names the lines that show it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from jepsen_like.checkers.operations import Operation
from jepsen_like.checkers.verdict import Finding
from jepsen_like.histories.history import MalformedHistory

__all__ = ["SHOWN", "Told", "evidence", "invocation", "lines", "place", "places", "report"]

SHOWN = 3  # findings of one rule on one object

Told = tuple[str, tuple[int, ...]]  # the detail, and the evidence


Column = NDArray[np.int64]
_BITS = 31  # histories of up to 2^31 lines
_MASK = (1 << _BITS) - 1


def report(
    rule: str, rows: Iterable[int], name: Callable[[int], str], tell: Callable[[int], Told]
) -> list[Finding]:
    """A finding a row, of the first SHOWN rows of each object; the last of them counts the rest."""
    of_object: Counter[str] = Counter()
    shown: dict[str, list[Told]] = {}
    for row in rows:
        of = name(row)
        of_object[of] += 1
        if of_object[of] <= SHOWN:
            shown.setdefault(of, []).append(tell(row))
    return [
        finding for of, told in shown.items() for finding in _findings(rule, of, told, of_object)
    ]


def _findings(rule: str, of: str, told: Sequence[Told], counted: Counter[str]) -> list[Finding]:
    more = counted[of] - len(told)
    findings = []
    for place, (detail, evidence) in enumerate(told, 1):
        tail = f" (and {more} more like this)" if more and place == len(told) else ""
        findings.append(Finding(rule=rule, object=of, detail=detail + tail, ops=evidence))
    return findings


def place(operation: Operation) -> int:
    """Raises `MalformedHistory` where the index is that of no line."""
    index, completed = operation.index, operation.ret_index
    if not 0 <= index <= _MASK or (completed or 0) > _MASK:
        raise MalformedHistory(f"index {max(index, completed or index)}: no line of a history")
    return index << _BITS | (0 if completed is None else max(completed - index, 0))


def places(invoked: Column, completed: Column) -> Column:
    """The places of many operations; `completed` is -1 where there is no completion."""
    assert int(max(invoked.max(initial=0), completed.max(initial=0))) <= _MASK
    return (invoked << _BITS) | np.where(completed >= 0, completed - invoked, 0)


def lines(places: Column) -> tuple[Column, Column]:
    """What `places` was made of."""
    invoked, distance = places >> _BITS, places & _MASK
    return invoked, np.where(distance, invoked + distance, -1)


def invocation(place: int) -> int:
    return place >> _BITS


def evidence(places: Iterable[int]) -> tuple[int, ...]:
    """All lines of these operations, each once."""
    lines = set()
    for each in places:
        lines |= {invocation(each), invocation(each) + (each & _MASK)}
    return tuple(sorted(lines))
