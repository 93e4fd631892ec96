"""An order of the operations on some elements of a set, by search.

A list is a read of the elements that it is asked about. One that is stale tells of each element it
has that it was there at some time before the list was answered; one such list is enough for each.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jepsen_like.checkers.models import ILLEGAL, Model
from jepsen_like.checkers.operations import Operation
from jepsen_like.checkers.search import Budget, check_by_search
from jepsen_like.checkers.set_elements import Element, Lists
from jepsen_like.checkers.verdict import Verdict

__all__ = ["name_of", "search_for_order"]

_LONG_AGO = -1  # before all that was called
_NAMED = 4  # elements in the name of what spans more of them


def name_of(elements: Sequence[str]) -> str:
    more = len(elements) - _NAMED
    return ", ".join(elements[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def search_for_order(
    elements: Sequence[Element],
    lists: Lists,
    budget: Budget | None,
    touched: Mapping[str, Collection[int]] | None = None,
) -> Verdict:
    """`touched`: which lists are asked about an element, where not all that tell something are."""
    having = {each.name: lists.having(each) for each in elements}
    asked: dict[int, set[str]] = {}
    for each in elements:
        mine = None if touched is None else touched.get(each.name)
        for at in _telling(each, lists) if mine is None else mine:
            asked.setdefault(at, set()).add(each.name)
    found = [change for each in elements for change in _changes(each)]
    found += [stale for each in elements for stale in _stale(each)]
    for at, names in asked.items():
        there = {name for name in names if at in having[name]}
        found.append(_read(lists.by_call[at], names, there))
    found.sort(key=lambda each: each.call)
    return check_by_search(name_of([each.name for each in elements]), found, _SET, budget)


def _telling(element: Element, lists: Lists) -> Iterator[int]:
    """Without those that lack it and ended before it was first added."""
    began, having = element.first_add.call, lists.having(element)
    return (at for at, each in enumerate(lists.by_call) if each.ret > began or at in having)


def _changes(element: Element) -> Iterator[Operation]:
    return (replace(each, argument=element.name) for each in (*element.adds, *element.removes))


def _stale(element: Element) -> Iterator[Operation]:
    stale = [each for each in element.seen if each.f != "read"]
    if stale:
        first = min(stale, key=lambda each: each.ret)
        yield replace(_read(first, {element.name}, {element.name}), f="read", call=_LONG_AGO)


def _read(listing: Operation, names: set[str], there: set[str]) -> Operation:
    extra = {"names": frozenset(names), "there": frozenset(there)}
    return replace(listing, argument=None, result=sorted(there), extra=extra)


def _step(state: frozenset[str], operation: Operation) -> Any:
    """Adding what is there, or removing what is not, changes nothing."""
    match operation.f:
        case "add":
            return state | {operation.argument}
        case "remove":
            return state - {operation.argument}
        case _:
            is_right = state & operation.extra["names"] == operation.extra["there"]
            return state if is_right else ILLEGAL


_SET = Model(initial=frozenset(), step=_step, reads=frozenset({"read"}))
