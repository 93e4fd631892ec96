"""The verdict on a set whose elements are added, removed, and listed.

An element that is added once is absent, then present, then absent for ever. If any order explains
what was seen of it, one does in which it came as late and went as early as it could:

- It came before its add returned, and before the first list that has it was answered. The end of
  the add may be unknown: then only the lists bound it.
- A removal that was called before that moment may have come first, and removed nothing. After a
  removal that was called later and has returned, the element is gone.
- It went after the last list that has it was called, by a removal that had not returned by then.
- If its add, a removal and all lists that have it were open at one moment, it may have come and
  gone at that moment, and lists that lack it say nothing.

No list that lacks it may lie between the two moments. An element that is added again may come and
go: it is left to a search. Exact for each element; lists that are wrong only as a whole (one has x
and not y, another y and not x) are not looked for.

    phantom               listed, and nobody added it, or its add failed (G1a)
    lost-element          added, perhaps seen, not removed, and later not listed
    removed-element       removed while it was surely there, and later listed
    not-linearizable      added again, and no order of adds, removals and lists fits
    nonmonotonic-read     stale lists of one process at one node went back

A stale list (`read-stale`) may be old, but holds nothing that was not there before it ended.
Source: Jepsen's set-full checker for the questions.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from jepsen_like.checkers.models import ELEMENT
from jepsen_like.checkers.operations import NEVER, Operation, exact, not_of
from jepsen_like.checkers.search import Budget, check_by_search
from jepsen_like.checkers.verdict import Finding, Verdict, compose
from jepsen_like.histories.history import Kind, MalformedHistory, Value

__all__ = ["check_set"]

_LISTS = ("read", "read-stale")
_KNOWN = (*_LISTS, "add", "remove")
_LONG_AGO = -1  # before all that was called


@dataclass(slots=True)
class _Element:
    name: str
    adds: list[Operation] = field(default_factory=list)  # those that may have happened
    removes: list[Operation] = field(default_factory=list)  # those that may have happened
    failed_add: Operation | None = None
    seen: list[Operation] = field(default_factory=list)  # lists that have it

    @property
    def may_return(self) -> bool:
        return len(self.adds) > 1

    def see(self, listing: Operation) -> None:
        """A list may name it twice."""
        if not self.seen or self.seen[-1] is not listing:
            self.seen.append(listing)

    def leave_out_removals_in_vain(self) -> None:
        added = min((each.call for each in self.adds), default=_LONG_AGO)
        self.removes = [each for each in self.removes if each.ret > added]


def check_set(operations: Sequence[Operation], budget: Budget | None = None) -> Verdict:
    lists = [each for each in operations if each.f in _LISTS and each.kind is Kind.OK]
    every = _elements(operations, lists)
    for each in every:
        each.leave_out_removals_in_vain()
    elements = [each for each in every if not each.may_return]
    findings = [
        finding for element in elements for finding in _judged(element, _lacking(element, lists))
    ]
    findings += _went_back(elements, [each for each in lists if each.f == "read-stale"])
    counts = {"elements": len(every), "lists": len(lists)}
    verdict = Verdict.of(findings, counts, objects=[element.name for element in elements])
    returning = (each for each in every if each.may_return)
    return compose([verdict, *(_searched(each, lists, budget) for each in returning)])


def _elements(operations: Sequence[Operation], lists: Sequence[Operation]) -> list[_Element]:
    found: dict[Value, _Element] = {}

    def element(name: Value, of: Operation) -> _Element:
        try:
            return found.setdefault(exact(name), _Element(str(name)))
        except TypeError as error:
            raise MalformedHistory(f"operation {of.index}: no element: {name!r:.100}") from error

    for each in operations:
        match each.f:
            case "add" if each.kind is Kind.FAIL:
                element(each.argument, each).failed_add = each
            case "add":
                element(each.argument, each).adds.append(each)
            case "remove" if each.kind is not Kind.FAIL:
                element(each.argument, each).removes.append(each)
            case f if f not in _KNOWN:
                raise not_of(each, "a set")
    for each in lists:
        for name in _names(each):
            element(name, each).see(each)
    return list(found.values())


def _names(listing: Operation) -> Iterable[Value]:
    if not isinstance(listing.result, list | tuple | set | frozenset):
        raise MalformedHistory(f"operation {listing.index}: no list: {listing.result!r:.100}")
    if not isinstance(node := listing.extra.get("node"), int | str | None):
        raise MalformedHistory(f"operation {listing.index}: no node: {node!r:.100}")
    return listing.result


def _lacking(element: _Element, lists: Iterable[Operation]) -> list[Operation]:
    """Lists without it that are not stale: those may be too old to have it."""
    having = {each.index for each in element.seen}
    return [each for each in lists if each.f == "read" and each.index not in having]


def _searched(element: _Element, lists: Iterable[Operation], budget: Budget | None) -> Verdict:
    """A stale list that has it is as if it had been asked long ago; one that lacks it may be."""
    found = [*element.adds, *element.removes]
    found += [replace(each, f="read", result=False) for each in _lacking(element, lists)]
    for each in element.seen:
        call = each.call if each.f == "read" else _LONG_AGO
        found.append(replace(each, f="read", result=True, call=call))
    return check_by_search(element.name, sorted(found, key=lambda each: each.call), ELEMENT, budget)


def _judged(element: _Element, lacking: Sequence[Operation]) -> Iterator[Finding]:
    if not element.adds:
        yield from _never_added(element)
        return
    (add,) = element.adds
    early = next((each for each in element.seen if each.ret < add.call), None)
    if early is not None:
        yield _finding("phantom", element, "was listed before it was added", early, add)
    came = min([add, *element.seen], key=lambda each: each.ret)
    current = [each for each in element.seen if each.f == "read"]
    latest = max(current, key=lambda each: each.call, default=came)
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
    lost = next((each for each in lacking if came.ret < each.call and each.ret < went_at), None)
    if lost is not None:
        detail = "was there, nothing that can have removed it had begun, and it was not listed"
        yield _finding("lost-element", element, detail, came, latest, lost)


def _went_at(element: _Element, after: int) -> int:
    """The first moment after this one at which a removal can have removed it."""
    able = (each for each in element.removes if each.ret > after)
    return min((max(after, each.call) for each in able), default=NEVER)


def _never_added(element: _Element) -> Iterator[Finding]:
    if not element.seen:
        return
    if element.failed_add is not None:
        ops = element.failed_add, element.seen[0]
        yield _finding("G1a", element, "was listed, and its add failed", *ops)
    else:
        yield _finding("phantom", element, "was listed, and nobody added it", element.seen[0])


def _went_back(elements: Sequence[_Element], stale: Sequence[Operation]) -> Iterator[Finding]:
    views: dict[Value, list[Operation]] = {}
    for each in stale:
        views.setdefault((each.process, each.extra.get("node")), []).append(each)
    for element in elements:
        having = {each.index for each in element.seen}
        for view in views.values():
            yield from _back_in(element, view, having)


def _back_in(element: _Element, view: Sequence[Operation], having: set[int]) -> Iterator[Finding]:
    """Present, then absent though nobody had begun to remove it; or absent again, then present."""
    came: Operation | None = None
    gone: Operation | None = None
    for each in view:
        if each.index in having:
            came = came or each
            if gone is not None:
                yield _finding("nonmonotonic-read", element, "went and came back", gone, each)
                return
        elif came is not None:
            gone = gone or each
            if not element.removes or each.ret < element.removes[0].call:
                detail = "was listed, and later not, and nobody had begun to remove it"
                yield _finding("nonmonotonic-read", element, detail, came, each)
                return


def _finding(rule: str, element: _Element, detail: str, *ops: Operation) -> Finding:
    return Finding.of(rule, element.name, f"{element.name} {detail}", *ops)
