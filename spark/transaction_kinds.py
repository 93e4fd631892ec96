"""One key of transactions that are too large for one worker, of lists or of a register.

It is judged by the parts of the whole judges (`list_append`, `rw_register`), from transactions that
do nothing to other keys. Edges are numbered as the whole judge has them: by the first write to
their key, then in the order in which that finds them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from jepsen_like.checkers import list_append, rw_register
from jepsen_like.checkers.isolation import Edge, Edges
from jepsen_like.checkers.likely_order import likely_order
from jepsen_like.checkers.micro_operations import Transaction, Writes, transactions_of
from jepsen_like.checkers.verdict import Finding
from jepsen_like.histories.history import MalformedHistory
from spark.transaction_rows import Projection, packed

__all__ = ["KEYS", "WRITES", "Key", "Number", "RecordedEdges"]

WRITES = {"append": "append", "rw-register": "w"}  # by workload
Number = Mapping[Transaction, int]  # of the node of each that has taken place
_STEPS = 1 << 10  # of a transaction that writes: they are numbered
_NODES = 1 << 22  # that stand for others, of one key


class Key(Protocol):
    transactions: Sequence[Transaction]
    first: tuple[int, int]  # who wrote it first: the call, and the place of the step
    doubt: str | None  # why nothing can be said of it
    findings: list[Finding]
    reads: int

    def seen(self) -> Iterable[Transaction]:
        """Of which a value is read."""

    def lost_updates(self) -> Iterator[Finding]: ...

    def enter(self, edges: Edges, number: Number, *, is_strict: bool) -> None: ...

    def likely(self, number: Number) -> Iterator[tuple[int, int]]:
        """Edges that are not certain."""


@dataclass(slots=True)
class RecordedEdges:
    """Nodes that are no transaction have numbers below -1, which no other key has."""

    first: tuple[int, int]  # as of a `Key`
    nodes: Iterator[int] = field(default_factory=count)
    edges: list[tuple[int, int, Edge, tuple[str, str]]] = field(default_factory=list)

    def node(self) -> int:
        call, place = self.first
        number = next(self.nodes)
        if place >= _STEPS or number >= _NODES:
            raise MalformedHistory(f"{place} steps before a write, or {number} writes to a key")
        return -2 - ((call * _STEPS + place) * _NODES + number)

    def add(self, source: int, target: int, kind: Edge, what: tuple[str, str] = ("", "")) -> None:
        if source != target:
            self.edges.append((source, target, kind, what))

    def rows(self) -> Iterator[dict[str, Any]]:
        begins: dict[int, int] = {}
        for source, target, _, _ in self.edges:
            if source < 0 <= target:
                begins[source] = min(target, begins.get(source, target))
        call, place = self.first
        for number, (source, target, kind, what) in enumerate(self.edges):
            if target < 0 and target not in begins:
                continue  # it leads nowhere
            yield {
                "source": source,
                "source_call": begins.get(source, source),
                "target": target,
                "target_call": begins.get(target, target),
                "kind": int(kind),
                "key_order": call * _STEPS + place,
                "edge_order": number,
                "body": packed(what),
            }


class _Lists:
    """A key of lists."""

    def __init__(self, projections: Sequence[Projection]) -> None:
        self.transactions: Sequence[Transaction] = transactions_of(
            [each.operation for each in projections], "append"
        )
        self.first = _first(projections)
        self._writes = Writes.by(self.transactions, "append")
        self.doubt = list_append.not_told_apart(self._writes)
        self._lists = list_append.Lists()
        self.reads = 0
        if self.doubt is None:
            for each in self.transactions:
                self._lists.look_at(each, self._writes)
            self._lists.findings += list_append.incompatible(self._lists)
            self.reads = len(self._lists.reads)
        self.findings = self._lists.findings

    def seen(self) -> Iterable[Transaction]:
        return set(self._lists.seen(self._writes))

    def lost_updates(self) -> Iterator[Finding]:
        return list_append.lost_updates(self._lists)

    def enter(self, edges: Edges, number: Number, *, is_strict: bool) -> None:
        for key in list(self._writes.of)[:1]:
            longest = self._lists.longest[key]
            list_append.enter(edges, number, self._writes, key, longest, self._lists.reads)

    def likely(self, number: Number) -> Iterator[tuple[int, int]]:
        yield from ()  # the order of lists is known


class _Registers:
    """A key of a register."""

    reads = 0

    def __init__(self, projections: Sequence[Projection]) -> None:
        self.transactions: Sequence[Transaction] = transactions_of(
            [each.operation for each in projections], "w"
        )
        self.first = _first(projections)
        self._writes = Writes.by(self.transactions, "w")
        self.doubt = rw_register.not_told_apart(self._writes)
        self.findings: list[Finding] = []
        self._nodes = rw_register.nodes_of(self.transactions, self._writes, self.findings)

    def seen(self) -> Iterable[Transaction]:
        return set(rw_register.seen_by(self._nodes, self._writes))

    def _key(self, there: AbstractSet[Transaction]) -> rw_register.RegisterKey:
        nodes = [each for each in self._nodes if each.by in there]
        return next(iter(rw_register.keys_of(nodes).values()), rw_register.RegisterKey(None))

    def lost_updates(self) -> Iterator[Finding]:
        return self._key(set(self.transactions)).lost_updates()

    def enter(self, edges: Edges, number: Number, *, is_strict: bool) -> None:
        self._key(number.keys()).enter(edges, number, self._writes, is_strict=is_strict)

    def likely(self, number: Number) -> Iterator[tuple[int, int]]:
        for one, other in likely_order(self._key(number.keys())):
            yield number[one], number[other]


def _first(projections: Sequence[Projection]) -> tuple[int, int]:
    """The first write to the key."""
    for each in projections:
        if each.written is not None:
            return each.operation.call, each.written
    return 0, 0


KEYS: Mapping[str, Callable[[Sequence[Projection]], Key]] = {
    "append": _Lists,
    "rw-register": _Registers,
}
