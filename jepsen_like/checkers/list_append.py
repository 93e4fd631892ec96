"""Transactions that append to lists and read them (Jepsen's `append`): a list tells its order.

- `phantom`, `G1a`, `G1b`: an element that nobody appended; one whose transaction failed; or, at the
  end of a list, one that is not the last of its transaction
- `duplicate-elements`: one list has an element twice
- `incompatible-order`: two lists of a key, of which neither begins with the other
- `internal`: a transaction does not see what it has read, or appended, itself
- `lost-update`: two transactions read the same list and append to it
- cycles: see `isolation`, and `isolation_levels` for what is forbidden

The longest list of a key has its elements in the order in which they were appended. What is
acknowledged and in no list was appended after all of them. So whether the transactions can be
brought into an order is decided exactly: without a cycle, any order that the edges allow explains
all lists. Elements must be told apart: where one was appended twice to a key, it is undecided.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from jepsen_like.checkers.isolation import Dependencies, Edge, Edges, cycle_findings
from jepsen_like.checkers.isolation_levels import STRICT, Found, level_of, verdict_of
from jepsen_like.checkers.micro_operations import Transaction, Writes, transactions_of
from jepsen_like.checkers.operations import Operation
from jepsen_like.checkers.verdict import Finding, Verdict
from jepsen_like.histories.history import Kind, Value

__all__ = ["Lists", "check_list_append", "enter", "incompatible", "lost_updates", "not_told_apart"]

List = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """What a transaction has read of a key before it appended to it itself."""

    by: Transaction
    key: Hashable
    elements: List


@dataclass(slots=True)
class Lists:
    findings: list[Finding] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    longest: dict[Hashable, List] = field(default_factory=lambda: defaultdict(tuple))

    def look_at(self, transaction: Transaction, writes: Writes) -> None:
        known: dict[Hashable, List] = {}  # what it must read again
        appended: dict[Hashable, List] = defaultdict(tuple)  # before it has read anything
        for f, key, value in transaction.steps:
            if f == "append":
                if key in known:
                    known[key] += (value,)
                else:
                    appended[key] += (value,)
                continue
            elements = value if isinstance(value, tuple) else () if value is None else None
            if elements is None:
                self._find("internal", key, f"read {value!r}, which is no list", transaction)
                continue
            if key in known:
                if elements != known[key]:
                    told = f"read {list(elements)}, and it must be {list(known[key])}"
                    self._find("internal", key, told, transaction)
                continue
            self._first(transaction, key, elements, appended[key], writes)
            known[key] = elements

    def _first(
        self,
        transaction: Transaction,
        key: Hashable,
        elements: List,
        own: List,
        writes: Writes,
    ) -> None:
        if elements[len(elements) - len(own) :] != own or len(elements) < len(own):
            told = f"read {list(elements)}, which does not end with its own {list(own)}"
            self._find("internal", key, told, transaction)
            return
        elements = elements[: len(elements) - len(own)]
        if any(writes.is_by(transaction, key, each) for each in elements):
            self._find("internal", key, f"read {list(elements)}, before it appended", transaction)
            return
        wrong = [found for each in elements for found in writes.misread(transaction, key, each)]
        if len(set(elements)) < len(elements):
            self._find("duplicate-elements", key, f"read {list(elements)}", transaction)
        elif any(found.rule == "phantom" for found in wrong):
            pass
        else:
            if elements:
                wrong += writes.intermediate(transaction, key, elements[-1])
            self.reads.append(Read(transaction, key, elements))
            self.longest[key] = max(self.longest[key], elements, key=len)
        self.findings += wrong

    def seen(self, writes: Writes) -> Iterator[Transaction]:
        """Those that appended something that is read."""
        for key, elements in self.longest.items():
            yield from (writes.of[key][each].by for each in elements)

    def _find(self, rule: str, key: Hashable, told: str, *transactions: Transaction) -> None:
        by = [each.operation for each in transactions]
        self.findings.append(Finding.of(rule, str(key), f"{by[0].index} {told}", *by))


def check_list_append(operations: Sequence[Operation], options: Mapping[str, Value]) -> Verdict:
    """Raises `MalformedHistory`."""
    level = level_of(options)
    transactions = transactions_of(operations, "append")
    writes = Writes.by(transactions, "append")
    if (why := not_told_apart(writes)) is not None:
        return Verdict.undecided(why)
    lists = Lists()
    for each in transactions:
        lists.look_at(each, writes)
    lists.findings += incompatible(lists)
    if not lists.findings:
        lists.findings += lost_updates(lists)
    counts = {"transactions": len(transactions), "lists read": len(lists.reads)}
    depends = _depends(transactions, writes, lists)
    cycles = cycle_findings(depends, is_strict=level == STRICT)
    return verdict_of(Found.of([*lists.findings, *cycles]), level, counts)


def not_told_apart(writes: Writes) -> str | None:
    """Why nobody can tell what was read, if that is so."""
    for key, value in writes.twice:
        return f"{value!r} was appended to {key!r} twice: nobody can tell which"
    return None


def incompatible(lists: Lists) -> Iterator[Finding]:
    """Those reads are left out of what follows."""
    kept = []
    for read in lists.reads:
        longest = lists.longest[read.key]
        if longest[: len(read.elements)] == read.elements:
            kept.append(read)
        else:
            told = f"{read.by.operation.index} read {list(read.elements)}; another {list(longest)}"
            by = next(
                each for each in lists.reads if each.key == read.key and each.elements == longest
            )
            yield Finding.of(
                "incompatible-order", str(read.key), told, read.by.operation, by.by.operation
            )
    lists.reads = kept


def lost_updates(lists: Lists) -> Iterator[Finding]:
    """Two that are known to have taken place."""
    first: dict[tuple[Hashable, int], Transaction] = {}
    for read in lists.reads:
        if read.key not in read.by.writes("append"):
            continue
        version = read.key, len(read.elements)
        if version in first:
            by = first[version].operation, read.by.operation
            told = f"{by[0].index} and {by[1].index} read {list(read.elements)}, and append to it"
            yield Finding.of("lost-update", str(read.key), told, *by)
        first.setdefault(version, read.by)


def _depends(transactions: Sequence[Transaction], writes: Writes, lists: Lists) -> Dependencies:
    """On those that have taken place: acknowledged, or something that they appended is read."""
    seen = set(lists.seen(writes))
    there = [each for each in transactions if each.operation.kind is Kind.OK or each in seen]
    depends = Dependencies([each.operation for each in there])
    number = {each: at for at, each in enumerate(there)}
    reads: dict[Hashable, list[Read]] = defaultdict(list)
    for read in lists.reads:
        reads[read.key].append(read)
    for key in list(writes.of):
        enter(depends, number, writes, key, lists.longest[key], reads[key])
    return depends


def enter(
    depends: Edges,
    number: Mapping[Transaction, int],
    writes: Writes,
    key: Hashable,
    longest: List,
    reads: Iterable[Read],
) -> None:
    """What is known of who appended to a key, and who read it, came before whom.

    `number`: of the node of each transaction that has taken place.
    """
    of = _Key.of(depends, number, writes, key, longest)
    of.order(longest)
    for read in reads:
        of.follow(number[read.by], read.elements, longest)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Key:
    depends: Edges
    key: Hashable
    by: Mapping[Hashable, int]  # who appended, by element
    later: Mapping[int, None]  # who appended what is in no list, in their order
    end: int  # a node before all of these

    @classmethod
    def of(
        cls,
        depends: Edges,
        number: Mapping[Transaction, int],
        writes: Writes,
        key: Hashable,
        longest: List,
    ) -> "_Key":
        by = {
            each: number[write.by] for each, write in writes.of[key].items() if write.by in number
        }
        later = dict.fromkeys(sorted({by[each] for each in by.keys() - set(longest)}))
        end = depends.node()
        for each in later:
            depends.add(end, each, Edge.ON)
        return cls(depends=depends, key=key, by=by, later=later, end=end)

    def order(self, longest: List) -> None:
        for before, after in pairwise(longest):
            what = f"appended {before!r} to {self.key!r}, and", "what comes right after it"
            self.depends.add(self.by[before], self.by[after], Edge.WW, what)
        if longest:
            what = f"appended {longest[-1]!r} to {self.key!r}, and", "what is in no list yet"
            self._before_what_is_later(self.by[longest[-1]], Edge.WW, what)

    def follow(self, reader: int, elements: List, longest: List) -> None:
        if elements:
            what = f"appended {elements[-1]!r} to {self.key!r}, which", "read"
            self.depends.add(self.by[elements[-1]], reader, Edge.WR, what)
        if len(elements) < len(longest):
            following = longest[len(elements)]
            what = f"read {self.key!r} without {following!r}, which", "appended"
            self.depends.add(reader, self.by[following], Edge.RW, what)
        else:
            what = f"read {self.key!r} without what", "appended to it"
            self._before_what_is_later(reader, Edge.RW, what)

    def _before_what_is_later(self, node: int, kind: Edge, what: tuple[str, str]) -> None:
        """Not through the common node if it leads back to who is there already."""
        if node not in self.later:
            self.depends.add(node, self.end, kind, what)
            return
        for each in self.later:
            self.depends.add(node, each, kind, what)
