"""Judges that look on and say nothing: then only what clients saw can tell that a rule broke.

They go on to look, since schedules ask them what has been committed. Once one is violated, others
may find nothing where they look, and fail by their own assertions: this says nothing either. Before
that, such a failure is a mistake in the judge, and is told.
"""

from jepsen_like.sim.violation import Violation

__all__ = ["Tolerance"]


class Tolerance:
    """Of one run. Within it, what a judge raises is dropped, and the rest of the block too."""

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
