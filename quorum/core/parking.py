"""Requests that wait: for a condition, or for their deadline, whichever comes first.

Decides nothing about either: the owner says when one is ready and answers it. The condition may be
any, so that each look is at all of them. Where thousands wait for offsets of many partitions, that
would cost too much: see `OffsetWaiters` in `broker/waiting.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Generic, TypeVar

__all__ = ["PARKED_MAX", "Parking", "has_ended"]

PARKED_MAX = 10_000  # each waits half a second: more than any cluster's replicas ask at once

T = TypeVar("T")

_deadline_of = itemgetter(0)


def has_ended(accepted: int, led: int | None) -> bool:
    """Is the epoch over in which a request was `accepted`? `led` is the epoch that we lead now.

    If so, another leader may have written at the offset that the request waits for: that this
    offset is committed says nothing of the request.
    """
    return accepted != led


@dataclass(slots=True)
class Parking(Generic[T]):
    """Waiting items in the order of their arrival, each with a deadline."""

    waiting: list[tuple[int, T]] = field(default_factory=list)  # (deadline, item); read only
    due_ms: int | None = None  # no later than the first deadline; None: nothing waits

    def __len__(self) -> int:
        return len(self.waiting)

    def is_full(self) -> bool:
        """Must the next request be answered at once?"""
        return len(self.waiting) >= PARKED_MAX

    def park(self, item: T, deadline_ms: int) -> None:
        assert len(self.waiting) < PARKED_MAX, len(self.waiting)
        self.waiting.append((deadline_ms, item))
        if self.due_ms is None or deadline_ms < self.due_ms:
            self.due_ms = deadline_ms

    def release(self, is_ready: Callable[[T], bool]) -> list[T]:
        """Take out, in order, all that are ready."""
        if not self.waiting:
            return []
        ready: list[T] = []
        kept: list[tuple[int, T]] = []
        for entry in self.waiting:
            if is_ready(entry[1]):
                ready.append(entry[1])
            else:
                kept.append(entry)
        if ready:
            self.keep(kept)
        return ready

    def expired(self, now_ms: int) -> list[T]:
        """Take out, in order, all whose deadline has come."""
        if self.due_ms is None or now_ms < self.due_ms:
            return []
        due = [item for deadline_ms, item in self.waiting if deadline_ms <= now_ms]
        self.keep([entry for entry in self.waiting if entry[0] > now_ms])
        return due

    def clear(self) -> list[T]:
        """Take out all, in order."""
        everything = [item for _, item in self.waiting]
        self.keep([])
        return everything

    def keep(self, waiting: list[tuple[int, T]]) -> None:
        """All but these have been taken out."""
        self.waiting = waiting
        self.due_ms = min(waiting, key=_deadline_of)[0] if waiting else None
