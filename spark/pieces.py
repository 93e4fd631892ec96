"""What is done with a piece of a large log, and at the border of two.

See `jepsen_like.checkers.kafka_log` for the pieces. What a worker does is a function for
`mapInArrow`; what it takes beside the rows (whole readings, what earlier pieces carry on) is small,
and comes with the function.

Pieces are numbered in their order. Of each, Spark tells the rows at its two ends; a finding that
takes rows of two pieces is made from these (`at_borders`), or by the later piece of what it is
handed (`carried_on`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jepsen_like.checkers import kafka_log, log_sessions
from jepsen_like.checkers.log_columns import FAIL, UNKNOWN, Column, LogColumns
from jepsen_like.checkers.log_records import bounds_of, shown
from jepsen_like.checkers.operations import NEVER
from jepsen_like.checkers.pairing import Pairing, positions
from jepsen_like.checkers.verdict import lines
from jepsen_like.checkers.zones import Bounds
from spark.columns import Values, log_columns, numbers, objects
from spark.judging import Batches, limited_memory
from spark.piece_rows import COLUMNS, HANDED_ON, INPUT, filled, tagged, verdict_row
from spark.verdicts import run_and_name

__all__ = [
    "Mapped",
    "at_borders",
    "by_offset",
    "by_value",
    "carried_on",
    "jumps_in",
    "losses",
    "names_of",
    "verdicts_in",
    "walk",
    "walked",
    "whole",
]

Mapped = Callable[[Batches], Iterator[pa.RecordBatch]]
_NO_BOUND = -1


def by_value(readings: pa.Table, mb: int, *, is_idempotent: bool) -> Mapped:
    """Pieces of some values each, in any order; `readings` are the whole readings of all keys."""

    def judge(rows: pa.Table) -> Iterator[pa.Table]:
        rows = rows.sort_by([(name, "ascending") for name in ("run", "object", "call", "step")])
        log = log_columns(pa.concat_tables([rows, readings]))
        yield verdict_row(kafka_log.judge_values(log, is_idempotent=is_idempotent))
        sends, reads = _of(rows, "send"), _of(rows, "read")
        yield tagged("unread", sends.take(pa.array(log.unread)))
        yield tagged("highest", reads.take(pa.array(np.sort(log.reached))))
        yield _located(log, sends)
        yield from _seen(log, bounds_of(log, is_idempotent=is_idempotent))

    return whole(judge, mb)


def losses(guests: pa.Table, mb: int) -> Mapped:
    """Sends that nobody read, in any pieces; `guests` are the highest reads, and whole readings."""

    def judge(rows: pa.Table) -> Iterator[pa.Table]:
        both = pa.concat_tables([rows, guests])
        in_order = both.sort_by([(name, "ascending") for name in ("run", "object", "call", "step")])
        yield verdict_row(kafka_log.judge_losses(log_columns(in_order)))

    return whole(judge, mb)


def by_offset(carried: Mapping[int, pa.Table], mb: int) -> Mapped:
    """Pieces of offsets that follow one another, each sorted; what is carried on to which."""

    def judge(rows: pa.Table) -> Iterator[pa.Table]:
        carry = carried.get(rows.column("piece")[0].as_py())
        rows = rows.select(HANDED_ON.names)
        if carry is not None:
            rows = pa.concat_tables([carry, rows])
        seen = log_columns(rows)
        yield verdict_row(kafka_log.judge_offsets(seen, _bounds(rows)))
        key, before, after = kafka_log.gaps(seen.reads.key, seen.reads.offset)
        columns = {"offset": before, "next": after}
        yield filled("gap", len(key), names_of(seen.keys, key) | columns)

    return whole(judge, mb)


def walk(mb: int) -> Mapped:
    """Pieces of sessions, sorted: row after row, with one batch at a time in memory."""

    def judge(batches: Batches) -> Iterator[pa.RecordBatch]:
        last = None
        with limited_memory(mb):
            for batch in filter(len, batches):
                rows = pa.Table.from_batches([batch]).select(COLUMNS)
                both = rows if last is None else pa.concat_tables([last, rows])
                last = rows.slice(len(rows) - 1)
                for table in walked(both):
                    yield from table.to_batches()

    return judge


def walked(rows: pa.Table) -> Iterator[pa.Table]:
    """Judges rows that follow one another."""
    log = log_columns(rows)
    verdict = kafka_log.judge_walk(log)
    if verdict.findings:
        yield verdict_row(verdict)
    before, after = kafka_log.jumps(log)
    reads = log.reads
    if len(before):
        columns = {
            "offset": reads.offset[before],
            "next": reads.offset[after],
            "lower_by": reads.operation[before],
            "upper_by": reads.operation[after],
        }
        yield filled("jump", len(before), names_of(log.keys, reads.key[before]) | columns)


def whole(judge: Callable[[pa.Table], Iterator[pa.Table]], mb: int) -> Mapped:
    """The piece as one table, if it has rows at all."""

    def judge_all(batches: Batches) -> Iterator[pa.RecordBatch]:
        with limited_memory(mb):
            found = [batch for batch in batches if len(batch)]
            if found:
                for table in judge(pa.Table.from_batches(found)):
                    yield from table.to_batches()

    return judge_all


def _of(rows: pa.Table, what: str) -> pa.Table:
    return rows.filter(pc.equal(rows.column("what"), what))


def _located(log: LogColumns, sends: pa.Table) -> pa.Table:
    offset = log_sessions.located(log)
    is_new = (log.sends.offset == UNKNOWN) & (offset != UNKNOWN) & (log.sends.kind != FAIL)
    found = np.flatnonzero(is_new)
    rows = tagged("located", sends.take(pa.array(found)))
    at = rows.schema.get_field_index("offset")
    return rows.set_column(at, rows.schema.field(at), pa.array(offset[found]))


def _seen(log: LogColumns, bounds: Bounds) -> Iterator[pa.Table]:
    """Yields the bounds of each offset and a value seen there; then other values there."""
    key, offset, value, operation = shown(log)
    pair = Pairing.of(key, offset).pairs(key, offset)
    _, first = np.unique(Pairing.of(pair, value).pairs(pair, value), return_index=True)
    stride = Pairing.of(key, offset, bounds.key, bounds.place)
    at = positions(stride.pairs(key[first], offset[first]), stride.pairs(bounds.key, bounds.place))
    shows = np.where(at >= 0, first[at] if len(first) else UNKNOWN, UNKNOWN)
    yield _seen_rows(
        log, bounds.key, bounds.place, _at(value, shows), _at(operation, shows), bounds
    )
    others = np.setdiff1d(first, shows)
    yield _seen_rows(log, key[others], offset[others], value[others], operation[others], None)


def _at(column: Column, rows: Column) -> Column:
    return np.where(rows >= 0, column[rows], UNKNOWN) if len(column) else rows


def _seen_rows(
    log: LogColumns,
    key: Column,
    offset: Column,
    value: Column,
    operation: Column,
    bounds: Bounds | None,
) -> pa.Table:
    assert isinstance(log.values, Values)
    number, other = log.values.columns(value)
    invoked, completed = lines(operation)
    is_seen = value != UNKNOWN
    columns = {
        **names_of(log.keys, key),
        "what": pa.array(np.where(is_seen, "read", "bound")),
        "kind": pa.repeat(pa.scalar("ok"), len(key)),
        "process": pa.repeat(pa.scalar("null"), len(key)),
        "number": number,
        "value": other,
        "offset": offset,
        "invoked": pa.array(invoked, mask=~is_seen),
        "completed": pa.array(completed, mask=~is_seen | (completed < 0)),
    }
    if bounds is not None:
        no_lower, no_upper = bounds.lower == _NO_BOUND, bounds.upper == NEVER
        columns |= {
            "lower": pa.array(bounds.lower, mask=no_lower),
            "lower_by": pa.array(bounds.lower_by, mask=no_lower),
            "upper": pa.array(bounds.upper, mask=no_upper),
            "upper_by": pa.array(bounds.upper_by, mask=no_upper),
        }
    return filled("seen", len(key), columns)


def _bounds(rows: pa.Table) -> Bounds:
    _, key = objects(rows)
    place = numbers(rows, "offset")
    sides = []
    for side in ("lower", "upper"):
        moment, by = numbers(rows, side), numbers(rows, f"{side}_by")
        told = moment != UNKNOWN
        sides.append((key[told], place[told], moment[told], by[told]))
    return Bounds.of(lower=sides[0], upper=sides[1])


def names_of(keys: Sequence[str], key: Column) -> dict[str, pa.Array]:
    apart = [run_and_name(each) for each in keys]
    of = pa.array(key)
    return {
        "run": pa.array([run for run, _ in apart], pa.string()).take(of),
        "object": pa.array([name for _, name in apart], pa.string()).take(of),
    }


Ends = Mapping[str, Any]
_Log = tuple[str, str]


def at_borders(ends: Iterable[Ends]) -> list[pa.Table]:
    """Judge the borders where one piece of sessions ends (`last`) and the next begins (`first`)."""
    ordered = sorted(ends, key=lambda each: int(each["piece"]))
    return [
        table
        for before, after in pairwise(ordered)
        if _is_one_stretch(before["last"], after["first"])
        for table in walked(pa.Table.from_pylist([before["last"], after["first"]], INPUT))
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
