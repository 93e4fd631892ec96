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

A node without an edge to it, or from it, is in no cycle, and leaving it out may leave others
without one. Most nodes of a history go so, in passes over columns. What remains falls into strongly
connected components; the shortest cycle through an edge of one is found breadth first, and of each
component one cycle is reported, the shortest of those that were looked at. Source: Adya's
dependencies as in Jepsen's kafka workload, where offsets order versions; Tarjan 1972; Elle
(Kingsbury and Alvaro 2020) for which cycles matter.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from jepsen_like.checkers.log_columns import FAIL, UNKNOWN, LogColumns
from jepsen_like.checkers.log_sessions import internal_send_skips
from jepsen_like.checkers.operations import NEVER, Operation, lines_of
from jepsen_like.checkers.pairing import Column, first_rows
from jepsen_like.checkers.verdict import Finding, Verdict, place
from jepsen_like.histories.history import Value

__all__ = ["Graph", "check_transactions"]

_PASSES = 50  # of cutting off; a long chain is left to the search


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Graph:
    source: Column  # of each edge
    target: Column

    def components(self) -> list[Column]:
        """Returns the edges of each strongly connected component that has a cycle."""
        edges = self._that_may_be_in_cycles()
        nodes, ends = np.unique(
            np.concatenate([self.source[edges], self.target[edges]]), return_inverse=True
        )
        source, target = ends[: len(edges)], ends[len(edges) :]
        component = np.array(_components(_neighbours(len(nodes), source, target)), dtype=np.int64)
        inside = np.flatnonzero(component[source] == component[target]) if len(edges) else edges
        inside = inside[np.argsort(component[source[inside]], kind="stable")]
        of = component[source[inside]]
        starts = np.flatnonzero(np.diff(of)) + 1
        return [edges[part] for part in np.split(inside, starts) if len(part)]

    def cycle(self, component: Column, seed: int) -> list[int]:
        """The shortest one through this edge of a component, as edges in their order."""
        leaving: dict[int, list[int]] = {}
        for edge in component.tolist():
            leaving.setdefault(int(self.source[edge]), []).append(edge)
        first, last = int(self.target[seed]), int(self.source[seed])
        came_by = {first: seed}
        waiting = deque([first])
        while last not in came_by:
            for edge in leaving[waiting.popleft()]:
                after = int(self.target[edge])
                if after not in came_by:
                    came_by[after] = edge
                    waiting.append(after)
        path = [came_by[last]]
        while path[-1] != seed:
            path.append(came_by[int(self.source[path[-1]])])
        return path[::-1]

    def _that_may_be_in_cycles(self) -> Column:
        edges = np.flatnonzero(self.source != self.target)
        size = 1 + max(int(self.source.max(initial=-1)), int(self.target.max(initial=-1)))
        for _ in range(_PASSES):
            source, target = self.source[edges], self.target[edges]
            is_inner = np.zeros(size, dtype=bool)
            is_inner[target] = True
            is_left = np.zeros(size, dtype=bool)
            is_left[source] = True
            kept = edges[is_inner[source] & is_left[target]]
            if len(kept) == len(edges):
                break
            edges = kept
        return edges


def _neighbours(size: int, source: Column, target: Column) -> list[list[int]]:
    neighbours: list[list[int]] = [[] for _ in range(size)]
    for one, other in zip(source.tolist(), target.tolist(), strict=True):
        neighbours[one].append(other)
    return neighbours


def _components(neighbours: Sequence[Sequence[int]]) -> list[int]:
    """Numbers the strongly connected components, and gives each node its number."""
    walk = _Walk(neighbours)
    for root in range(len(neighbours)):
        if walk.found[root] < 0:
            walk.enter(root)
        while walk.path:
            node, rest = walk.path[-1]
            after = next((each for each in rest if walk.leads_on(node, each)), None)
            if after is None:
                walk.leave(node)
            else:
                walk.enter(after)
    return walk.component


class _Walk:
    """Depth first; a path of nodes, not of calls, since it may be long."""

    def __init__(self, neighbours: Sequence[Sequence[int]]) -> None:
        self._neighbours = neighbours
        self.component = [-1] * len(neighbours)
        self.found = [-1] * len(neighbours)  # the how-manieth that was seen
        self._lowest = [0] * len(neighbours)  # the first that it leads back to
        self._count = self._components = 0
        self._open: list[int] = []  # seen, and of no component yet
        self.path: list[tuple[int, Iterator[int]]] = []

    def enter(self, node: int) -> None:
        self.found[node] = self._lowest[node] = self._count
        self._count += 1
        self._open.append(node)
        self.path.append((node, iter(self._neighbours[node])))

    def leads_on(self, node: int, after: int) -> bool:
        if self.found[after] < 0:
            return True
        if self.component[after] < 0:
            self._lowest[node] = min(self._lowest[node], self.found[after])
        return False

    def leave(self, node: int) -> None:
        self.path.pop()
        if self.path:
            before = self.path[-1][0]
            self._lowest[before] = min(self._lowest[before], self._lowest[node])
        if self._lowest[node] == self.found[node]:
            while self.component[node] < 0:
                self.component[self._open.pop()] = self._components
            self._components += 1


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
            Kind.PROCESS: _in_processes(nodes),
            Kind.REALTIME: _in_time(nodes),
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


def _in_processes(nodes: Sequence[Operation]) -> _Edges:
    last: dict[int | str, int] = {}
    pairs = []
    for number, operation in enumerate(nodes):
        if operation.process in last:
            pairs.append((last[operation.process], number))
        last[operation.process] = number
    return _plain(np.array(pairs, dtype=np.int64).reshape(len(pairs), 2).T)


def _in_time(nodes: Sequence[Operation]) -> _Edges:
    """Through moments, which are nodes behind all operations."""
    calls = np.array([each.call for each in nodes], dtype=np.int64)
    rets = np.array([each.ret for each in nodes], dtype=np.int64)
    ended = np.flatnonzero(rets < NEVER)
    ended = ended[np.argsort(rets[ended], kind="stable")]
    moments = len(nodes) + np.arange(len(ended))
    before = np.searchsorted(rets[ended], calls) - 1
    begun = np.flatnonzero(before >= 0)
    ends = np.stack([ended, moments])
    follows = np.stack([moments[:-1], moments[1:]])
    begins = np.stack([moments[before[begun]], begun])
    return _plain(np.concatenate([ends, follows, begins], axis=1))


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
