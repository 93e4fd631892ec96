"""The fewest operations that still show a violation.

A part of a history proves something about the whole only if leaving the rest out can make nothing
worse. Reads may be left out. What changes the state may not: without a write, what read it would be
wrong. So it is made unknown instead: it may happen at any time after its call, or never. The
operations that must stay as they are, so that there still is no order, are the evidence.

Source: Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input" (ddmin).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from jepsen_like.checkers.models import Model
from jepsen_like.checkers.operations import NEVER, Operation
from jepsen_like.checkers.search_depth import asked
from jepsen_like.histories.history import Kind

__all__ = ["blamed", "smallest"]

Item = TypeVar("Item")
TRIES = 400  # of one shrinking
_FIRST_TRIED = 4  # operations


def smallest(items: Sequence[Item], still: Callable[[Sequence[Item]], bool]) -> list[Item]:
    """Some of the items, of which none can be left out, or what TRIES have come to."""
    kept, parts, tries = list(items), 2, 0
    while len(kept) > 1 and tries < TRIES:
        size = -(-len(kept) // parts)
        for begin in range(0, len(kept), size):
            rest = kept[:begin] + kept[begin + size :]
            tries += 1
            if rest and still(rest):
                kept, parts = rest, max(parts - 1, 2)
                break
        else:
            if size == 1:
                break
            parts = min(2 * parts, len(kept))
    return kept


def blamed(
    operations: Sequence[Operation],
    blocked: Operation,
    model: Model,
    violates: Callable[[Sequence[Operation]], bool],
    *,
    repeats: bool,
) -> list[Operation]:
    """Operations that together have no order, whatever the others did; [] if none were found.

    They are sought in what began before the return of `blocked`, and then in everything. `repeats`:
    for `violates` an unknown operation happens as often as it likes, so that of those that ask for
    the same the first will do.
    """
    for past in ([each for each in operations if each.call < blocked.ret], list(operations)):
        ended = [each for each in past if each.ret <= blocked.ret or len(past) == len(operations)]
        relaxed = _Relaxed.of(past, model, repeats=repeats)
        found = _blamed(relaxed, [each for each in ended if each.ret != NEVER], violates)
        if found:
            return found
    return []


def _blamed(
    relaxed: "_Relaxed",
    ended: Sequence[Operation],
    violates: Callable[[Sequence[Operation]], bool],
) -> list[Operation]:
    def still(hard: Sequence[Operation]) -> bool:
        return violates(relaxed.but(hard))

    return smallest(_tail(ended, still), still)


def _tail(
    ended: Sequence[Operation], still: Callable[[Sequence[Operation]], bool]
) -> list[Operation]:
    """Most violations are young: the last few operations, or twice as many, or all, or none."""
    latest = sorted(ended, key=lambda each: -each.ret)
    size = _FIRST_TRIED
    while latest:
        if still(latest[:size]):
            return sorted(latest[:size], key=lambda each: each.call)
        if size >= len(latest):
            break
        size *= 2
    return []


@dataclass(frozen=True, slots=True)
class _Relaxed:
    """All changes of unknown end, by what they ask for; reads are left out."""

    alike: Sequence[Sequence[Operation]]  # by their calls
    repeats: bool

    @classmethod
    def of(cls, operations: Sequence[Operation], model: Model, *, repeats: bool) -> "_Relaxed":
        alike: dict[str, list[Operation]] = {}
        for each in operations:
            if not model.is_read(each):
                relaxed = replace(each, kind=Kind.INFO, ret=NEVER)
                alike.setdefault(asked(each), []).append(relaxed)
        return cls(list(alike.values()), repeats)

    def but(self, hard: Sequence[Operation]) -> list[Operation]:
        """With these as they are. In the order of their calls."""
        kept = {each.index for each in hard}
        found = list(hard)
        for group in self.alike:
            others = (each for each in group if each.index not in kept)
            found += islice(others, 1 if self.repeats else None)
        return sorted(found, key=lambda each: each.call)
