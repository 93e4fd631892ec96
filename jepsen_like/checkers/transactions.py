"""Transactions on logs: no cycle of dependencies between operations.

    G1c    a cycle of operations, at least one of which read what another one wrote
    G0     a cycle of writes alone
    -process, -realtime: the cycle needs the order within a process, or that of real time

The edges in which cycles are sought:

    ww        one wrote a record, the other the next one of the same key
    wr        one wrote what the other read
    process   one came before the other in the same process
    realtime  one had ended before the other began

A writer is an operation that is known to have written: acknowledged, or read by somebody. Real time
is a chain of moments, one at the end of each operation: so there are few edges, not one a pair.

Kafka does not isolate the writes of transactions from each other: their records may be mixed. So
cycles through the order of writes (ww) are counted and allowed, unless the run's option
`isolated_writes` says that they are not. `int-send-skip` is counted, too: within one transaction a
key's sends do not lie next to each other, which nothing promises.

Of each strongly connected component one cycle is reported, the shortest of those that were looked
at (`dependency_graph`). Source: Adya's dependencies as in Jepsen's kafka workload, where offsets
order versions; Elle (Kingsbury and Alvaro 2020) for which cycles matter.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from jepsen_like.checkers.dependency_graph import Graph, in_processes, in_time
from jepsen_like.checkers.log_columns import FAIL, UNKNOWN, LogColumns
from jepsen_like.checkers.log_sessions import internal_send_skips
from jepsen_like.checkers.operations import Operation, lines_of
from jepsen_like.checkers.pairing import Column, first_rows
from jepsen_like.checkers.verdict import Finding, Verdict, place
from jepsen_like.histories.history import Value

__all__ = ["check_transactions"]


class Kind(IntEnum):
    WW = 0
    WR = 1
    PROCESS = 2
    REALTIME = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dependencies:
    operations: Sequence[Operation]  # one a node; what nodes are more are moments
    source: Column  # nodes
    target: Column
    kind: Column
    key: Column  # of ww and wr; else UNKNOWN
    value: Column  # that the source wrote; else UNKNOWN

    @classmethod
    def of(cls, log: LogColumns, operations: Sequence[Operation]) -> "Dependencies":
        nodes = [each for each in operations if each.f in ("send", "poll", "txn")]
        places = np.array([place(each) for each in nodes], dtype=np.int64)
        order = np.argsort(places)
        places = places[order]

        def node(of: Column) -> Column:
            return order[np.searchsorted(places, of)]

        parts = {
            Kind.WW: _writes(log, node),
            Kind.WR: _reads(log, node),
            Kind.PROCESS: _plain(in_processes(nodes)),
            Kind.REALTIME: _plain(in_time(nodes)),
        }
        source, target, key, value = map(np.concatenate, zip(*parts.values(), strict=True))
        kind = np.repeat(list(parts), [len(part[0]) for part in parts.values()])
        return cls(operations=nodes, source=source, target=target, kind=kind, key=key, value=value)

    def only(self, kinds: Sequence[Kind]) -> tuple[Graph, Column]:
        """The graph of these, and which edges they are."""
        edges = np.flatnonzero(np.isin(self.kind, kinds) & (self.source != self.target))
        return Graph(source=self.source[edges], target=self.target[edges]), edges


_Edges = tuple[Column, Column, Column, Column]  # source, target, key, value


def _writers(log: LogColumns) -> tuple[Column, Column]:
    """Finds for each read and each offset the row of the send that wrote it, else UNKNOWN."""
    sends = log.sends
    able = np.flatnonzero(sends.kind != FAIL)
    first = first_rows(log.by_value.sends[able], log.by_value.size)[log.by_value.reads]
    of_reads = np.where(first >= 0, able[first] if len(able) else UNKNOWN, UNKNOWN)
    of_offsets = np.full(log.by_offset.size, UNKNOWN)
    of_offsets[log.by_offset.reads] = of_reads
    told = np.flatnonzero(log.is_told)
    of_offsets[log.by_offset.sends[told]] = told
    return of_reads, of_offsets


def _writes(log: LogColumns, node: Callable[[Column], Column]) -> _Edges:
    """Offsets have numbers in their order, those of one key one after the other."""
    sends, (_, writers) = log.sends, _writers(log)
    is_seen = np.zeros(log.by_offset.size, dtype=bool)
    is_seen[log.by_offset.reads] = True
    is_seen[log.by_offset.sends[log.is_told]] = True
    row = writers[np.flatnonzero(is_seen)]
    before, after = row[:-1], row[1:]
    known = (before >= 0) & (after >= 0)
    before, after = before[known], after[known]
    same = sends.key[before] == sends.key[after]
    before, after = before[same], after[same]
    one, other = node(sends.operation[before]), node(sends.operation[after])
    return one, other, sends.key[before], sends.value[before]


def _reads(log: LogColumns, node: Callable[[Column], Column]) -> _Edges:
    sends, (writers, _) = log.sends, _writers(log)
    read = np.flatnonzero(writers >= 0)
    sent = writers[read]
    one, other = node(sends.operation[sent]), node(log.reads.operation[read])
    return one, other, sends.key[sent], sends.value[sent]


def _plain(pairs: Column) -> _Edges:
    none = np.full(pairs.shape[1], UNKNOWN)
    return pairs[0], pairs[1], none, none


_SEEDS = 32  # edges of a component through which a cycle is sought
_SHOWN = 3  # cycles of one name
_ORDERS: Sequence[Sequence[Kind]] = ((), (Kind.PROCESS,), (Kind.REALTIME,))
_SUFFIX = {Kind.REALTIME: "-realtime", Kind.PROCESS: "-process"}


def check_transactions(
    log: LogColumns, operations: Sequence[Operation], options: Mapping[str, Value]
) -> Verdict:
    depends = Dependencies.of(log, operations)
    forbidden = list(_found(log, depends, (Kind.WR,)))
    through_writes = [*_found(log, depends, (Kind.WW,)), *_found(log, depends, (Kind.WW, Kind.WR))]
    known = {(cycle.rule, cycle.ops) for cycle in forbidden}
    through_writes = [cycle for cycle in through_writes if (cycle.rule, cycle.ops) not in known]
    counts = {"int-send-skip, allowed": len(internal_send_skips(log))}
    if options.get("isolated_writes", False):
        forbidden += through_writes
    else:
        counts["cycles through writes, allowed"] = len(through_writes)
    return Verdict.of(forbidden, counts)


def _found(log: LogColumns, depends: Dependencies, kinds: Sequence[Kind]) -> Iterator[Finding]:
    """Each name needs what the earlier ones do not: the last of its kinds."""
    shown: Counter[str] = Counter()
    told: set[tuple[int, ...]] = set()
    for order in _ORDERS:
        graph, edges = depends.only([*kinds, *order])
        for component in graph.components():
            cycle = _shortest(depends, graph, edges, component, kinds[-1])
            if cycle is None:
                continue
            finding = _finding(log, depends, edges[cycle])
            shown[finding.rule] += 1
            if shown[finding.rule] <= _SHOWN and finding.ops not in told:
                told.add(finding.ops)
                yield finding


def _shortest(
    depends: Dependencies, graph: Graph, edges: Column, component: Column, through: Kind
) -> list[int] | None:
    """None if there is no such edge in the component, which has another name then."""
    seeds = component[depends.kind[edges[component]] == through][:_SEEDS].tolist()
    return min((graph.cycle(component, seed) for seed in seeds), key=len, default=None)


def _finding(log: LogColumns, depends: Dependencies, cycle: Column) -> Finding:
    kinds = {Kind(int(kind)) for kind in depends.kind[cycle]}
    suffix = next((name for kind, name in _SUFFIX.items() if kind in kinds), "")
    nodes = [node for node in depends.source[cycle].tolist() if node < len(depends.operations)]
    return Finding(
        rule=("G1c" if Kind.WR in kinds else "G0") + suffix,
        object=log.keys[int(depends.key[cycle].max())],
        detail="; ".join(_steps(log, depends, cycle)),
        ops=lines_of(depends.operations[node] for node in nodes),
    )


def _steps(log: LogColumns, depends: Dependencies, cycle: Column) -> Iterator[str]:
    """An edge a step; of several moments in a row only the first, with the operation after them."""
    begun = None
    for edge in cycle.tolist():
        source, target = int(depends.source[edge]), int(depends.target[edge])
        begun = source if source < len(depends.operations) else begun
        if target >= len(depends.operations):
            continue
        assert begun is not None, "a cycle begins with an operation"
        one, other = (depends.operations[node].index for node in (begun, target))
        key, value = int(depends.key[edge]), int(depends.value[edge])
        match Kind(int(depends.kind[edge])):
            case Kind.WW:
                at = f"{log.values[value]!r} to {log.keys[key]}"
                yield f"{one} wrote {at}, and {other} what comes right after it"
            case Kind.WR:
                yield f"{one} wrote {log.values[value]!r} to {log.keys[key]}, which {other} read"
            case Kind.PROCESS:
                yield f"{one} came before {other} in its process"
            case Kind.REALTIME:
                yield f"{one} had ended when {other} began"
