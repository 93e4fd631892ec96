"""Where in a graph of transactions there may be a cycle, found in pieces of time.

Each node has a *label*: the latest time at which a node that leads to it begins, itself among them.
So it is the earliest moment at which the node can have taken place, and along an edge labels never
fall. Around a cycle all are one.

- A cycle of dependencies alone has one label, and the edges between nodes of one label, the
  *ties*, are few and close together.
- Where the order of time counts, a transaction may be *late*: it had ended before its label, so
  that what leads to it began when it was over. It leads on with its end instead of its label.

A piece has all edges that leave the nodes of a stretch of time, and settles the labels of these.
What leads to other pieces is carried there, and all settle again, until nothing rises any more.
Along an edge that leads ahead in time nothing rises. So only what takes place across the border of
two pieces is carried: transactions that are open at once, and those that read what is old.

A *span* is time without a gap from the end of something late to its label, or the one label of a
cycle. No cycle leaves its span: it would have to come back, and only what is late leads back.
Source: colouring, Orzan 2004; of spans, the argument above.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jepsen_like.checkers.dependency_graph import Graph
from jepsen_like.checkers.operations import NEVER
from jepsen_like.checkers.pairing import Column, Mask
from spark.columns import numbers
from spark.pieces import Mapped, whole
from spark.transaction_rows import ROWS, from_columns, table_of

__all__ = ["Settling", "Span", "circular", "inside", "merged", "settled", "suspicious"]

_NONE = -(1 << 62)
_DEEP = 200_000  # edges one behind the other, along which a label rises within a piece


class Span(NamedTuple):
    run: str
    begin: int
    end: int
    label: int  # in it: of a cycle alone, or of what is least late


class _Piece:
    """The nodes and edges of a run in a piece; `carried` are labels of its nodes."""

    def __init__(self, rows: pa.Table, carried: pa.Table, *, is_strict: bool) -> None:
        self.rows = rows
        self.source, begin = numbers(rows, "source", _NONE), numbers(rows, "source_call")
        target = numbers(rows, "target", _NONE)
        self.is_node: Mask = target == _NONE
        self.target = np.where(self.is_node, self.source, target)
        self.until = np.where(self.is_node, begin, numbers(rows, "target_call"))
        names, at = np.unique(np.concatenate([self.source, self.target]), return_inverse=True)
        self.one, self.other = at[: len(rows)], at[len(rows) :]
        self.label = np.full(len(names), _NONE)
        np.maximum.at(self.label, self.one, begin)
        np.maximum.at(self.label, self.other, self.until)
        self.ret = np.full(len(names), NEVER)  # or nobody asks
        if is_strict:
            self.ret[self.one[self.is_node]] = numbers(rows, "ret", NEVER)[self.is_node]
        self.is_mine = np.zeros(len(names), dtype=bool)
        self.is_mine[self.one] = True
        nodes = numbers(carried, "target")
        places = np.minimum(np.searchsorted(names, nodes), len(names) - 1)
        is_here = names[places] == nodes
        np.maximum.at(self.label, places[is_here], numbers(carried, "label")[is_here])
        self.is_settled = True
        self._settle()

    def _settle(self) -> None:
        order = np.argsort(self.one, kind="stable")
        starts = np.searchsorted(self.one[order], np.arange(len(self.label) + 1))
        rising = np.arange(len(self.label))
        for _ in range(_DEEP):
            edges = order[_ranges(starts[rising], starts[rising + 1])]
            one, other = self.one[edges], self.other[edges]
            led = np.minimum(self.label[one], self.ret[one])
            rises = led > self.label[other]
            if not rises.any():
                return
            np.maximum.at(self.label, other[rises], led[rises])
            rising = np.unique(other[rises])
        self.is_settled = False

    @property
    def of_source(self) -> Column:
        return self.label[self.one]

    @property
    def led(self) -> Column:
        """What each edge leads on."""
        led: Column = np.minimum(self.label, self.ret)[self.one]
        return led

    def leaving(self) -> Mask:
        """Edges to nodes of other pieces, which rise by them."""
        leaves: Mask = ~self.is_mine[self.other] & (self.led > self.until)
        return leaves

    def ties(self) -> Mask:
        led = self.led
        is_here = self.is_mine[self.other]
        is_one = np.where(is_here, self.label[self.other] == led, led >= self.until)
        ties: Mask = ~self.is_node & (led == self.of_source) & is_one
        return ties

    def late(self) -> Mask:
        has_ended: Mask = self.of_source > self.led
        return has_ended & self.is_node


def _ranges(starts: Column, ends: Column) -> Column:
    """All numbers from each start up to its end."""
    sizes = ends - starts
    before = np.cumsum(sizes) - sizes
    shifted: Column = np.arange(int(sizes.sum())) + np.repeat(starts - before, sizes)
    return shifted


@dataclass(frozen=True, slots=True, kw_only=True)
class Settling:
    """`carried`: labels that pieces have told."""

    carried: pa.Table
    is_strict: bool
    mb: int


def _by_run(of: Settling, judge: Callable[[str, _Piece], pa.Table]) -> Mapped:
    def judge_all(rows: pa.Table) -> Iterator[pa.Table]:
        for run in pc.unique(rows.column("run")).to_pylist():
            mine, carried = (
                each.filter(pc.equal(each.column("run"), run)) for each in (rows, of.carried)
            )
            yield judge(run, _Piece(mine, carried, is_strict=of.is_strict))

    return whole(judge_all, of.mb)


def settled(of: Settling) -> Mapped:
    """Labels of nodes of other pieces, that may be news to these; or that there is no end."""

    def judge(run: str, piece: _Piece) -> pa.Table:
        if not piece.is_settled:
            return table_of([{"tag": "deep", "run": run}])
        edges = np.flatnonzero(piece.leaving())
        target, label = piece.target[edges], piece.led[edges]
        order = np.lexsort((-label, target))
        _, first = np.unique(target[order], return_index=True)
        highest = order[first]
        return from_columns("label", run, {"target": target[highest], "label": label[highest]})

    return _by_run(of, judge)


def suspicious(of: Settling) -> Mapped:
    """Ties, and spans in which a transaction was late. Labels have risen to where they stay."""

    def judge(run: str, piece: _Piece) -> pa.Table:
        ties, late = np.flatnonzero(piece.ties()), np.flatnonzero(piece.late())
        ends = {"source": piece.source, "target": piece.target, "label": piece.of_source}
        tied = from_columns("tie", run, {name: each[ties] for name, each in ends.items()})
        times = zip(piece.led[late].tolist(), piece.of_source[late].tolist(), strict=True)
        spans = merged([Span(run, ret, label, label) for ret, label in times])
        return pa.concat_tables([tied, _rows_of(run, spans)])

    return _by_run(of, judge)


def _rows_of(run: str, spans: Sequence[Span]) -> pa.Table:
    begin, end, label = ([each[at] for each in spans] for at in (1, 2, 3))
    return from_columns("span", run, {"begin": begin, "end": end, "label": label})


def circular(mb: int) -> Mapped:
    """Spans of one label, with a cycle of ties. Pieces have all ties of a label."""

    def judge_all(rows: pa.Table) -> Iterator[pa.Table]:
        for run in pc.unique(rows.column("run")).to_pylist():
            ties = rows.filter(pc.equal(rows.column("run"), run))
            ends = np.concatenate([numbers(ties, "source"), numbers(ties, "target")])
            at = np.unique(ends, return_inverse=True)[1]
            graph = Graph(source=at[: len(ties)], target=at[len(ties) :])
            label = numbers(ties, "label")
            labels = sorted({int(label[each[0]]) for each in graph.components()})
            yield _rows_of(run, [Span(run, each, each, each) for each in labels])

    return whole(judge_all, mb)


def merged(spans: Sequence[Span]) -> list[Span]:
    """Those that overlap as one; of these the label of the shortest."""
    found: list[Span] = []
    shortest = 0
    for each in sorted(spans):
        length = each.end - each.begin
        if found and found[-1].run == each.run and each.begin <= found[-1].end:
            last = found[-1]
            label = each.label if length < shortest else last.label
            shortest = min(shortest, length)
            found[-1] = Span(last.run, last.begin, max(last.end, each.end), label)
        else:
            found.append(each)
            shortest = length
    return found


def inside(of: Settling, spans: Sequence[Span]) -> Mapped:
    """Nodes and edges of spans; a transaction that only ends in one is there as a moment of it."""

    def judge(run: str, piece: _Piece) -> pa.Table:
        mine = [(at, each) for at, each in enumerate(spans) if each.run == run]
        number = np.array([at for at, _ in mine], dtype=np.int64)
        begins = np.array([each.begin for _, each in mine], dtype=np.int64)
        ends = np.array([each.end for _, each in mine], dtype=np.int64)

        def span_of(times: Column) -> Column:
            at = np.searchsorted(begins, times, side="right") - 1
            is_in = (at >= 0) & (times <= np.append(ends, _NONE)[at])
            return np.where(is_in, np.append(number, -1)[at], -1)

        by_label = span_of(piece.of_source)
        by_end = span_of(numbers(piece.rows, "ret", NEVER))
        ends_in = piece.is_node & (by_end >= 0) & (by_end != by_label)
        parts = [(by_label, by_label >= 0), (by_end, ends_in)]
        return pa.concat_tables([_in_spans(piece.rows, *each) for each in parts])

    return _by_run(of, judge)


def _in_spans(rows: pa.Table, span: Column, wanted: Mask) -> pa.Table:
    at = ROWS.get_field_index("span")
    chosen = rows.select(ROWS.names).filter(pa.array(wanted)).cast(ROWS)
    column: Any = pa.array(span[wanted], pa.int64())
    return chosen.set_column(at, ROWS.field(at), column)
