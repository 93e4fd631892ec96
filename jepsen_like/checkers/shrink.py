"""The fewest operations that still show a violation.

A part of a history proves something about the whole only if leaving the rest out can make nothing
worse. Reads may be left out. What changes the state may not: without a write, what read it would be
wrong. So it is made unknown instead: it may happen at any time after its call, or never. The
operations that must stay as they are, so that there still is no order, are the evidence.

Source: Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input" (ddmin).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from jepsen_like.checkers.models import Model
from jepsen_like.checkers.operations import NEVER, Operation
from jepsen_like.history import Kind

__all__ = ["blamed", "smallest"]

Item = TypeVar("Item")
TRIES = 400  # of one shrinking


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
) -> list[Operation]:
    """Operations that together have no order, whatever the others did; [] if none were found.

    They are sought in what began before the return of `blocked`, and then in everything.
    """
    for past in ([each for each in operations if each.call < blocked.ret], list(operations)):
        ended = [each for each in past if each.ret <= blocked.ret or len(past) == len(operations)]
        found = _blamed(past, [each for each in ended if each.ret != NEVER], model, violates)
        if found:
            return found
    return []


def _blamed(
    past: Sequence[Operation],
    ended: Sequence[Operation],
    model: Model,
    violates: Callable[[Sequence[Operation]], bool],
) -> list[Operation]:
    def still(hard: Sequence[Operation]) -> bool:
        return violates(_relaxed(past, hard, model))

    return smallest(_tail(ended, still), still)


def _tail(
    ended: Sequence[Operation], still: Callable[[Sequence[Operation]], bool]
) -> list[Operation]:
    """Most violations are young: the last few operations, or twice as many, or all, or none."""
    latest = sorted(ended, key=lambda each: -each.ret)
    size = 4
    while size < 2 * len(latest):
        if still(latest[:size]):
            return sorted(latest[:size], key=lambda each: each.call)
        size *= 2
    return []


def _relaxed(
    operations: Sequence[Operation], hard: Sequence[Operation], model: Model
) -> list[Operation]:
    kept = {each.index for each in hard}
    return [
        each if each.index in kept else replace(each, kind=Kind.INFO, ret=NEVER)
        for each in operations
        if each.index in kept or not model.is_read(each)
    ]
