"""What a checker says: valid, violated, or undecided, with the evidence.

A verdict is never a guess: what could not be decided says why. Verdicts of several objects, or of
several checkers, compose: one violation outweighs everything, and doubt outweighs validity.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from jepsen_like.histories.history import Value

__all__ = ["Finding", "Outcome", "Verdict", "as_json", "compose", "from_json"]


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
    """What `verdict.json` holds, and what scripts are told."""
    return {
        "outcome": verdict.outcome.value,
        "reason": verdict.reason,
        "counts": dict(verdict.counts),
        "objects": {name: outcome.value for name, outcome in verdict.objects.items()},
        "findings": [
            {
                "rule": finding.rule,
                "object": finding.object,
                "detail": finding.detail,
                "ops": list(finding.ops),
            }
            for finding in verdict.findings
        ],
    }


def from_json(told: Mapping[str, Value]) -> Verdict:
    """What `as_json` made of a verdict."""
    return Verdict(
        outcome=Outcome(told["outcome"]),
        findings=tuple(
            Finding(
                rule=each["rule"],
                object=each["object"],
                detail=each["detail"],
                ops=tuple(each["ops"]),
            )
            for each in told["findings"]
        ),
        reason=told["reason"],
        counts=told["counts"],
        objects={name: Outcome(outcome) for name, outcome in told["objects"].items()},
    )


def _worst(outcomes: Iterable[Outcome]) -> Outcome:
    return min(outcomes, key=_WORST_FIRST.index, default=Outcome.VALID)
