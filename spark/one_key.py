"""One key of transactions that are too large for one worker, of lists or of a register.

It is judged by the parts of the whole judges (`list_append`, `rw_register`), from transactions that
do nothing to other keys. Edges are in the order in which the whole judge has them: of the first
writes to their keys, and then as they are found.
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
from spark.transaction_rows import Projection, packed

__all__ = ["JUDGES", "NODES_MAX", "STEPS_MAX", "Key", "NodeOf", "RecordedEdges"]

STEPS_MAX = 1 << 10  # a write's place must fit into a node's number
NODES_MAX = 1 << 22  # that stand for others, of one key
NodeOf = Mapping[Transaction, int]  # of each that has taken place


class Key(Protocol):
    transactions: Sequence[Transaction]
    first: tuple[int, int]  # who wrote it first: the call, and the place of the step
    doubt: str | None  # why nothing can be said of it
    findings: list[Finding]
    reads: int

    def seen(self) -> Iterable[Transaction]:
        """The transactions of which a value is read."""

    def lost_updates(self) -> Iterator[Finding]: ...

    def enter(self, edges: Edges, node_of: NodeOf, *, is_strict: bool) -> None: ...

    def likely(self, node_of: NodeOf) -> Iterator[tuple[int, int]]:
        """Edges that are not certain."""


@dataclass(slots=True)
class RecordedEdges:
    """Edges as rows.

    A node that is no transaction has a number below -1, unique in its run: it encodes the first
    write to the key, and a serial.
    """

    first: tuple[int, int]  # as of a `Key`
    serials: Iterator[int] = field(default_factory=count)
    edges: list[tuple[int, int, Edge, tuple[str, str]]] = field(default_factory=list)
    begins: dict[int, int] = field(default_factory=dict)  # of nodes: the first transaction behind

    def node(self) -> int:
        call, place = self.first
        serial = next(self.serials)
        assert place < STEPS_MAX
        assert serial < NODES_MAX
        return -2 - ((call * STEPS_MAX + place) * NODES_MAX + serial)

    def add(self, source: int, target: int, kind: Edge, what: tuple[str, str] = ("", "")) -> None:
        if source != target:
            self.edges.append((source, target, kind, what))
        if source < 0 <= target:
            self.begins[source] = min(target, self.begins.get(source, target))

    def rows(self) -> Iterator[dict[str, Any]]:
        begins = self.begins
        call, place = self.first
        for order, (source, target, kind, what) in enumerate(self.edges):
            if target < 0 and target not in begins:
                continue  # it leads nowhere
            yield {
                "source": source,
                "source_call": begins.get(source, source),
                "target": target,
                "target_call": begins.get(target, target),
                "kind": int(kind),
                "key_order": call * STEPS_MAX + place,
                "edge_order": order,
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
        self.doubt = self.doubt or _beyond_numbers(self._writes, self.first, writers=1)
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

    def enter(self, edges: Edges, node_of: NodeOf, *, is_strict: bool) -> None:
        if self._writes.of:
            (key,) = self._writes.of
            longest = self._lists.longest[key]
            list_append.enter(edges, node_of, self._writes, key, longest, self._lists.reads)

    def likely(self, node_of: NodeOf) -> Iterator[tuple[int, int]]:
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
        self.findings: list[Finding] = []
        self._nodes = rw_register.nodes_of(self.transactions, self._writes, self.findings)
        writers = sum(bool(each.writes) for each in self._nodes)
        self.doubt = rw_register.not_told_apart(self._writes)
        self.doubt = self.doubt or _beyond_numbers(self._writes, self.first, writers=writers)

    def seen(self) -> Iterable[Transaction]:
        return set(rw_register.seen_by(self._nodes, self._writes))

    def _key(self, there: AbstractSet[Transaction]) -> rw_register.RegisterKey:
        nodes = [each for each in self._nodes if each.by in there]
        return next(iter(rw_register.keys_of(nodes).values()), rw_register.RegisterKey(None))

    def lost_updates(self) -> Iterator[Finding]:
        return self._key(set(self.transactions)).lost_updates()

    def enter(self, edges: Edges, node_of: NodeOf, *, is_strict: bool) -> None:
        self._key(node_of.keys()).enter(edges, node_of, self._writes, is_strict=is_strict)

    def likely(self, node_of: NodeOf) -> Iterator[tuple[int, int]]:
        for one, other in likely_order(self._key(node_of.keys())):
            yield node_of[one], node_of[other]


def _first(projections: Sequence[Projection]) -> tuple[int, int]:
    """The first write to the key."""
    for each in projections:
        if each.written is not None:
            return each.operation.call, each.written
    return 0, 0


def _beyond_numbers(writes: Writes, first: tuple[int, int], *, writers: int) -> str | None:
    """Why `RecordedEdges` has no numbers for it, if that is so."""
    for key in writes.of:
        if first[1] >= STEPS_MAX:
            step = f"step {first[1] + 1:,} of a transaction, beyond the {STEPS_MAX:,} of pieces"
            return f"{key!r} was first written by {step}"
        if writers >= NODES_MAX:
            return f"{key!r} was written by {NODES_MAX:,} transactions or more"
    return None


JUDGES: Mapping[str, Callable[[Sequence[Projection]], Key]] = {
    "append": _Lists,
    "rw-register": _Registers,
}
