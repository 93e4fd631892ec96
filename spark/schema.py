"""The table that histories are checked from: one row an operation, of a poll one row a record.

Every file says which VERSION it has; another version is converted again. A run's rows are sorted by
object, then call, then step, and a group of rows holds whole objects, unless one alone is larger.

    what        a row for
    send        a value sent to a key                     number | value, offset
    read        a record that a poll returned             number | value, offset, session, start
    end         a key that a reader saw the end of        offset, session, start, assigned
    access      a plain read, write, enqueue or dequeue   number | value: what came or went
    operation   any other operation, whole                argument, result
    line        a fault, an observation                   argument
    lint        what is wrong with the history itself     argument
    trusted     how many failures were believed           argument

A value that is an int of 64 bits is a `number`; any other is msgpack, in `value`. Exactly one row
of each operation has step 0: it carries what belongs to the operation as a whole.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

__all__ = [
    "BRINGING",
    "NIL",
    "ORDER",
    "SCHEMA",
    "TAKING",
    "VERSION",
    "VERSION_KEY",
    "Row",
    "ddl_of",
    "filled",
    "sql_of",
]

VERSION = 4
VERSION_KEY = b"quorumlab.schema"
NIL = b"\xc0"  # msgpack's nothing: a value that is None, not one that is not there
BRINGING = frozenset({"write", "enqueue"})  # accesses whose value is in what was asked
TAKING = frozenset({"read", "dequeue"})  # in what was answered
ORDER = ("object", "call", "step")


class Row(NamedTuple):
    """All of a row but what is the same for the whole run."""

    object: str  # what is judged by itself: a partition, a key; "": the run as a whole
    what: str
    process: str  # as JSON: a number, or a name in quotes
    f: str
    kind: str  # ok, fail, info; of a line its own kind
    step: int
    call: int  # the position of the invocation in the history
    ret: int | None  # of the completion; None: never, or nobody knows
    call_ns: int
    ret_ns: int | None
    invoked: int  # index of the invocation
    completed: int | None  # of the completion; None: there is none
    number: int | None = None
    value: bytes | None = None
    offset: int | None = None
    session: int | None = None
    # Of an end the call of the assignment from the beginning that was read from; of a read the
    # first offset of its session, if that sought another place.
    start: int | None = None
    assigned: int | None = None  # its place: see `jepsen_like.checkers.verdict`
    argument: bytes | None = None
    result: bytes | None = None
    error: str | None = None
    extra: bytes | None = None  # of the invocation and the completion: the completion wins


_RUN = [
    pa.field("run", pa.string(), nullable=False),
    pa.field("workload", pa.string(), nullable=False),
    pa.field("options", pa.string(), nullable=False),  # JSON, keys sorted
]
_TYPES = {
    "object": pa.string(),
    "what": pa.string(),
    "process": pa.string(),
    "f": pa.string(),
    "kind": pa.string(),
    "step": pa.int64(),
    "value": pa.binary(),
    "argument": pa.binary(),
    "result": pa.binary(),
    "error": pa.string(),
    "extra": pa.binary(),
}
_FILLED = {"object", "what", "process", "f", "kind", "step", "call", "call_ns", "invoked"}
SCHEMA = pa.schema(
    [
        *_RUN,
        *(
            pa.field(name, _TYPES.get(name, pa.int64()), nullable=name not in _FILLED)
            for name in Row._fields
        ),
    ],
    metadata={VERSION_KEY: str(VERSION).encode()},
)


_SQL = {
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.bool_(): "boolean",
    pa.float64(): "double",
}


def ddl_of(schema: Iterable[pa.Field]) -> str:
    """The same for Spark, in its own words."""
    return ", ".join(f"`{field.name}` {sql_of(field.type)}" for field in schema)


def sql_of(kind: pa.DataType) -> str:
    if pa.types.is_map(kind):
        return f"map<{sql_of(kind.key_type)},{sql_of(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"array<{sql_of(kind.value_type)}>"
    if pa.types.is_struct(kind):
        parts = (kind.field(at) for at in range(kind.num_fields))
        return f"struct<{','.join(f'{part.name}:{sql_of(part.type)}' for part in parts)}>"
    return _SQL[kind]


def filled(schema: pa.Schema, count: int, columns: Mapping[str, Any]) -> pa.Table:
    """`count` rows with these columns, or the same value in each row; the rest is null."""
    arrays = [_array(columns.get(field.name), field.type, count) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _array(column: Any, kind: pa.DataType, count: int) -> Any:
    if column is None or isinstance(column, str | int):
        return pa.repeat(pa.scalar(column, kind), count)
    if isinstance(column, pa.ChunkedArray | pa.Array):
        return column.cast(kind)
    return pa.array(column, kind)
