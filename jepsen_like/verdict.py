"""What a checker says: valid, violated, or undecided, with the evidence.

A verdict is never a guess: what could not be decided says why. Verdicts of several objects, or of
several checkers, compose: one violation outweighs everything, and doubt outweighs validity.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from jepsen_like.history import Value

__all__ = ["Finding", "Outcome", "Verdict", "compose"]


class Outcome(Enum):
    VALID = "valid"
    UNDECIDED = "undecided"
    VIOLATED = "violated"

    @property
    def exit_code(self) -> int:
        return {Outcome.VALID: 0, Outcome.VIOLATED: 4, Outcome.UNDECIDED: 5}[self]


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

    @classmethod
    def of(
        cls, findings: Iterable[Finding], counts: Mapping[str, Value] | None = None
    ) -> "Verdict":
        """Violated if there is any finding, else valid."""
        found = tuple(findings)
        outcome = Outcome.VIOLATED if found else Outcome.VALID
        return cls(outcome=outcome, findings=found, counts=counts or {})

    @classmethod
    def undecided(cls, reason: str) -> "Verdict":
        return cls(outcome=Outcome.UNDECIDED, reason=reason)


def compose(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on all of it."""
    parts = list(verdicts)
    outcomes = {part.outcome for part in parts}
    worst = next(
        (each for each in (Outcome.VIOLATED, Outcome.UNDECIDED) if each in outcomes), Outcome.VALID
    )
    return Verdict(
        outcome=worst,
        findings=tuple(finding for part in parts for finding in part.findings),
        reason="; ".join(part.reason for part in parts if part.reason),
        counts={name: count for part in parts for name, count in part.counts.items()},
    )
