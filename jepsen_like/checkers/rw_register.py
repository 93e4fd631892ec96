"""Transactions that write registers and read them (Jepsen's `wr`): values come in an order to find.

- `phantom`, `G1a`, `G1b`, `internal`, `lost-update`: as of lists that are appended to
- circles: see `isolation`

Only what is certain makes an edge. A version comes after the one that its writer has read, and
after nothing at all; where strict serializability is promised, also after those whose writers had
ended when its own began. So not every history without a circle is right: then an order that
explains all reads is looked for (`serial_order`), and where none is found, it is undecided, at
whatever level.

Every value must be written once to a key; otherwise it is undecided. A register begins as None.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from jepsen_like.checkers.isolation import STRICT, Dependencies, Edge, level_of, verdict_of
from jepsen_like.checkers.micro_operations import Transaction, Writes, transactions_of
from jepsen_like.checkers.operations import Operation
from jepsen_like.checkers.serial_order import is_explained
from jepsen_like.checkers.verdict import Finding, Outcome, Verdict, compose
from jepsen_like.histories.history import Kind, Value

__all__ = ["check_rw_registers"]

_Values = dict[Hashable, Hashable]  # by key


@dataclass(frozen=True, slots=True)
class _Node:
    """A transaction that has taken place."""

    by: Transaction
    reads: _Values = field(default_factory=dict)  # before it writes there itself
    writes: _Values = field(default_factory=dict)  # its last ones


def check_rw_registers(operations: Sequence[Operation], options: Mapping[str, Value]) -> Verdict:
    """Raises `MalformedHistory`."""
    level = level_of(options)
    transactions = transactions_of(operations, "w")
    writes = Writes.by(transactions, "w")
    if writes.twice or any(None in of for of in writes.of.values()):
        key, value = writes.twice[0] if writes.twice else (_of_none(writes), None)
        return Verdict.undecided(f"{value!r} was written to {key!r} twice: nobody can tell which")
    findings: list[Finding] = []
    nodes = [_node(each, writes, findings) for each in transactions]
    seen = {
        writes.of[key][value].by
        for node in nodes
        for key, value in node.reads.items()
        if value in writes.of[key]
    }
    nodes = [each for each in nodes if each.by.operation.kind is Kind.OK or each.by in seen]
    if not findings:
        findings += _lost_updates(nodes)
    depends = _depends(nodes, writes, is_strict=level == STRICT)
    verdict = verdict_of(findings, depends, level, {"transactions": len(transactions)})
    if verdict.outcome is Outcome.VALID:
        return compose([verdict, _explained(nodes, depends, is_strict=level == STRICT)])
    return verdict


def _of_none(writes: Writes) -> Hashable:
    return next(key for key, of in writes.of.items() if None in of)


def _node(transaction: Transaction, writes: Writes, findings: list[Finding]) -> _Node:
    node, known = _Node(transaction), _Values()
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


def _lost_updates(nodes: Sequence[_Node]) -> Iterator[Finding]:
    first: dict[tuple[Hashable, Hashable], Operation] = {}
    for node in nodes:
        for key in node.reads.keys() & node.writes.keys():
            version, operation = (key, node.reads[key]), node.by.operation
            if version in first:
                other = first[version]
                told = f"{other.index} and {operation.index} read {version[1]!r}, and write over it"
                yield Finding.of("lost-update", str(key), told, other, operation)
            first.setdefault(version, operation)


def _depends(nodes: Sequence[_Node], writes: Writes, *, is_strict: bool) -> Dependencies:
    depends = Dependencies([node.by.operation for node in nodes])
    number = {node.by: at for at, node in enumerate(nodes)}
    writers: dict[Hashable, list[int]] = defaultdict(list)
    readers: dict[tuple[Hashable, Hashable], list[int]] = defaultdict(list)
    for at, node in enumerate(nodes):
        for key in node.writes:
            writers[key].append(at)
        for key, value in node.reads.items():
            readers[key, value].append(at)
            write = writes.of[key].get(value)
            if write is not None and write.by in number:
                _follow(depends, number[write.by], at, key, value, node)
    _write_over(depends, nodes, writers, readers)
    if is_strict:
        for key, by in writers.items():
            _in_time(depends, nodes, key, by, readers, number, writes)
    return depends


def _write_over(
    depends: Dependencies,
    nodes: Sequence[_Node],
    writers: Mapping[Hashable, Sequence[int]],
    readers: Mapping[tuple[Hashable, Hashable], Sequence[int]],
) -> None:
    """Who read what somebody has read, and written over, came before that."""
    for (key, value), of in readers.items():
        for writer in writers.get(key, ()):
            if value is None or nodes[writer].reads.get(key, writers) == value:
                what = f"read {value!r} of {key!r}, which", "wrote over"
                for reader in of:
                    depends.add(reader, writer, Edge.RW, what)


def _follow(
    depends: Dependencies, writer: int, at: int, key: Hashable, value: Hashable, node: _Node
) -> None:
    depends.add(writer, at, Edge.WR, (f"wrote {value!r} to {key!r}, which", "read"))
    if key in node.writes:
        depends.add(writer, at, Edge.WW, (f"wrote {value!r} to {key!r}, and", "wrote over it"))


def _in_time(
    depends: Dependencies,
    nodes: Sequence[_Node],
    key: Hashable,
    by: Sequence[int],
    readers: Mapping[tuple[Hashable, Hashable], Sequence[int]],
    number: Mapping[Transaction, int],
    writes: Writes,
) -> None:
    """Who read a version came before all who began to write when its writer had ended.

    These stand in a row, each behind a node of its own that leads on to the next: so a reader has
    one edge, to the first of them.
    """
    row = sorted(by, key=lambda at: nodes[at].by.operation.call)
    calls = [nodes[at].by.operation.call for at in row]
    entries = [depends.node() for _ in row]
    for at, (entry, writer) in enumerate(zip(entries, row, strict=True)):
        depends.add(entry, writer, Edge.ON)
        if at + 1 < len(row):
            depends.add(entry, entries[at + 1], Edge.ON)
    for value, write in writes.of[key].items():
        if write.by not in number:
            continue
        first = bisect_right(calls, write.by.operation.ret)
        for reader in readers.get((key, value), ()):
            later = row[first:]
            what = f"read {value!r} of {key!r}, after which", "wrote later"
            if reader not in later and later:
                depends.add(reader, entries[first], Edge.RW, what)
            for other in later if reader in later else ():
                depends.add(reader, other, Edge.RW, what)


def _explained(nodes: Sequence[_Node], depends: Dependencies, *, is_strict: bool) -> Verdict:
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
