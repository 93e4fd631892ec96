"""Invariants that look on and say nothing: then only what clients saw can tell that a rule broke.

They go on to look, since schedules ask them what has been committed. Once one is violated, others
may find nothing where they look, and fail by their own assertions: this says nothing either. Before
that, such a failure is a mistake in the invariant, and is told.
"""

from jepsen_like.sim.host import Host, Watch
from jepsen_like.sim.logtree import Entry, LogTree
from jepsen_like.sim.violation import Violation
from quorum.core.effects import Effect, Event

__all__ = ["Tolerance", "TolerantTree", "Unjudged"]


class Tolerance:
    """Of one run. Within it, what an invariant raises is dropped, and the rest of the block too."""

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


class Unjudged:
    """Passes on what `watch` is told, and drops what it objects to."""

    def __init__(self, watch: Watch, tolerance: Tolerance) -> None:
        self._watch = watch
        self._tolerance = tolerance

    def received(self, host: Host, event: Event) -> None:
        with self._tolerance:
            self._watch.received(host, event)

    def performing(self, host: Host, effect: Effect) -> None:
        with self._tolerance:
            self._watch.performing(host, effect)

    def replying(self, host: Host, token: int, request: object, response: object) -> None:
        with self._tolerance:
            self._watch.replying(host, token, request, response)

    def counted(self, host: Host) -> None:
        with self._tolerance:
            self._watch.counted(host)

    def settled(self, host: Host, effects: list[Effect]) -> None:
        with self._tolerance:
            self._watch.settled(host, effects)


class TolerantTree(LogTree):
    """Two batches may have one place: a tree all the same, which knows the latest of them."""

    __slots__ = ("_tolerance",)

    def __init__(self, tolerance: Tolerance, *rules: str) -> None:
        super().__init__(*rules)
        self._tolerance = tolerance

    def _add(self, entry: Entry) -> None:
        with self._tolerance:
            super()._add(entry)
        self._children[(entry.parent, entry.records)] = entry
        self._by_end[entry.end] = entry
