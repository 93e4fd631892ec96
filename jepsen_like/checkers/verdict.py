"""A checker's verdict: valid, violated, or undecided, with the evidence.

A verdict is never a guess: what could not be decided says why. Verdicts of several objects, or of
several checkers, compose: one violation outweighs everything, and doubt outweighs validity.

A broken log breaks a rule a million times. `report` makes findings of the first few rows of each
object that break a rule; the rest is a number.

A *place* says in one number where in a history an operation has its invocation and its completion.
Rows carry it instead of the operation, so that what was found far from the history (in columns, in
another process, on another machine) still names the lines that show it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum

import numpy as np
from msgspec import convert

from jepsen_like.checkers.operations import Operation, lines_of
from jepsen_like.checkers.pairing import Column
from jepsen_like.histories.history import MalformedHistory, Value

__all__ = [
    "SHOWN",
    "Finding",
    "Outcome",
    "Told",
    "Verdict",
    "as_json",
    "compose",
    "evidence",
    "from_json",
    "invocation",
    "lines",
    "place",
    "places",
    "report",
]


class Outcome(Enum):
    VALID = "valid"
    UNDECIDED = "undecided"
    VIOLATED = "violated"

    @property
    def exit_code(self) -> int:
        return {Outcome.VALID: 0, Outcome.VIOLATED: 4, Outcome.UNDECIDED: 5}[self]


_WORST_FIRST = (Outcome.VIOLATED, Outcome.UNDECIDED, Outcome.VALID)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One broken rule, with the fewest operations that show it."""

    rule: str  # "lost-write"
    object: str  # "orders-0"
    detail: str  # in plain words, with values and offsets
    ops: tuple[int, ...] = ()  # indexes into the history

    @classmethod
    def of(cls, rule: str, name: str, detail: str, *operations: Operation) -> "Finding":
        """On the object of this name, with all lines of the operations as evidence."""
        return cls(rule=rule, object=name, detail=detail, ops=lines_of(operations))


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    outcome: Outcome
    findings: tuple[Finding, ...] = ()
    reason: str = ""  # why it is undecided
    counts: Mapping[str, Value] = field(default_factory=dict)  # what was looked at
    objects: Mapping[str, Outcome] = field(default_factory=dict)  # of each that was looked at

    @classmethod
    def of(
        cls,
        findings: Iterable[Finding],
        counts: Mapping[str, Value] | None = None,
        *,
        objects: Iterable[str] = (),
        doubts: Mapping[str, str] | None = None,
    ) -> "Verdict":
        """Violated if there is any finding, undecided if there is any doubt, else valid.

        `objects` are all that were looked at; `doubts` says why some of them are undecided.
        """
        found = tuple(findings)
        doubted = doubts or {}
        outcomes = dict.fromkeys(objects, Outcome.VALID)
        outcomes |= dict.fromkeys(doubted, Outcome.UNDECIDED)
        outcomes |= {finding.object: Outcome.VIOLATED for finding in found}
        return cls(
            outcome=_worst(outcomes.values()),
            findings=found,
            reason="; ".join(f"{name}: {why}" for name, why in doubted.items()),
            counts=counts or {},
            objects=outcomes,
        )

    @classmethod
    def undecided(cls, reason: str) -> "Verdict":
        return cls(outcome=Outcome.UNDECIDED, reason=reason)


def compose(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on all of it. What has been counted adds up."""
    parts = list(verdicts)
    objects: dict[str, Outcome] = {}
    counts: dict[str, Value] = {}
    for part in parts:
        for name, count in part.counts.items():
            counts[name] = counts[name] + count if name in counts else count
        for name, outcome in part.objects.items():
            objects[name] = _worst((outcome, objects.get(name, Outcome.VALID)))
    return Verdict(
        outcome=_worst(part.outcome for part in parts),
        findings=tuple(finding for part in parts for finding in part.findings),
        reason="; ".join(part.reason for part in parts if part.reason),
        counts=counts,
        objects=objects,
    )


def as_json(verdict: Verdict) -> dict[str, Value]:
    """The verdict as `verdict.json` holds it, and as scripts get it."""
    return {
        "outcome": verdict.outcome.value,
        "reason": verdict.reason,
        "counts": dict(verdict.counts),
        "objects": {name: outcome.value for name, outcome in verdict.objects.items()},
        "findings": [{**asdict(each), "ops": list(each.ops)} for each in verdict.findings],
    }


def from_json(told: Mapping[str, Value]) -> Verdict:
    """The inverse of `as_json`."""
    return convert(told, Verdict)


def _worst(outcomes: Iterable[Outcome]) -> Outcome:
    return min(outcomes, key=_WORST_FIRST.index, default=Outcome.VALID)


SHOWN = 3  # findings of one rule on one object

# The detail; and the places of the operations that show it, or these themselves.
Told = tuple[str, Iterable[int] | Iterable[Operation]]

_BITS = 31  # histories of up to 2^31 lines
_MASK = (1 << _BITS) - 1


def report(
    rule: str, names: Sequence[str], keys: Column, tell: Callable[[int], Told]
) -> list[Finding]:
    """A finding a row, of the first SHOWN rows of each object; the last of them counts the rest.

    `keys` says for each row by its number which of the `names` its object has.
    """
    shown: dict[int, list[Told]] = {}
    for row, key in enumerate(keys.tolist()):
        told = shown.setdefault(key, [])
        if len(told) < SHOWN:
            told.append(tell(row))
    counts = Counter(keys.tolist())
    findings = []
    for key, told in shown.items():
        for number, (detail, shows) in enumerate(told, 1):
            more = counts[key] - len(told) if number == len(told) else 0
            tail = f" (and {more} more like this)" if more else ""
            ops = evidence(shows)
            findings.append(Finding(rule=rule, object=names[key], detail=detail + tail, ops=ops))
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
    return (invoked << _BITS) | np.where(completed > invoked, completed - invoked, 0)


def lines(places: Column) -> tuple[Column, Column]:
    """The inverse of `places`."""
    invoked, distance = places >> _BITS, places & _MASK
    return invoked, np.where(distance, invoked + distance, -1)


def invocation(place: int) -> int:
    return place >> _BITS


def evidence(shows: Iterable[int] | Iterable[Operation]) -> tuple[int, ...]:
    """All lines of these operations, given by themselves or by their places, each once."""
    lines: set[int] = set()
    for each in shows:
        if isinstance(each, Operation):
            lines |= {*each.evidence}
        else:
            invoked = invocation(int(each))
            lines |= {invoked, invoked + (int(each) & _MASK)}
    return tuple(sorted(lines))
