"""The verdict on a set whose elements are added, removed, and listed.

An element that is never removed comes once, however often it is added: after the first add began,
and before any add returned. One that is added once and removed is absent, then present, then absent
for ever. If any order explains what was seen of it, one does in which it came as late and went as
early as it could:

- It came before its add returned, and before the first list that has it was answered. The end of
  the add may be unknown: then only the lists bound it.
- A removal that was called before that moment may have come first, and removed nothing. After a
  removal that was called later and has returned, the element is gone.
- It went after the last list that has it was called, by a removal that had not returned by then.
- If its add, a removal and all lists that have it were open at one moment, it may have come and
  gone at that moment, and lists that lack it say nothing.

No list that lacks it may lie between the two moments. An element that is removed and added again
may come and go: it is left to a search. All this is exact for each element by itself; `set_orders`
finds what is wrong only across elements.

    phantom               listed, and nobody added it, or its add failed (G1a)
    lost-element          added, perhaps seen, not removed, and later not listed
    removed-element       removed while it was surely there, and later listed
    not-linearizable      no order of adds, removals and lists fits
    nonmonotonic-read     stale lists of one process at one node went back

A stale list (`read-stale`) may be old, but holds nothing that was not there before it ended. What
two of its elements tell together is not looked at. Source: Jepsen's set-full checker for the
questions.
"""

from collections.abc import Iterator, Sequence

from jepsen_like.checkers.operations import NEVER, Operation
from jepsen_like.checkers.search import Budget
from jepsen_like.checkers.set_elements import Element, Lists, elements_of, lists_of
from jepsen_like.checkers.set_orders import Placed, check_orders, place_of
from jepsen_like.checkers.set_search import search_for_order
from jepsen_like.checkers.verdict import Finding, Outcome, Verdict, compose
from jepsen_like.histories.history import Value

__all__ = ["check_elements", "check_set"]


def check_set(operations: Sequence[Operation], budget: Budget | None = None) -> Verdict:
    """`operations` in the order of their calls."""
    lists = lists_of(operations)
    current = Lists(lists)
    alone, placed = check_elements(operations, lists, current, budget)
    orders = check_orders(placed, current, budget)
    return compose([Verdict.of([], {"lists": len(lists)}), alone, orders])


def check_elements(
    operations: Sequence[Operation],
    lists: Sequence[Operation],
    current: Lists,
    budget: Budget | None = None,
) -> tuple[Verdict, list[Placed]]:
    """Each element by itself; and when those came and went that were added, and are right."""
    every = elements_of(operations, lists)
    elements = [each for each in every if not each.may_return]
    findings = [finding for element in elements for finding in _judged(element, current)]
    findings += _went_back(elements, [each for each in lists if each.f == "read-stale"])
    objects = [element.name for element in elements]
    alone = Verdict.of(findings, {"elements": len(every)}, objects=objects)
    returning = (each for each in every if each.may_return)
    alone = compose([alone, *(search_for_order([each], current, budget) for each in returning)])
    valid = (each for each in every if alone.objects[each.name] is Outcome.VALID)
    return alone, [place_of(each, current) for each in valid if each.adds]


def _judged(element: Element, lists: Lists) -> Iterator[Finding]:
    if not element.adds:
        yield from _never_added(element)
        return
    began = element.first_add
    early = next((each for each in element.seen if each.ret < began.call), None)
    if early is not None:
        yield _finding("phantom", element, "was listed before it was added", early, began)
    came = element.came
    latest = max(element.current, key=lambda each: each.call, default=came)
    if latest.call < came.ret and any(
        each.call < came.ret and each.ret > latest.call for each in element.removes
    ):
        return
    sure = [each for each in element.removes if each.call > came.ret]
    removed = min(sure, key=lambda each: each.ret, default=None)
    if removed is not None and removed.ret < latest.call:
        detail = "was listed after it had been removed"
        yield _finding("removed-element", element, detail, came, removed, latest)
        return
    went_at = _went_at(element, max(came.ret, latest.call))
    lost = _lost(element, lists, came.ret, went_at)
    if lost is not None:
        detail = "was there, nothing that can have removed it had begun, and it was not listed"
        yield _finding("lost-element", element, detail, came, latest, lost)


def _lost(element: Element, lists: Lists, came_at: int, went_at: int) -> Operation | None:
    """A list without it between the two moments. Looks no further than the second of them."""
    having = lists.having(element)
    for at in lists.called_from(came_at):
        listing = lists.by_call[at]
        if listing.call > went_at:
            break
        if at not in having and listing.ret < went_at:
            return listing
    return None


def _went_at(element: Element, after: int) -> int:
    """The first moment after this one at which a removal can have removed it."""
    able = (each for each in element.removes if each.ret > after)
    return min((max(after, each.call) for each in able), default=NEVER)


def _never_added(element: Element) -> Iterator[Finding]:
    if not element.seen:
        return
    if element.failed_add is not None:
        ops = element.failed_add, element.seen[0]
        yield _finding("G1a", element, "was listed, and its add failed", *ops)
    else:
        yield _finding("phantom", element, "was listed, and nobody added it", element.seen[0])


def _went_back(elements: Sequence[Element], stale: Sequence[Operation]) -> Iterator[Finding]:
    views: dict[Value, list[Operation]] = {}
    places: dict[int, tuple[Value, int]] = {}  # of each list: its view, and where it stands there
    for each in (each for each in stale if each.extra.get("node") is not None):
        view = each.process, each.extra["node"]
        mine = views.setdefault(view, [])
        places[each.index] = view, len(mine)
        mine.append(each)
    for element in elements:
        having: dict[Value, list[int]] = {}
        for each in element.seen:
            if each.index in places:
                view, place = places[each.index]
                having.setdefault(view, []).append(place)
        for view, at in having.items():
            yield from _back_in(element, views[view], at)


def _back_in(
    element: Element, view: Sequence[Operation], having: Sequence[int]
) -> Iterator[Finding]:
    """Present, then absent though nobody had begun to remove it; or absent again, then present."""
    expected = enumerate(having, having[0])
    gone_at = next((at for at, place in expected if at != place), having[-1] + 1)
    if gone_at == len(view):
        return
    gone = view[gone_at]
    if not element.removes or gone.ret < element.removes[0].call:
        detail = "was listed, and later not, and nobody had begun to remove it"
        yield _finding("nonmonotonic-read", element, detail, view[having[0]], gone)
    elif having[-1] > gone_at:
        again = next(view[place] for place in having if place > gone_at)
        yield _finding("nonmonotonic-read", element, "went and came back", gone, again)


def _finding(rule: str, element: Element, detail: str, *ops: Operation) -> Finding:
    return Finding.of(rule, element.name, f"{element.name} {detail}", *ops)
