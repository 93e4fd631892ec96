"""Cycles of transactions that depend on one another, and their names.

    ww        one wrote a version, the other a later one of the same key
    wr        one wrote what the other read
    rw        one read a version, the other wrote a later one
    process   one came before the other in the same process
    realtime  one had ended before the other began

    G0             a cycle of ww
    G1c            of ww and wr, at least one wr
    G-single       with exactly one rw
    G-nonadjacent  with several rw, no two of them next to each other
    G2-item        with several rw
    -process, -realtime: the cycle needs that order

Which of them are forbidden is in `isolation_levels`.

Source: Adya, Liskov and O'Neil 2000; Elle (Kingsbury and Alvaro 2020) for the names.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

from jepsen_like.checkers.dependency_graph import Graph, in_processes, in_time
from jepsen_like.checkers.operations import Operation, lines_of
from jepsen_like.checkers.pairing import Column
from jepsen_like.checkers.verdict import Finding

__all__ = ["Dependencies", "Edge", "Edges", "cycle_findings"]

_SEEDS = 200  # edges of a component through which a cycle is sought


class Edge(IntEnum):
    WW = 0
    WR = 1
    RW = 2
    PROCESS = 3
    REALTIME = 4
    ON = 5  # leaves a node that stands for several; has the kind of the edge that led there


class _Dependency(NamedTuple):
    source: int
    target: int
    kind: Edge
    what: tuple[str, str]  # in words, to stand behind the one transaction, and the other


class Edges(Protocol):
    """Takes what is known of who came before whom."""

    def node(self) -> int:
        """A node that is no transaction, and stands for several."""

    def add(self, source: int, target: int, kind: Edge, what: tuple[str, str] = ("", "")) -> None:
        """`what`: in words, to stand behind the one transaction, and the other."""


@dataclass(slots=True)
class Dependencies:
    """Nodes are transactions, then moments of real time, then whatever `node` makes."""

    operations: Sequence[Operation]
    edges: list[_Dependency] = field(default_factory=list)
    _size: int = 0

    def __post_init__(self) -> None:
        in_order = in_processes(self.operations), in_time(self.operations)
        self._size = 1 + max((int(each.max(initial=0)) for each in in_order), default=0)
        self._size = max(self._size, len(self.operations))
        says = ("came before", "in its process"), ("had ended when", "began")
        for kind, pairs, what in zip((Edge.PROCESS, Edge.REALTIME), in_order, says, strict=True):
            for source, target in pairs.T.tolist():
                self.edges.append(_Dependency(source, target, kind, what))

    def node(self) -> int:
        self._size += 1
        return self._size - 1

    def add(self, source: int, target: int, kind: Edge, what: tuple[str, str] = ("", "")) -> None:
        if source != target:
            self.edges.append(_Dependency(source, target, kind, what))

    def cycles(self, *, is_strict: bool) -> Iterator[tuple[str, list[_Dependency]]]:
        """Yields a cycle of each name from each component, by the weakest orders that make one."""
        orders = ((), (Edge.PROCESS,), (Edge.REALTIME,)) if is_strict else ((),)
        for order in orders:
            yield from self._through((Edge.WW, *order), Edge.WW)
            yield from self._through((Edge.WW, Edge.WR, *order), Edge.WR)
            yield from self._through((Edge.WW, Edge.WR, Edge.RW, *order), Edge.RW)

    def _through(
        self, kinds: Sequence[Edge], needed: Edge
    ) -> Iterator[tuple[str, list[_Dependency]]]:
        wanted = [*kinds, Edge.ON]
        edges = [each for each in self.edges if each.kind in wanted]
        if not edges:
            return
        graph = Graph(source=_column(edges, 0), target=_column(edges, 1))
        for component in graph.components():
            inside = [edges[at] for at in component.tolist()]
            yield from _shortest_by_name(inside, needed)


def _column(edges: Sequence[_Dependency], at: int) -> Column:
    return np.fromiter((each[at] for each in edges), np.int64, len(edges))


def _shortest_by_name(
    inside: Sequence[_Dependency], needed: Edge
) -> Iterator[tuple[str, list[_Dependency]]]:
    """The shortest of each name through edges of that kind in this component."""
    best: dict[str, list[_Dependency]] = {}
    leaving: dict[int, list[_Dependency]] = {}
    for each in inside:
        leaving.setdefault(each.source, []).append(each)
    for seed in [each for each in inside if each.kind is needed][:_SEEDS]:
        tries = (_shortest(leaving, seed, rw) for rw in (_Rw.NO_OTHER, _Rw.APART, _Rw.ANY))
        found = next((cycle for cycle in tries if cycle is not None), None)
        if found is not None:
            name = _name(found)
            if name not in best or len(found) < len(best[name]):
                best[name] = found
    yield from best.items()


class _Rw(Enum):
    """Which edges rw a cycle may have beside the first of its edges."""

    NO_OTHER = 0
    APART = 1  # no two next to each other
    ANY = 2


def _shortest(
    leaving: Mapping[int, Sequence[_Dependency]], seed: _Dependency, rw: _Rw
) -> list[_Dependency] | None:
    """The shortest through `seed`. A state is a node, and whether an edge rw led there."""
    start = seed.target, seed.kind is Edge.RW
    came_by: dict[tuple[int, bool], tuple[_Dependency, tuple[int, bool] | None]] = {
        start: (seed, None)
    }
    waiting = deque([start])
    while waiting:
        state = waiting.popleft()
        node, is_rw = state
        if node == seed.source and not (is_rw and rw is _Rw.APART):
            return _path(came_by, state)
        for each in leaving.get(node, ()):
            if each.kind is Edge.RW and (rw is _Rw.NO_OTHER or (is_rw and rw is _Rw.APART)):
                continue
            after = each.target, is_rw if each.kind is Edge.ON else each.kind is Edge.RW
            if after not in came_by:
                came_by[after] = each, state
                waiting.append(after)
    return None


def _path(
    came_by: Mapping[tuple[int, bool], tuple[_Dependency, tuple[int, bool] | None]],
    end: tuple[int, bool],
) -> list[_Dependency]:
    path, at = [], end
    while True:
        each, before = came_by[at]
        path.append(each)
        if before is None:
            return path[::-1]
        at = before


def _name(cycle: Sequence[_Dependency]) -> str:
    kinds = [each.kind for each in cycle if each.kind is not Edge.ON]
    against = kinds.count(Edge.RW)
    if against == 0:
        name = "G1c" if Edge.WR in kinds else "G0"
    elif against == 1:
        name = "G-single"
    else:
        closed = [*kinds, kinds[0]]
        touches = any(one is other is Edge.RW for one, other in pairwise(closed))
        name = "G2-item" if touches else "G-nonadjacent"
    if Edge.REALTIME in kinds:
        return f"{name}-realtime"
    return f"{name}-process" if Edge.PROCESS in kinds else name


def cycle_findings(depends: Dependencies, *, is_strict: bool) -> Iterator[Finding]:
    """What breaks a rule of cycles; `is_strict`: the orders of processes and of time count."""
    told: set[tuple[str, tuple[int, ...]]] = set()
    for rule, cycle in depends.cycles(is_strict=is_strict):
        nodes = [each.source for each in cycle if each.source < len(depends.operations)]
        lines = lines_of(depends.operations[node] for node in nodes)
        if (rule, lines) not in told:
            told.add((rule, lines))
            detail = "; ".join(_steps(depends, cycle))
            yield Finding(rule=rule, object="transactions", detail=detail, ops=lines)


def _steps(depends: Dependencies, cycle: Sequence[_Dependency]) -> Iterator[str]:
    """What leads from one transaction to the next, each in one sentence."""
    count = len(depends.operations)
    start = next(at for at, each in enumerate(cycle) if each.source < count)
    source, what = -1, ("", "")
    for each in [*cycle[start:], *cycle[:start]]:
        if each.source < count:
            source, what = each.source, each.what
        if each.target < count:
            one, other = (depends.operations[node].index for node in (source, each.target))
            yield f"{one} {what[0]} {other} {what[1]}"
