"""Rows of registers that only a search decides, and that are too large for one worker.

Values are texts that are equal where the values are (`exact`). `tag` says what a row is:

    access     a read, a write or a compare-and-set, at the value that it saw or made; one that
               failed, and does not tell what it saw, at the value that it expected
    unknown    a change of which nobody knows the end
    expected   a compare-and-set, at the value that it expected
    failed     a change that never happened, at the value that it would have made
    pending    a change of unknown end, that may matter
    unwanted   the same, to a value that nobody saw or expected
    untold     of a piece: a compare-and-set failed, and does not tell what it saw
    doubt      why nothing is said of the register (`body`)
    verdict    what was found (`body`)
    ends       of a piece: its first and last moment (`call`, `ret`), and how many rows (`count`)
    cut        of a piece: the first call at which nothing is open, and `count` rows before it
    relation   of a segment: what it makes of each state (`body`)
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from jepsen_like.checkers.operations import NEVER, AsWritten, Operation, exact
from jepsen_like.checkers.register_accesses import new_value, registers
from jepsen_like.checkers.verdict import Verdict
from jepsen_like.histories.history import Kind, MalformedHistory, Value
from spark.columns import operation_of
from spark.pieces import Mapped, whole
from spark.verdicts import encoded, named

__all__ = [
    "NIL_TEXT",
    "READ_FROM",
    "SEARCHED",
    "access_of",
    "as_accesses",
    "table_of",
    "text_of",
    "verdict_row",
]

READ_FROM = [
    *("run", "object", "what", "process", "f", "kind", "call", "ret", "invoked", "completed"),
    *("number", "value", "argument", "result", "extra"),
]
_TEXTS = ("tag", "run", "object", "f", "kind", "value", "expected", "new")
_NUMBERS = ("call", "ret", "invoked", "completed", "count", "segment")
SEARCHED = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in _TEXTS),
        *(pa.field(name, pa.int64()) for name in _NUMBERS),
        pa.field("body", pa.binary()),
    ]
)
_VERSIONS = "too large for one worker, and its operations tell versions"
_STALE = "too large for one worker, and some of its reads may be old"
_BATCH = 10_000  # rows that are Python objects at a time
Row = dict[str, Any]


def text_of(value: Value) -> str:
    """Equal for values that are the same. Raises TypeError: a mapping has none."""
    return repr(exact(value))


NIL_TEXT = text_of(None)


def as_accesses(mb: int) -> Mapped:
    """Any rows of registers, as what they say of values."""

    def judge(rows: pa.Table) -> Iterator[pa.Table]:
        doubts: dict[str, Row] = {}  # one of each register
        for batch in rows.select(READ_FROM).to_batches(max_chunksize=_BATCH):
            found = [each for row in batch.to_pylist() for each in _rows_of(row)]
            yield table_of(each for each in found if each["tag"] != "doubt")
            for each in found:
                if each["tag"] == "doubt":
                    doubts[named(each["run"], each["object"])] = each
        yield table_of(doubts.values())

    return whole(judge, mb)


def _rows_of(row: Row) -> Iterator[Row]:
    of = {name: row[name] for name in ("run", "object")}
    try:
        operation = operation_of(row, keyed=False)
        (register,) = registers([operation])
    except MalformedHistory as error:
        yield {**of, "tag": "doubt", "body": f"it makes no sense: {error}".encode()}
        return
    if register.stale:
        yield {**of, "tag": "doubt", "body": _STALE.encode()}
    if operation.extra.keys() & {"version", "expected"}:
        yield {**of, "tag": "doubt", "body": _VERSIONS.encode()}
    for each in register.failed:
        yield {**of, "tag": "failed", **_columns(each, new_value(each))}
    for each in register.accesses:
        yield from (
            {**of, "tag": tag, **_columns(each, value)} for tag, value in _tagged_values(each)
        )


def _tagged_values(access: Operation) -> Iterator[tuple[str, Value]]:
    tag = "access" if access.ret != NEVER else "unknown"
    if access.f == "read":
        yield tag, access.result
    elif access.f == "write":
        yield tag, access.argument
    else:
        expected, new = access.argument
        if access.kind is Kind.FAIL:
            yield tag, expected
        elif tag == "access" or expected != new:  # else nobody can tell whether it happened
            yield tag, new
            yield "expected", expected


def _columns(operation: Operation, value: Value) -> Row:
    expected, new = None, None
    if operation.f == "cas":
        expected, new = map(text_of, operation.argument)
    return {
        "f": operation.f,
        "kind": operation.kind.value,
        "value": text_of(value),
        "expected": expected,
        "new": new,
        "call": operation.call,
        "ret": None if operation.ret == NEVER else operation.ret,
        "invoked": operation.index,
        "completed": operation.ret_index,
    }


def access_of(row: Row) -> Operation:
    """The inverse, of an access or a change; its values are told by their texts."""
    f, value = row["f"], AsWritten(row["value"])
    argument: Value = value if f == "write" else None
    if f == "cas":
        argument = AsWritten(row["expected"]), AsWritten(row["new"])
    return Operation(
        process=0,
        f=f,
        kind=Kind(row["kind"]),
        argument=argument,
        result=value if f == "read" else None,
        call=row["call"],
        ret=NEVER if row["ret"] is None else row["ret"],
        index=row["invoked"],
        ret_index=row["completed"],
    )


def table_of(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), SEARCHED)


def verdict_row(verdict: Verdict) -> pa.Table:
    return table_of([{"tag": "verdict", "body": encoded(verdict).encode()}])
