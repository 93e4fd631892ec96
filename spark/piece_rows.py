"""Rows that pieces of a large log are made of, and what their judges hand on.

The columns are those of the table that a log's columns are made of, and a few for what is handed
on. `tag` says what a row is:

    verdict    what was found (`verdict`)
    unread     an acknowledged send that nobody read
    highest    a read that reached furthest, in its piece
    located    a send that is known to be at an offset because somebody read it there
    seen       a value that somebody saw at an offset (a read), or none, with bounds of its moment
    jump       `offset` and then `next` in one session; their reads are `lower_by` and `upper_by`
    gap        `offset` and `next` were seen, and nothing between them
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from jepsen_like.checkers.log_columns import Column
from jepsen_like.checkers.verdict import Verdict, lines
from spark.schema import SCHEMA
from spark.verdicts import encoded

__all__ = ["COLUMNS", "HANDED_ON", "INPUT", "filled", "jumped", "tagged", "verdict_row"]

COLUMNS = [
    *("run", "object", "what", "process", "kind", "step", "call", "ret", "invoked", "completed"),
    *("number", "value", "offset", "session", "start", "assigned"),
]
INPUT = pa.schema([SCHEMA.field(name).with_nullable(True) for name in COLUMNS])
_MORE = [
    pa.field("tag", pa.string()),
    pa.field("lower", pa.int64()),
    pa.field("lower_by", pa.int64()),
    pa.field("upper", pa.int64()),
    pa.field("upper_by", pa.int64()),
    pa.field("next", pa.int64()),
    pa.field("verdict", pa.string()),
]
HANDED_ON = pa.schema([*INPUT, *_MORE])


def tagged(tag: str, rows: pa.Table) -> pa.Table:
    """Rows of the table, as they came."""
    return filled(tag, len(rows), {name: rows.column(name) for name in COLUMNS})


def filled(tag: str, count: int, columns: Mapping[str, Any]) -> pa.Table:
    """`count` rows with these columns; the rest is null."""
    arrays = [
        _array(columns[field.name], field.type)
        if field.name in columns
        else pa.nulls(count, field.type)
        for field in HANDED_ON
    ]
    table = pa.Table.from_arrays(arrays, schema=HANDED_ON)
    return table.set_column(
        HANDED_ON.get_field_index("tag"), "tag", pa.repeat(pa.scalar(tag), count)
    )


def jumped(jumps: pa.Table) -> pa.Table:
    """Rows of jumps as what they were: two reads each, in a session of its own."""
    count = np.arange(len(jumps))
    sides = []
    for step, (offset, place) in enumerate((("offset", "lower_by"), ("next", "upper_by"))):
        invoked, completed = lines(jumps.column(place).to_numpy())
        same = {"what": "read", "kind": "ok", "process": "null"}
        columns = {
            **{name: pa.repeat(pa.scalar(told), len(jumps)) for name, told in same.items()},
            "run": jumps.column("run"),
            "object": jumps.column("object"),
            "offset": jumps.column(offset),
            "invoked": invoked,
            "completed": pa.array(completed, mask=completed < 0),
            "session": count,
            "call": count,
            "ret": count,
            "number": count,
            "step": np.full(len(jumps), step),
        }
        sides.append(filled("jump", len(jumps), columns))
    return pa.concat_tables(sides).sort_by([("call", "ascending"), ("step", "ascending")])


def verdict_row(verdict: Verdict) -> pa.Table:
    return filled("verdict", 1, {"verdict": [encoded(verdict)]})


def _array(column: "Column | pa.ChunkedArray | pa.Array | list[Any]", kind: pa.DataType) -> Any:
    if isinstance(column, pa.ChunkedArray | pa.Array):
        return column.cast(kind)
    return pa.array(np.asarray(column) if not isinstance(column, list) else column, kind)
