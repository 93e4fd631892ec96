"""Whether the lists of a set have one order, where each of its elements fits by itself.

One list has x and not y, another has y and not x, while both adds are open: each element fits, and
no order of the two lists does. A list that has x lies behind the moment at which x came, and before
the one at which it went; a list without x lies before the one or behind the other. Where it is
known which of the two, all this says which moment is before which. Lists and moments can then be
put in order if and only if there is no circle, and nothing must follow what began after its end.

It is known for every element that is never removed, since it never goes. It is known for one that
is added once and removed, unless a removal or a list was open so long that it may lie on either
side. Removals that all began when it was surely there are as good as one: begun with the first of
them, and ended before any of them ended. Elements that are added again after a removal, or of which
it is not known, are searched for an order, with the lists and elements that can matter to them.

Of the lists that have an element, only those matter that were open when the first of them returned:
all others began later. The like holds for lists that lack it, and for its end. So for each element
there are no more arrows than lists were open at a time.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from jepsen_like.checkers.operations import NEVER, Operation
from jepsen_like.checkers.precedence import Interval, contradiction
from jepsen_like.checkers.search import Budget
from jepsen_like.checkers.set_elements import Element, Lists
from jepsen_like.checkers.set_search import name_of, search_for_order
from jepsen_like.checkers.verdict import Finding, Outcome, Verdict, compose

__all__ = ["check_orders"]


@dataclass(frozen=True, slots=True)
class _Moment:
    """Something that happened after `first` was called, and before `last` returned."""

    first: Operation
    last: Operation
    name: str = ""  # of the element that came or went


def check_orders(elements: Sequence[Element], lists: Lists, budget: Budget | None) -> Verdict:
    """Each of the elements fits by itself."""
    orders = _Orders(lists, [_Moment(each, each) for each in lists.by_call])
    unsure = [each for each in elements if not orders.add(each)]
    intervals = [Interval(each.first.call, each.last.ret) for each in orders.moments]
    if wrong := contradiction(intervals, orders.arrows):
        return Verdict.of([_finding([orders.moments[at] for at in wrong])])
    sure = orders.touched
    touched = {**sure, **{each.name: _overlapping(each, lists) for each in unsure}}
    by_name = {each.name: each for each in elements}
    searched = [
        search_for_order([by_name[name] for name in names], lists, budget, sure)
        for names in _connected(touched)
        if len(names) > 1 and any(name not in sure for name in names)
    ]
    return compose(each for each in searched if each.outcome is not Outcome.VALID)


def _finding(moments: Sequence[_Moment]) -> Finding:
    names = list(dict.fromkeys(each.name for each in moments if each.name))
    shown = [operation for each in moments for operation in (each.first, each.last)]
    detail = f"no order of these lists agrees with what they have of {' and '.join(names)}"
    return Finding.of("not-linearizable", name_of(names), detail, *shown)


def _overlapping(element: Element, lists: Lists) -> set[int]:
    """Lists whose place between the changes of the element is not known."""
    found: set[int] = set()
    for each in (*element.adds, *element.removes):
        found |= {*lists.open_at(each.call), *lists.called_between(each.call, each.ret)}
    return found


def _connected(touched: Mapping[str, Collection[int]]) -> list[list[str]]:
    """Elements whose order depends on the same lists, or on lists that do, and so on."""
    group_of: dict[str, list[str]] = {}
    first: dict[int, str] = {}
    for name, places in touched.items():
        group_of[name] = [name]
        for at in places:
            mine, other = group_of[name], group_of[first.setdefault(at, name)]
            if mine is not other:
                small, large = sorted((mine, other), key=len)
                large += small
                group_of.update(dict.fromkeys(small, large))
    return list({id(each): each for each in group_of.values()}.values())


@dataclass(slots=True)
class _Orders:
    """Which moments are before which; the lists are the first of them, by their places."""

    lists: Lists
    moments: list[_Moment]
    arrows: dict[int, list[int]] = field(default_factory=dict)
    touched: dict[str, set[int]] = field(default_factory=dict)  # by elements: lists with arrows

    def add(self, element: Element) -> bool:
        """Returns False where it is not known on which side of it a list or a removal lies."""
        if element.may_return:
            return False
        lists, came_by = self.lists, element.came.ret
        having = lists.having(element)
        if came_by < NEVER and element.removes:
            if any(each.call < came_by for each in element.removes):
                return False
            present = lists.open_at(_went_from(element, having, lists))
            if any(at not in having and lists.by_call[at].call < came_by for at in present):
                return False
        self.touched[element.name] = set()
        if came_by < NEVER:  # otherwise nobody has seen it: it may as well never come
            self._came(element, having, came_by)
            if element.removes:
                self._went(element, having, came_by)
        return True

    def _came(self, element: Element, having: set[int], came_by: int) -> None:
        lists = self.lists
        stale = (each for each in element.seen if each.f != "read")
        last = min([*element.adds, *stale], key=lambda each: each.ret)
        came = self._moment(_Moment(element.first_add, last, element.name))
        lacking = (at for at in lists.called_before(came_by) if at not in having)
        came_from = max([element.first_add.call, *_calls(islice(lacking, 1), lists)])
        for at in lists.open_at(came_from):
            if at not in having:
                self._arrow(element, at, came)
        for at in having.intersection(lists.open_at(came_by - 1)):
            self._arrow(element, came, at)

    def _went(self, element: Element, having: set[int], came_by: int) -> None:
        lists = self.lists

        def lacks_later(at: int) -> bool:
            return at not in having and lists.by_call[at].call >= came_by

        first = min(element.removes, key=lambda each: each.call)
        last = min(element.removes, key=lambda each: each.ret)
        went = self._moment(_Moment(first, last, element.name))
        for at in having.intersection(lists.open_at(_went_from(element, having, lists))):
            self._arrow(element, at, went)
        lacking = islice(filter(lacks_later, lists.returned_from(came_by)), 1)
        went_by = min([last.ret, *(lists.by_call[at].ret for at in lacking)])
        for at in filter(lacks_later, lists.open_at(went_by - 1)):
            self._arrow(element, went, at)

    def _moment(self, moment: _Moment) -> int:
        self.moments.append(moment)
        return len(self.moments) - 1

    def _arrow(self, element: Element, before: int, after: int) -> None:
        self.arrows.setdefault(before, []).append(after)
        self.touched[element.name].add(min(before, after))  # lists come first


def _calls(places: Iterable[int], lists: Lists) -> Iterator[int]:
    return (lists.by_call[at].call for at in places)


def _went_from(element: Element, having: Iterable[int], lists: Lists) -> int:
    """It had not gone before: a removal had to begin, and the last list that has it."""
    first = min(each.call for each in element.removes)
    return max([first, *_calls(having, lists)])
