"""Cycles of transactions that all have one label, from the ties between them.

See `transaction_labels`. Below strict serializability ties need not be few: a read of what is very
old gives its label to all that was written since.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jepsen_like.checkers.dependency_graph import Graph
from jepsen_like.checkers.pairing import Column
from spark.columns import numbers
from spark.judging import Batches, limited_memory
from spark.pieces import Mapped
from spark.transaction_rows import table_of
from spark.transaction_spans import Span, span_rows

__all__ = ["TIES_MAX", "find_tied_cycles"]

TIES_MAX = 10_000_000  # of a run in a piece


def find_tied_cycles(mb: int, most: int) -> Mapped:
    """Spans of one label, with a cycle of ties. Pieces have all ties of a label.

    A run that has more than `most` of them in a piece, or more than a worker can hold, is crowded.
    """

    def judge(batches: Batches) -> Iterator[pa.RecordBatch]:
        with limited_memory(mb):
            for run, ties in _ties_by_run(batches, most).items():
                try:
                    told = span_rows(run, [Span(run, each, each) for each in ties.with_cycles()])
                except MemoryError:
                    told = table_of([{"tag": "crowded", "run": run}])
                yield from told.to_batches()

    return judge


def _ties_by_run(batches: Batches, most: int) -> dict[str, "_Ties"]:
    by_run: dict[str, _Ties] = defaultdict(lambda: _Ties(most))
    for batch in filter(len, batches):
        rows = pa.Table.from_batches([batch])
        for run in pc.unique(rows.column("run")).to_pylist():
            by_run[run].add(rows.filter(pc.equal(rows.column("run"), run)))
    return by_run


@dataclass(slots=True)
class _Ties:
    """Those of a run in a piece, without what else their rows have."""

    most: int
    count: int = 0
    parts: list[Column] = field(default_factory=list)  # three rows: sources, targets, labels

    def add(self, rows: pa.Table) -> None:
        self.count += len(rows)
        if self.count > self.most:
            self.parts.clear()
        else:
            columns = [numbers(rows, name) for name in ("source", "target", "label")]
            self.parts.append(np.stack(columns))

    def with_cycles(self) -> list[int]:
        """Labels. Raises `MemoryError`, also if there are too many."""
        if self.count > self.most:
            raise MemoryError
        source, target, label = np.concatenate(self.parts, axis=1)
        at = np.unique(np.concatenate([source, target]), return_inverse=True)[1]
        graph = Graph(source=at[: len(source)], target=at[len(source) :])
        return sorted({int(label[each[0]]) for each in graph.components()})
