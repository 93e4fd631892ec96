"""Dependencies of operations as a graph: its cycles, and the orders of processes and of real time.

A node without an edge to it, or from it, is in no cycle, and leaving it out may leave others
without one. Most nodes of a history go so, in passes over columns. What remains falls into strongly
connected components; the shortest cycle through an edge of one is found breadth first. Source:
Tarjan 1972; Elle (Kingsbury and Alvaro 2020).
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from jepsen_like.checkers.operations import NEVER, Operation
from jepsen_like.checkers.pairing import Column

__all__ = ["Graph", "in_processes", "in_time"]

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


def in_processes(nodes: Sequence[Operation]) -> Column:
    """Pairs of nodes: one came before the other in its process. Two rows: sources, targets."""
    last: dict[int | str, int] = {}
    pairs = []
    for number, operation in enumerate(nodes):
        if operation.process in last:
            pairs.append((last[operation.process], number))
        last[operation.process] = number
    return np.array(pairs, dtype=np.int64).reshape(len(pairs), 2).T


def in_time(nodes: Sequence[Operation]) -> Column:
    """Pairs of nodes: one had ended before the other began. Two rows: sources, targets.

    They go through moments, one at the end of each operation, which are nodes behind all
    operations: so there are few of them, and not one for each two operations.
    """
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
    return np.concatenate([ends, follows, begins], axis=1)
