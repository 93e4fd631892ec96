"""The elements of a set: who added each of them, who removed it, and which lists have it.

Left out: what failed, but for an add that nobody should see, and removals that ended before the
first add began, which removed nothing.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from jepsen_like.checkers.operations import Operation, exact, not_of
from jepsen_like.histories.history import Kind, MalformedHistory, Value

__all__ = ["Element", "Lists", "elements_of", "lists_of"]

_LISTS = ("read", "read-stale")
_KNOWN = (*_LISTS, "add", "remove")


@dataclass(slots=True)
class Element:
    value: Value
    name: str = ""
    adds: list[Operation] = field(default_factory=list)  # those that may have happened
    removes: list[Operation] = field(default_factory=list)  # those that may have happened
    failed_add: Operation | None = None
    seen: list[Operation] = field(default_factory=list)  # lists that have it

    @property
    def may_return(self) -> bool:
        return len(self.adds) > 1 and bool(self.removes)

    @property
    def first_add(self) -> Operation:
        """The one that began first."""
        return min(self.adds, key=lambda each: each.call)

    @property
    def came(self) -> Operation:
        """The add that returned first, or a list that has it and was answered before that."""
        return min([*self.adds, *self.seen], key=lambda each: each.ret)

    @property
    def current(self) -> list[Operation]:
        """The lists that have it, and were true when they were made."""
        return [each for each in self.seen if each.f == "read"]

    def see(self, listing: Operation) -> None:
        """A list may name it twice."""
        if not self.seen or self.seen[-1] is not listing:
            self.seen.append(listing)


class Lists:
    """Those that are not stale, in the order of their calls; each is known by its place there."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self.by_call = [each for each in operations if each.f == "read"]
        self._calls = [each.call for each in self.by_call]
        self._places = {each.index: at for at, each in enumerate(self.by_call)}
        self._by_ret = sorted(range(len(self.by_call)), key=lambda at: self.by_call[at].ret)
        self._rets = [self.by_call[at].ret for at in self._by_ret]
        self._open: list[list[int]] = []  # when each was called; itself is one of them
        still: list[int] = []
        for at, each in enumerate(self.by_call):
            still = [*(other for other in still if self.by_call[other].ret > each.call), at]
            self._open.append(still)

    def having(self, element: Element) -> set[int]:
        return {self._places[each.index] for each in element.current}

    def called_from(self, moment: int) -> range:
        return range(bisect_left(self._calls, moment), len(self._calls))

    def called_between(self, begin: int, end: int) -> range:
        return range(bisect_left(self._calls, begin), bisect_left(self._calls, end))

    def called_before(self, moment: int) -> range:
        """The last one first."""
        return range(bisect_left(self._calls, moment) - 1, -1, -1)

    def returned_from(self, moment: int) -> Iterator[int]:
        """The first one first."""
        return islice(self._by_ret, bisect_left(self._rets, moment), None)

    def open_at(self, moment: int) -> list[int]:
        last = bisect_right(self._calls, moment) - 1
        return [at for at in self._open[last] if self.by_call[at].ret > moment] if last >= 0 else []


def lists_of(operations: Iterable[Operation]) -> list[Operation]:
    return [each for each in operations if each.f in _LISTS and each.kind is Kind.OK]


def elements_of(operations: Iterable[Operation], lists: Iterable[Operation]) -> list[Element]:
    """Raises `MalformedHistory`."""
    found: dict[Value, Element] = {}

    def element(value: Value, of: Operation) -> Element:
        try:
            return found.setdefault(exact(value), Element(value))
        except TypeError as error:
            raise MalformedHistory(f"operation {of.index}: no element: {value!r:.100}") from error

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
        for value in _values(each):
            element(value, each).see(each)
    _leave_out_removals_in_vain(found.values())
    _give_names(list(found.values()))
    return list(found.values())


def _values(listing: Operation) -> Iterable[Value]:
    if not isinstance(listing.result, list | tuple | set | frozenset):
        raise MalformedHistory(f"operation {listing.index}: no list: {listing.result!r:.100}")
    if not isinstance(node := listing.extra.get("node"), int | str | None):
        raise MalformedHistory(f"operation {listing.index}: no node: {node!r:.100}")
    return listing.result


def _leave_out_removals_in_vain(elements: Iterable[Element]) -> None:
    for element in elements:
        if element.adds:
            began = element.first_add.call
            element.removes = [each for each in element.removes if each.ret > began]


def _give_names(elements: Sequence[Element]) -> None:
    """Their texts; in quotes where a number has the same text, or where it begins with a quote."""
    texts = Counter(str(each.value) for each in elements)
    for each in elements:
        text = str(each.value)
        is_clear = texts[text] == 1 and not text.startswith(("'", '"'))
        each.name = text if is_clear else repr(each.value)
