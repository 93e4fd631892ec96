"""The exceptions by which a run reports that a rule is broken."""

__all__ = ["Crash", "Stuck", "Violation"]


class Violation(Exception):
    """A safety invariant does not hold: `invariant` is its id in docs/simulation.md."""

    def __init__(self, invariant: str, detail: str) -> None:
        super().__init__(f"{invariant}: {detail}")
        self.invariant = invariant
        self.detail = detail


class Stuck(Exception):
    """After healing, something that must happen did not happen in time."""

    def __init__(self, bound: str, detail: str) -> None:
        super().__init__(f"{bound}: {detail}")
        self.bound = bound
        self.detail = detail


class Crash(Exception):
    """A core raised, or stopped its process for a reason that no injected fault explains."""

    def __init__(self, cause: str, detail: str) -> None:
        super().__init__(f"{cause}: {detail}")
        self.cause = cause
        self.detail = detail
