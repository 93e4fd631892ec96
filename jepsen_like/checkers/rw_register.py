"""Transactions that write registers and read them (Jepsen's `wr`): values come in an order to find.

- `phantom`, `G1a`, `G1b`, `internal`, `lost-update`: as of lists that are appended to
- cycles: see `isolation`

Only what is certain makes an edge. A version comes after the one that its writer has read, and
after nothing at all; where strict serializability is promised, also after those whose writers had
ended when its own began. So not every history without a cycle is right: then an order that
explains all reads is looked for (`serial_order`), and where none is found, it is undecided, at
whatever level.

Every value must be written once to a key; otherwise it is undecided. A register begins as None.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from jepsen_like.checkers.isolation import Dependencies, Edge, Edges, cycle_findings
from jepsen_like.checkers.isolation_levels import STRICT, Found, level_of, verdict_of
from jepsen_like.checkers.micro_operations import Transaction, Writes, transactions_of
from jepsen_like.checkers.operations import Operation
from jepsen_like.checkers.serial_order import is_explained
from jepsen_like.checkers.verdict import Finding, Outcome, Verdict, compose
from jepsen_like.histories.history import Kind, Value

__all__ = [
    "FEW",
    "Node",
    "RegisterKey",
    "check_rw_registers",
    "keys_of",
    "nodes_of",
    "not_told_apart",
    "seen_by",
]

FEW = 16  # of which each has an edge of its own; beyond that, a node stands for them
_Values = dict[Hashable, Hashable]  # by key


@dataclass(frozen=True, slots=True)
class Node:
    """A transaction that has taken place."""

    by: Transaction
    reads: _Values = field(default_factory=dict)  # before it writes there itself
    writes: _Values = field(default_factory=dict)  # its last ones


def check_rw_registers(operations: Sequence[Operation], options: Mapping[str, Value]) -> Verdict:
    """Raises `MalformedHistory`."""
    level = level_of(options)
    transactions = transactions_of(operations, "w")
    writes = Writes.by(transactions, "w")
    if (why := not_told_apart(writes)) is not None:
        return Verdict.undecided(why)
    findings: list[Finding] = []
    nodes = nodes_of(transactions, writes, findings)
    seen = set(seen_by(nodes, writes))
    nodes = [each for each in nodes if each.by.operation.kind is Kind.OK or each.by in seen]
    keys = keys_of(nodes)
    if not findings:
        findings += (found for each in keys.values() for found in each.lost_updates())
    is_strict = level == STRICT
    depends = Dependencies([node.by.operation for node in nodes])
    number = {node.by: at for at, node in enumerate(nodes)}
    for key in [key for key in writes.of if key in keys]:
        keys[key].enter(depends, number, writes, is_strict=is_strict)
    found = Found.of([*findings, *cycle_findings(depends, is_strict=is_strict)])
    verdict = verdict_of(found, level, {"transactions": len(transactions)})
    if verdict.outcome is Outcome.VALID:
        return compose([verdict, _explained(nodes, depends, is_strict=is_strict)])
    return verdict


def not_told_apart(writes: Writes) -> str | None:
    """Why nobody can tell what was read, if that is so."""
    of_none = [(key, None) for key, of in writes.of.items() if None in of]
    for key, value in [*writes.twice, *of_none]:
        return f"{value!r} was written to {key!r} twice: nobody can tell which"
    return None


def nodes_of(
    transactions: Sequence[Transaction], writes: Writes, findings: list[Finding]
) -> list[Node]:
    """Adds what is wrong with one of them."""
    return [_node(each, writes, findings) for each in transactions]


def seen_by(nodes: Sequence[Node], writes: Writes) -> Iterator[Transaction]:
    """Whose values are read."""
    for node in nodes:
        for key, value in node.reads.items():
            if value in writes.of[key]:
                yield writes.of[key][value].by


def _node(transaction: Transaction, writes: Writes, findings: list[Finding]) -> Node:
    node, known = Node(transaction), _Values()
    operation = transaction.operation
    for f, key, value in transaction.steps:
        if f == "w":
            known[key] = node.writes[key] = value
        elif key in known:
            if value != known[key]:
                told = f"{operation.index} read {value!r}, and it must be {known[key]!r}"
                findings.append(Finding.of("internal", str(key), told, operation))
        else:
            known[key] = node.reads[key] = value
            if value is not None:
                findings += writes.misread(transaction, key, value)
                findings += writes.intermediate(transaction, key, value)
                if writes.is_by(transaction, key, value):
                    told = f"{operation.index} read {value!r}, before it wrote that itself"
                    findings.append(Finding.of("internal", str(key), told, operation))
    return node


@dataclass(slots=True)
class RegisterKey:
    """Those that have taken place and write a key, or read it before they write it."""

    key: Hashable
    writers: list[Node] = field(default_factory=list)
    readers: dict[Hashable, list[Node]] = field(default_factory=lambda: defaultdict(list))

    def lost_updates(self) -> Iterator[Finding]:
        for value, readers in self.readers.items():
            over = [each.by.operation for each in readers if self.key in each.writes]
            for operation in over[1:]:
                told = f"{over[0].index} and {operation.index} read {value!r}, and write over it"
                yield Finding.of("lost-update", str(self.key), told, over[0], operation)

    def enter(
        self, depends: Edges, number: Mapping[Transaction, int], writes: Writes, *, is_strict: bool
    ) -> None:
        """`number`: of the node of each transaction that has taken place."""
        self._follow(depends, number, writes)
        self._write_over(depends, number)
        if is_strict:
            self._in_time(depends, number, writes)

    def _follow(self, depends: Edges, number: Mapping[Transaction, int], writes: Writes) -> None:
        for value, readers in self.readers.items():
            write = writes.of[self.key].get(value)
            if write is None or write.by not in number:
                continue
            writer, wrote = number[write.by], f"wrote {value!r} to {self.key!r},"
            for reader in readers:
                depends.add(writer, number[reader.by], Edge.WR, (f"{wrote} which", "read"))
                if self.key in reader.writes:
                    what = f"{wrote} and", "wrote over it"
                    depends.add(writer, number[reader.by], Edge.WW, what)

    def _write_over(self, depends: Edges, number: Mapping[Transaction, int]) -> None:
        """Who read what somebody has read, and written over, came before that.

        Nothing at all is before every write: if many have read that, and many write, those who
        only read lead to a node that stands before all writers.
        """
        for value, readers in self.readers.items():
            what = f"read {value!r} of {self.key!r}, which", "wrote over"
            writers = self.writers
            if value is not None:
                writers = [each for each in readers if self.key in each.writes]
            elif min(len(readers), len(writers)) > FEW:
                first = depends.node()
                for writer in writers:
                    depends.add(first, number[writer.by], Edge.ON)
                for reader in readers:
                    if self.key not in reader.writes:
                        depends.add(number[reader.by], first, Edge.RW, what)
                readers = [each for each in readers if self.key in each.writes]
            for writer in writers:
                for reader in readers:
                    depends.add(number[reader.by], number[writer.by], Edge.RW, what)

    def _in_time(self, depends: Edges, number: Mapping[Transaction, int], writes: Writes) -> None:
        """Who read a version came before all who began to write when its writer had ended.

        These stand in a row, each behind a node of its own that leads on to the next: so a reader
        has one edge, to the first of them. One that stands in the row itself has one to each of
        those before it, which can only be open together with it, and one to the first behind it.
        """
        row = sorted(self.writers, key=lambda each: each.by.operation.call)
        calls = [each.by.operation.call for each in row]
        entries = [depends.node() for _ in row]
        for entry, writer in zip(entries, row, strict=True):
            depends.add(entry, number[writer.by], Edge.ON)
        for entry, after in pairwise(entries):
            depends.add(entry, after, Edge.ON)
        places = {each.by: at for at, each in enumerate(row)}
        for value, readers in self.readers.items():
            write = writes.of[self.key].get(value)
            if write is None or write.by not in number:
                continue
            first = bisect_right(calls, write.by.operation.ret)
            what = f"read {value!r} of {self.key!r}, after which", "wrote later"
            for reader in readers:
                behind = first  # the first that is reached through the row
                if (own := places.get(reader.by, -1)) >= first:
                    behind = len(row) if len(row) - first <= FEW else own + 1
                for other in row[first:behind]:
                    depends.add(number[reader.by], number[other.by], Edge.RW, what)
                if behind < len(row):
                    depends.add(number[reader.by], entries[behind], Edge.RW, what)


def keys_of(nodes: Iterable[Node]) -> dict[Hashable, RegisterKey]:
    keys: dict[Hashable, RegisterKey] = {}
    for node in nodes:
        for key in node.writes:
            keys.setdefault(key, RegisterKey(key)).writers.append(node)
        for key, value in node.reads.items():
            keys.setdefault(key, RegisterKey(key)).readers[value].append(node)
    return keys


def _explained(nodes: Sequence[Node], depends: Dependencies, *, is_strict: bool) -> Verdict:
    kinds = set(Edge) if is_strict else {Edge.WW, Edge.WR, Edge.RW, Edge.ON}
    before = [(each.source, each.target) for each in depends.edges if each.kind in kinds]
    size = 1 + max((max(pair) for pair in before), default=len(nodes) - 1)
    size = max(size, len(nodes))
    others = size - len(nodes)
    rank = [node.by.operation.ret for node in nodes] + [0] * others
    nothing: list[_Values] = [{} for _ in range(others)]
    reads = [node.reads for node in nodes] + nothing
    if is_explained(rank, before, reads, [node.writes for node in nodes] + nothing):
        return Verdict.of([])
    return Verdict.undecided(
        "no order was found that explains all reads, nor a rule that is broken"
    )
