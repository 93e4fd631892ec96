"""The exceptions by which a run reports that a rule is broken."""

from typing import ClassVar

__all__ = ["BrokenRule", "Crash", "Stuck", "Violation"]


class BrokenRule(Exception):
    """`rule`: an invariant or a bound of docs/simulation.md, or the cause of a crash."""

    kind: ClassVar[str]  # of the ending of a run

    def __init__(self, rule: str, detail: str) -> None:
        super().__init__(f"{rule}: {detail}")
        self.rule = rule
        self.detail = detail


class Violation(BrokenRule):
    """A safety invariant does not hold."""

    kind = "safety"


class Stuck(BrokenRule):
    """After healing, something that must happen did not happen in time."""

    kind = "liveness"


class Crash(BrokenRule):
    """A core raised, or stopped its process for a reason that no injected fault explains."""

    kind = "crash"
