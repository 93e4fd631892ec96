"""Names the cycles of one span, by the judge of whole histories.

A span has all transactions, and all edges between them, of any cycle that touches it; so the same
cycles are found in it as in all of the history, in the same order.
"""

from collections.abc import Iterator
from itertools import groupby, islice
from typing import Any

import pyarrow as pa

from jepsen_like.checkers.isolation import Dependencies, Edge, cycle_findings
from jepsen_like.checkers.isolation_levels import Found
from jepsen_like.checkers.operations import Operation
from spark.judging import Batches, limited_memory
from spark.pieces import Mapped
from spark.transaction_rows import packed, table_of, unpacked

__all__ = ["cycles"]

Row = dict[str, Any]


def cycles(mb: int, rows_max: int, *, is_strict: bool) -> Mapped:
    """Pieces are sorted by run and span; one of more than `rows_max` rows is large."""

    def judge(batches: Batches) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        with limited_memory(mb):
            for (run, span), mine in groupby(rows, lambda row: (row["run"], row["span"])):
                some = list(islice(mine, rows_max + 1))
                of = {"run": run, "span": span}
                if len(some) > rows_max:
                    told = {**of, "tag": "large"}
                else:
                    found = Found.of(cycle_findings(_graph(some), is_strict=is_strict))
                    told = {**of, "tag": "cycles", "body": packed(found)}
                yield from table_of([told]).to_batches()

    return judge


def _graph(rows: list[Row]) -> Dependencies:
    operations = [unpacked(row["body"], Operation) for row in rows if row["tag"] == "node"]
    operations.sort(key=lambda each: each.call)
    graph = Dependencies(operations)
    number = {each.call: at for at, each in enumerate(operations)}
    edges = [row for row in rows if row["tag"] == "edge"]
    # the largest number first: keys in the order of their first writes, as the whole judge has them
    # (`RecordedEdges.node`)
    for name in sorted({row["source"] for row in edges if row["source"] < 0}, reverse=True):
        number[name] = graph.node()
    for row in sorted(edges, key=lambda row: (row["key_order"], row["edge_order"])):
        if row["source"] in number and row["target"] in number:
            what = tuple(unpacked(row["body"], list[str]))
            graph.add(number[row["source"]], number[row["target"]], Edge(row["kind"]), what)
    return graph
