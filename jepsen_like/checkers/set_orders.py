"""Whether the lists of a set have one order, where each of its elements fits by itself.

One list has x and not y, another has y and not x, while both adds are open: each element fits, and
no order of the two lists does. A list that has x lies behind the moment at which x came, and before
the one at which it went; a list without x lies before the one or behind the other. Where it is
known which of the two, all this says which moment is before which. Lists and moments can then be
put in order if and only if there is no cycle, and nothing must follow what began after its end.

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

__all__ = ["Placed", "check_orders", "place_of"]


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened after `first` was called, and before `last` returned."""

    first: Operation
    last: Operation
    name: str = ""  # of the element that came or went


@dataclass(slots=True)
class Placed:
    """What the lists tell of when an element came and went.

    It is not sure where it is not known on which side of a moment a list or a removal lies. `seen`
    of an element that is sure need not have lists to which there is no arrow.
    """

    element: Element
    is_sure: bool = True
    moments: list[Moment] = field(default_factory=list)
    behind: list[tuple[int, int]] = field(default_factory=list)  # a list, and a moment behind it
    ahead: list[tuple[int, int]] = field(default_factory=list)  # and a moment before it

    @property
    def touched(self) -> set[int]:
        """Lists with arrows."""
        return {at for at, _ in (*self.behind, *self.ahead)}


def check_orders(placed: Sequence[Placed], lists: Lists, budget: Budget | None) -> Verdict:
    """Each of the elements fits by itself. Lists are known by their places, in order of calls."""
    moments = [Moment(each, each) for each in lists.by_call]
    arrows: dict[int, list[int]] = {}
    for each in placed:
        for at, moment in each.behind:
            arrows.setdefault(at, []).append(len(moments) + moment)
        for at, moment in each.ahead:
            arrows.setdefault(len(moments) + moment, []).append(at)
        moments += each.moments
    intervals = [Interval(each.first.call, each.last.ret) for each in moments]
    if wrong := contradiction(intervals, arrows):
        return Verdict.of([_finding([moments[at] for at in wrong])])
    sure = {each.element.name: each.touched for each in placed if each.is_sure}
    unsure = (each.element for each in placed if not each.is_sure)
    touched = {**sure, **{each.name: _overlapping(each, lists) for each in unsure}}
    by_name = {each.element.name: each.element for each in placed}
    searched = [
        search_for_order([by_name[name] for name in names], lists, budget, sure)
        for names in _connected(touched)
        if len(names) > 1 and any(name not in sure for name in names)
    ]
    return compose(each for each in searched if each.outcome is not Outcome.VALID)


def _finding(moments: Sequence[Moment]) -> Finding:
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


def place_of(element: Element, lists: Lists) -> Placed:
    placed = Placed(element)
    if element.may_return:
        placed.is_sure = False
        return placed
    having = lists.having(element)
    came_by = element.came.ret
    if came_by == NEVER:  # nobody has seen it: it may as well never come
        return placed
    if element.removes:
        if any(each.call < came_by for each in element.removes):
            placed.is_sure = False
            return placed
        present = lists.open_at(_went_from(element, having, lists))
        if any(at not in having and lists.by_call[at].call < came_by for at in present):
            placed.is_sure = False
            return placed
    _came(placed, having, lists)
    if element.removes:
        _went(placed, having, lists)
    return placed


def _came(placed: Placed, having: set[int], lists: Lists) -> None:
    element, came_by = placed.element, placed.element.came.ret
    stale = (each for each in element.seen if each.f != "read")
    last = min([*element.adds, *stale], key=lambda each: each.ret)
    came = len(placed.moments)
    placed.moments.append(Moment(element.first_add, last, element.name))
    lacking = (at for at in lists.called_before(came_by) if at not in having)
    came_from = max([element.first_add.call, *_calls(islice(lacking, 1), lists)])
    placed.behind += [(at, came) for at in lists.open_at(came_from) if at not in having]
    placed.ahead += [(at, came) for at in having.intersection(lists.open_at(came_by - 1))]


def _went(placed: Placed, having: set[int], lists: Lists) -> None:
    element, came_by = placed.element, placed.element.came.ret

    def lacks_later(at: int) -> bool:
        return at not in having and lists.by_call[at].call >= came_by

    first = min(element.removes, key=lambda each: each.call)
    last = min(element.removes, key=lambda each: each.ret)
    went = len(placed.moments)
    placed.moments.append(Moment(first, last, element.name))
    still = having.intersection(lists.open_at(_went_from(element, having, lists)))
    placed.behind += [(at, went) for at in still]
    lacking = islice(filter(lacks_later, lists.returned_from(came_by)), 1)
    went_by = min([last.ret, *(lists.by_call[at].ret for at in lacking)])
    placed.ahead += [(at, went) for at in filter(lacks_later, lists.open_at(went_by - 1))]


def _calls(places: Iterable[int], lists: Lists) -> Iterator[int]:
    return (lists.by_call[at].call for at in places)


def _went_from(element: Element, having: Iterable[int], lists: Lists) -> int:
    """It had not gone before: a removal had to begin, and the last list that has it."""
    first = min(each.call for each in element.removes)
    return max([first, *_calls(having, lists)])
