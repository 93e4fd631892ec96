"""Names the cycles of one span, by the judge of whole histories.

A span has all transactions, and all edges between them, of any cycle that touches it; so the same
cycles are found in it as in all of the history, in the same order.
"""

from collections.abc import Iterator
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import pyarrow as pa

from jepsen_like.checkers.isolation import Dependencies, Edge, cycle_findings
from jepsen_like.checkers.isolation_levels import Found
from jepsen_like.checkers.operations import Operation
from spark.judging import Batches, limited_memory
from spark.pieces import Mapped
from spark.transaction_rows import Rows, packed, table_of, unpacked

__all__ = ["cycles"]

Row = dict[str, Any]


def cycles(mb: int, rows_max: int, *, is_strict: bool) -> Mapped:
    """Pieces are sorted by run and span. One is large if it has more than `rows_max` rows, or a
    worker cannot hold it."""

    def judge(batches: Batches) -> Iterator[pa.RecordBatch]:
        with limited_memory(mb):
            for run, of_run in groupby(Rows(batches), itemgetter("run")):
                for span, mine in groupby(of_run, itemgetter("span")):
                    told = _told(mine, rows_max, is_strict=is_strict)
                    yield from table_of([{"run": run, "span": span, **told}]).to_batches()

    return judge


def _told(rows: Iterator[Row], rows_max: int, *, is_strict: bool) -> Row:
    try:
        some = list(islice(rows, rows_max + 1))
        if len(some) <= rows_max:
            found = Found.of(cycle_findings(_graph(some), is_strict=is_strict))
            return {"tag": "cycles", "body": packed(found)}
    except MemoryError:
        pass
    return {"tag": "large"}


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
