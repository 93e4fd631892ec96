"""What reaches over the border of two pieces of a large log: pure, on the few rows that do.

Pieces are numbered in their order. Of each, Spark tells the rows at its two ends; a finding that
takes rows of two pieces is made here, or by the later piece of what it is handed.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import pyarrow as pa

from spark import pieces
from spark.piece_rows import HANDED_ON, INPUT

__all__ = ["at_borders", "carried_on", "jumps_in", "verdicts_in"]

Ends = Mapping[str, Any]
_Log = tuple[str, str]


def at_borders(ends: Iterable[Ends]) -> list[pa.Table]:
    """What is found where one piece of sessions ends (`last`) and the next begins (`first`)."""
    ordered = sorted(ends, key=lambda each: int(each["piece"]))
    return [
        table
        for before, after in pairwise(ordered)
        if _is_one_stretch(before["last"], after["first"])
        for table in pieces.walked(pa.Table.from_pylist([before["last"], after["first"]], INPUT))
    ]


def _is_one_stretch(before: Ends, after: Ends) -> bool:
    by = "session" if before["what"] == "read" else "process"
    return all(before[name] == after[name] for name in ("what", "run", "object", by))


def verdicts_in(tables: Iterable[pa.Table]) -> Iterator[str]:
    for rows in tables:
        yield from (text for text in rows.column("verdict").to_pylist() if text is not None)


def jumps_in(tables: Iterable[pa.Table]) -> list[tuple[Any, ...]]:
    """Rows of jumps."""
    return [
        tuple(row.values()) for rows in tables for row in rows.to_pylist() if row["tag"] == "jump"
    ]


def carried_on(ends: Iterable[Ends]) -> dict[int, pa.Table]:
    """For each piece of offsets what earlier ones carry on to it.

    Of each log of a piece, `latest` is the row with its latest lower bound, and `last` the read of
    its last offset; None: there is none.
    """
    latest: dict[_Log, Ends] = {}
    last: dict[_Log, Ends] = {}
    carried: dict[int, list[Ends]] = {}
    for each in sorted(ends, key=lambda each: int(each["piece"])):
        log = each["run"], each["object"]
        rows = [part[log] for part in (latest, last) if log in part]
        carried.setdefault(each["piece"], []).extend(rows)
        bound: Ends | None = each["latest"]
        end: Ends | None = each["last"]
        if bound is not None and bound["lower"] >= latest.get(log, bound)["lower"]:
            latest[log] = {**bound, "what": "bound", "upper": None}
        if end is not None:
            last[log] = {**end, "lower": None, "upper": None}
    return {piece: pa.Table.from_pylist(rows, HANDED_ON) for piece, rows in carried.items() if rows}
