"""Invariants that look on and say nothing: then only what clients saw can tell that a rule broke.

They go on to look, since schedules ask them what has been committed. Once one is violated, others
may find nothing where they look, and fail by their own assertions: this says nothing either.
"""

from contextlib import AbstractContextManager, suppress

from jepsen_like.sim.host import Host, Watch
from jepsen_like.sim.logtree import Entry, LogTree
from jepsen_like.sim.violation import Violation
from quorum.effects import Effect, Event

__all__ = ["TolerantTree", "Unjudged", "tolerant"]


def tolerant() -> AbstractContextManager[object]:
    """Within it, whatever an invariant raises is dropped, and the rest of the block with it."""
    return suppress(Violation, LookupError, AssertionError)


class Unjudged:
    """Passes on what `watch` is told, and drops what it objects to."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def received(self, host: Host, event: Event) -> None:
        with tolerant():
            self._watch.received(host, event)

    def performing(self, host: Host, effect: Effect) -> None:
        with tolerant():
            self._watch.performing(host, effect)

    def replying(self, host: Host, token: int, request: object, response: object) -> None:
        with tolerant():
            self._watch.replying(host, token, request, response)

    def settled(self, host: Host, effects: list[Effect]) -> None:
        with tolerant():
            self._watch.settled(host, effects)


class TolerantTree(LogTree):
    """Two batches may have one place: a tree all the same, which knows the latest of them."""

    __slots__ = ()

    def _add(self, entry: Entry) -> None:
        with suppress(Violation):
            super()._add(entry)
        self._children[(entry.parent, entry.records)] = entry
        self._by_end[entry.end] = entry
