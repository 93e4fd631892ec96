"""A log judged in pieces of few rows, without Spark: rows are moved as `spark.distributed` does.

A piece is cut wherever it may be: values, offsets and sessions of one row each.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from jepsen_like.checkers.judges import judge_log
from jepsen_like.checkers.kafka_log import skips
from jepsen_like.checkers.log_columns import LogColumns
from jepsen_like.checkers.operations import operations
from jepsen_like.checkers.verdict import Outcome, Verdict, compose
from jepsen_like.histories.history import History
from spark import pieces
from spark.columns import log_columns
from spark.piece_rows import COLUMNS, HANDED_ON, INPUT, jumped
from spark.pieces import at_borders, carried_on, jumps_in, verdicts_in
from spark.verdicts import decoded
from tests.spark.tables import table_of

__all__ = ["judged_both_ways"]

_MB = 1 << 20  # no limit
_NUMBERED = pa.schema([*HANDED_ON, pa.field("piece", pa.int64())])
Rows = list[dict[str, Any]]
Told = tuple[Outcome, set[tuple[str, str]], dict[str, int]]


def judged_both_ways(history: History, size: int) -> tuple[Told, Told]:
    """Judge it in pieces, and as a whole."""
    is_idempotent = bool(history.header.options.get("idempotent", True))
    found = judged_in_small_pieces(table_of(history, ""), size, is_idempotent=is_idempotent)
    expected = judge_log(LogColumns.of(operations(history.ops)), history.header)
    return _told(found), _told(expected)


def _told(verdict: Verdict) -> Told:
    """The outcome, the broken rules of each log, and what was counted and is there."""
    rules = {(each.object.strip(), each.rule) for each in verdict.findings}
    counts = {name: count for name, count in verdict.counts.items() if count}
    return verdict.outcome, rules, counts


def judged_in_small_pieces(table: pa.Table, size: int, *, is_idempotent: bool = True) -> Verdict:
    """`size`: of a piece, in values, offsets or rows."""
    steps = [row for row in _rows(table.select(COLUMNS)) if row["what"] in ("send", "read", "end")]
    readings = [row for row in steps if row["what"] == "end" and row["start"] is not None]
    others = [row for row in steps if row not in readings]
    verdicts = [Verdict.of([], {"readings to the end": len(readings)})]
    whole = pa.Table.from_pylist(readings, INPUT)

    by_value = pieces.by_value(whole, _MB, is_idempotent=is_idempotent)
    handed = _judged(by_value, _cut(others, size, _of_value), INPUT)
    losses = pieces.losses(
        pa.concat_tables([pa.Table.from_pylist(_tagged(handed, "highest"), INPUT), whole]), _MB
    )
    lost = _judged(losses, _cut(_tagged(handed, "unread"), size, _row), INPUT)

    seen = _cut(_tagged(handed, "seen"), size, _of_offset)
    offsets = _judged(pieces.by_offset(carried_on(_ends_of_offsets(seen)), _MB), seen, _NUMBERED)

    sessions = _cut(_walks(others, _tagged(handed, "located")), size, _row)
    walked = _judged(pieces.walk(_MB), sessions, INPUT)
    borders = at_borders(
        {"piece": number, "first": part[0], "last": part[-1]}
        for number, part in enumerate(sessions)
    )
    found = [row for rows in (handed, lost, offsets, walked) for row in rows]
    verdicts += [decoded(row["verdict"]) for row in found if row["tag"] == "verdict"]
    verdicts += map(decoded, verdicts_in(borders))
    jumps = _tagged(walked, "jump")
    jumps += [dict(zip(HANDED_ON.names, row, strict=True)) for row in jumps_in(borders)]
    empty = {_jump(row) for row in _tagged(offsets, "gap")}
    skipped = pa.Table.from_pylist([row for row in jumps if _jump(row) not in empty], HANDED_ON)
    verdicts.append(Verdict.of(skips(log_columns(jumped(skipped)))))
    return compose(verdicts)


def _walks(steps: Rows, located: Rows) -> Rows:
    return [
        row
        for row in steps
        if (row["what"] == "read" and row["session"] is not None)
        or (row["what"] == "send" and row["offset"] is not None and row["kind"] != "fail")
    ] + located


def _ends_of_offsets(parts: Sequence[Rows]) -> Iterator[dict[str, Any]]:
    for number, part in enumerate(parts):
        for log in {(row["run"], row["object"]) for row in part}:
            mine = [row for row in part if (row["run"], row["object"]) == log]
            bounds = [row for row in mine if row["lower"] is not None]
            reads = [row for row in mine if row["what"] == "read"]
            yield {
                "piece": number,
                "run": log[0],
                "object": log[1],
                "latest": max(bounds, key=lambda row: int(row["lower"]), default=None),
                "last": max(reads, key=lambda row: int(row["offset"]), default=None),
            }


def _cut(rows: Rows, size: int, by: Callable[[dict[str, Any]], tuple[str, ...]]) -> list[Rows]:
    """Sorted; what is one by `by` stays together. `size`: how many of these a piece has."""
    groups: dict[tuple[str, ...], Rows] = {}
    for row in sorted(rows, key=lambda row: (by(row), row["call"] or 0, row["step"] or 0)):
        groups.setdefault(by(row), []).append(row)
    whole = list(groups.values())
    return [
        [row for group in whole[begin : begin + size] for row in group]
        for begin in range(0, len(whole), size)
    ]


def _of_value(row: dict[str, Any]) -> tuple[str, ...]:
    what = row["offset"] if row["what"] == "end" else row["number"]
    return row["run"], row["object"], repr(what), repr(row["value"])


def _of_offset(row: dict[str, Any]) -> tuple[str, ...]:
    return row["run"], row["object"], f"{row['offset']:020}"


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    """A row by itself, in the order in which sessions are walked."""
    stretch = row["session"] if row["what"] == "read" else f"sends of {row['process']}"
    return row["run"], row["object"], str(stretch), f"{row['call']:020} {row['step']:020}"


def _judged(judge: pieces.Mapped, parts: Sequence[Rows], schema: pa.Schema) -> Rows:
    found: Rows = []
    for number, part in enumerate(parts):
        rows = [{**row, "piece": number} for row in part]
        for batch in judge(pa.Table.from_pylist(rows, schema).to_batches()):
            found += batch.to_pylist()
    return found


def _tagged(rows: Rows, tag: str) -> Rows:
    return [row for row in rows if row["tag"] == tag]


def _jump(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["run"], row["object"], row["offset"], row["next"]


def _rows(table: pa.Table) -> Rows:
    rows: Rows = table.to_pylist()
    return rows
