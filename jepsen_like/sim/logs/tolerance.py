"""Tolerance: invariants are checked but do not end the run, so that only its history is judged.

The invariants go on, since schedules ask them what has been committed. Once one is violated, others
may fail by their own assertions, and that is ignored, too. An assertion that fails before any
violation is a mistake in the invariant, and is raised.
"""

from jepsen_like.sim.violation import Violation

__all__ = ["Tolerance"]


class Tolerance:
    """A run tolerates what a judge raises in such a block, and leaves the rest of it out."""

    __slots__ = ("is_broken",)

    def __init__(self) -> None:
        self.is_broken = False  # has an invariant been violated?

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if isinstance(error, Violation):
            self.is_broken = True
            return True
        return self.is_broken and isinstance(error, LookupError | AssertionError)
