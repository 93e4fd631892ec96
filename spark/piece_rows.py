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

from jepsen_like.checkers.verdict import Verdict, lines
from spark import schema
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
    return schema.filled(HANDED_ON, count, {"tag": tag, **columns})


def jumped(jumps: pa.Table) -> pa.Table:
    """Rows of jumps as what they were: two reads each, in a session of its own."""
    count = np.arange(len(jumps))
    sides = []
    for step, (offset, place) in enumerate((("offset", "lower_by"), ("next", "upper_by"))):
        invoked, completed = lines(jumps.column(place).to_numpy())
        columns = {
            "what": "read",
            "kind": "ok",
            "process": "null",
            "run": jumps.column("run"),
            "object": jumps.column("object"),
            "offset": jumps.column(offset),
            "invoked": invoked,
            "completed": pa.array(completed, mask=completed < 0),
            "session": count,
            "call": count,
            "ret": count,
            "number": count,
            "step": step,
        }
        sides.append(filled("jump", len(jumps), columns))
    return pa.concat_tables(sides).sort_by([("call", "ascending"), ("step", "ascending")])


def verdict_row(verdict: Verdict) -> pa.Table:
    return filled("verdict", 1, {"verdict": [encoded(verdict)]})
