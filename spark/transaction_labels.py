"""Where in a graph of transactions there may be a cycle, found in pieces of time.

Write call(T), ret(T). label(T) is the latest call among the transactions with a path to T, itself
included. T passes on min(label(T), ret(T)) where real time counts, else label(T). So labels are the
least with label(T) ≥ call(T) and, for an edge A→B, label(B) ≥ what A passes on.

1. A cycle without a late node: labels cannot fall along it, so all are equal. Edges between nodes
   of one label, the *ties*, are looked at together: see `transaction_ties`.
2. T is *late* if ret(T) < label(T): some U with a path to T began after T had ended, so real time
   closes the cycle U→…→T→U.
3. So a cycle has one label, or passes late nodes. Labels fall only there, by ret(T)..label(T); the
   union of these intervals, the *span*, holds all labels of the cycle.
4. A span ends with the label of a late T. It is the call of a U as in 2: the end of a late node
   would be below that one's label. So all between U and T have this label, and so has a cycle.

A piece has all edges that leave the nodes of a stretch of time, and propagates labels along these.
What it passes on to nodes of other pieces is carried there, and all begin another round, until
nothing rises any more. Along an edge that leads ahead in time nothing rises. So only what takes
place across the border of two pieces is carried: transactions that are open at once, and those that
read what is old.

Source: colouring, Orzan 2004; of spans, the argument above.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jepsen_like.checkers.operations import NEVER
from jepsen_like.checkers.pairing import Column, Mask
from spark.columns import numbers
from spark.pieces import Mapped, whole
from spark.transaction_rows import ROWS, from_columns, table_of
from spark.transaction_spans import Span, merged, span_at, span_rows

__all__ = [
    "Round",
    "find_ties_and_late",
    "labels_to_carry",
    "select_spans",
]

_NONE = -(1 << 62)
_PASSES_MAX = 200_000  # edges one behind the other, along which a label rises within a piece


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """The nodes and edges of a run in a piece. Of a row that is a node, it is both ends."""

    rows: pa.Table
    source: Column  # of each row
    target: Column
    source_at: Column  # places among all nodes
    target_at: Column
    target_call: Column
    is_node: Mask
    label: Column  # of each node
    ret: Column
    is_mine: Mask

    @classmethod
    def of(cls, rows: pa.Table, carried: pa.Table, *, is_strict: bool) -> "_Piece":
        """`carried`: labels of its nodes, from other pieces."""
        source, source_call = numbers(rows, "source", _NONE), numbers(rows, "source_call")
        target = numbers(rows, "target", _NONE)
        is_node: Mask = target == _NONE
        target = np.where(is_node, source, target)
        target_call = np.where(is_node, source_call, numbers(rows, "target_call"))
        names, at = np.unique(np.concatenate([source, target]), return_inverse=True)
        source_at, target_at = at[: len(rows)], at[len(rows) :]
        label = np.full(len(names), _NONE)
        np.maximum.at(label, source_at, source_call)
        np.maximum.at(label, target_at, target_call)
        _raise(label, names, carried)
        ret = np.full(len(names), NEVER)  # or nobody asks
        if is_strict:
            ret[source_at[is_node]] = numbers(rows, "ret", NEVER)[is_node]
        is_mine = np.zeros(len(names), dtype=bool)
        is_mine[source_at] = True
        return cls(
            rows=rows,
            source=source,
            target=target,
            source_at=source_at,
            target_at=target_at,
            target_call=target_call,
            is_node=is_node,
            label=label,
            ret=ret,
            is_mine=is_mine,
        )

    def propagate(self) -> bool:
        """Raises labels along edges; whether they came to rest."""
        order = np.argsort(self.source_at, kind="stable")
        starts = np.searchsorted(self.source_at[order], np.arange(len(self.label) + 1))
        rising = np.arange(len(self.label))
        for _ in range(_PASSES_MAX):
            edges = order[_ranges(starts[rising], starts[rising + 1])]
            source, target = self.source_at[edges], self.target_at[edges]
            passed_on = np.minimum(self.label[source], self.ret[source])
            rises = passed_on > self.label[target]
            if not rises.any():
                return True
            np.maximum.at(self.label, target[rises], passed_on[rises])
            rising = np.unique(target[rises])
        return False

    @property
    def source_label(self) -> Column:
        return self.label[self.source_at]

    @property
    def passed_on(self) -> Column:
        """What the source of each row passes on."""
        passed_on: Column = np.minimum(self.label, self.ret)[self.source_at]
        return passed_on

    def leaving(self) -> Mask:
        """Edges to nodes of other pieces, which rise by them."""
        is_there = ~self.is_mine[self.target_at]
        leaves: Mask = is_there & (self.passed_on > self.target_call)
        return leaves

    def ties(self) -> Mask:
        passed_on = self.passed_on
        is_here = self.is_mine[self.target_at]
        target_label = self.label[self.target_at]
        is_one = np.where(is_here, target_label == passed_on, passed_on >= self.target_call)
        ties: Mask = ~self.is_node & (passed_on == self.source_label) & is_one
        return ties

    def late(self) -> Mask:
        has_ended: Mask = self.source_label > self.passed_on
        return has_ended & self.is_node


def _raise(label: Column, names: Column, carried: pa.Table) -> None:
    """Labels of the nodes with these names, to those that were carried for them."""
    nodes = numbers(carried, "target")
    places = np.minimum(np.searchsorted(names, nodes), len(names) - 1)
    is_here = names[places] == nodes
    np.maximum.at(label, places[is_here], numbers(carried, "label")[is_here])


def _ranges(starts: Column, ends: Column) -> Column:
    """All numbers from each start up to its end."""
    sizes = ends - starts
    before = np.cumsum(sizes) - sizes
    shifted: Column = np.arange(int(sizes.sum())) + np.repeat(starts - before, sizes)
    return shifted


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What all pieces know when they begin; `carried`: labels that they have told one another."""

    carried: pa.Table
    is_strict: bool
    mb: int


def _by_run(round_: Round, judge: Callable[[str, _Piece], pa.Table]) -> Mapped:
    def judge_all(rows: pa.Table) -> Iterator[pa.Table]:
        for run in pc.unique(rows.column("run")).to_pylist():
            mine, carried = (
                each.filter(pc.equal(each.column("run"), run)) for each in (rows, round_.carried)
            )
            yield judge(run, _Piece.of(mine, carried, is_strict=round_.is_strict))

    return whole(judge_all, round_.mb)


def labels_to_carry(round_: Round) -> Mapped:
    """Labels of nodes of other pieces, that may be news to these; or that there is no end."""

    def judge(run: str, piece: _Piece) -> pa.Table:
        if not piece.propagate():
            return table_of([{"tag": "deep", "run": run}])
        edges = np.flatnonzero(piece.leaving())
        target, label = piece.target[edges], piece.passed_on[edges]
        order = np.lexsort((-label, target))
        _, first = np.unique(target[order], return_index=True)
        highest = order[first]
        return from_columns("label", run, {"target": target[highest], "label": label[highest]})

    return _by_run(round_, judge)


def find_ties_and_late(round_: Round) -> Mapped:
    """Ties, and spans in which a transaction was late. Labels have risen to where they stay."""

    def judge(run: str, piece: _Piece) -> pa.Table:
        piece.propagate()
        ties, late = np.flatnonzero(piece.ties()), np.flatnonzero(piece.late())
        ends = {"source": piece.source, "target": piece.target, "label": piece.source_label}
        tied = from_columns("tie", run, {name: each[ties] for name, each in ends.items()})
        times = zip(piece.passed_on[late].tolist(), piece.source_label[late].tolist(), strict=True)
        spans = merged([Span(run, ret, label) for ret, label in times])
        return pa.concat_tables([tied, span_rows(run, spans)])

    return _by_run(round_, judge)


def select_spans(round_: Round, spans: Sequence[Span]) -> Mapped:
    """Nodes and edges of spans; a transaction that only ends in one is there as a moment of it."""

    def judge(run: str, piece: _Piece) -> pa.Table:
        piece.propagate()
        mine = [(at, each) for at, each in enumerate(spans) if each.run == run]
        number = np.array([at for at, _ in mine], dtype=np.int64)
        begins = np.array([each.begin for _, each in mine], dtype=np.int64)
        ends = np.array([each.end for _, each in mine], dtype=np.int64)
        by_label = span_at(piece.source_label, begins, ends, number)
        by_end = span_at(numbers(piece.rows, "ret", NEVER), begins, ends, number)
        ends_in = piece.is_node & (by_end >= 0) & (by_end != by_label)
        parts = [(by_label, by_label >= 0), (by_end, ends_in)]
        return pa.concat_tables([_in_spans(piece.rows, *each) for each in parts])

    return _by_run(round_, judge)


def _in_spans(rows: pa.Table, span: Column, wanted: Mask) -> pa.Table:
    at = ROWS.get_field_index("span")
    chosen = rows.select(ROWS.names).filter(pa.array(wanted)).cast(ROWS)
    column: Any = pa.array(span[wanted], pa.int64())
    return chosen.set_column(at, ROWS.field(at), column)
