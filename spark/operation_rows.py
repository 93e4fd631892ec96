"""Operations in columns, and the rows of the table that they become: see `schema`.

An operation becomes one row; in a workload that falls apart by keys it is a row of its key, and an
access if it says no more than a value. What becomes several rows is in `log_rows`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jepsen_like.checkers.operations import NEVER, Operation
from jepsen_like.checkers.pairing import Column
from jepsen_like.histories.history import Kind, Lines, Value
from spark.schema import BRINGING, SCHEMA, TAKING, Row

__all__ = [
    "NOTHING",
    "WHOLE",
    "Operations",
    "keyed_rows",
    "packed",
    "table_of_rows",
    "taking",
    "texts",
    "whole_rows",
]

WHOLE = ""  # the object of what concerns the run as a whole
NOTHING = object()  # in a column of values: there is none, where None is one
_encode = msgspec.msgpack.Encoder().encode
_NUMBERS = range(-(1 << 63), 1 << 63)
_INTS = frozenset({int})
_NESTING = frozenset({dict, list, tuple})
_TELLING = frozenset({int, str})  # types of which no value equals one of the other


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations:
    """In the order of their ends; those that never end are last."""

    f: Sequence[str]
    kind: Sequence[str]
    argument: Sequence[Value]
    result: Sequence[Value]
    extra: Sequence[Mapping[str, Value] | None]  # of both; the completion wins
    process: Sequence[int | str]
    columns: Mapping[str, pa.Array]  # of the table, and the same for all rows of an operation

    @classmethod
    def of(
        cls, lines: Lines, calls: Sequence[int], rets: Sequence[int], at: Column
    ) -> "Operations":
        """Calls and rets are places in `lines`, of which `at` are the positions in the history."""
        if -1 in rets:  # it takes what stands behind the last line: nothing
            nothing = (0, 0, *[None] * (len(lines) - 2))
            lines = Lines(*([*column, each] for column, each in zip(lines, nothing, strict=True)))
        invoked, completed = taking(calls), taking(rets)
        f, process = invoked(lines.f), invoked(lines.process)
        kind = [each or Kind.INFO.value for each in completed(lines.kind)]
        begun, ended = np.array(calls, np.int64), np.array(rets, np.int64)
        is_open = ended < 0
        columns = {
            "process": _names(process),
            "f": texts(f),
            "kind": texts(kind),
            "call": at[begun],
            "ret": pa.array(at[ended], mask=np.array([each == Kind.INFO for each in kind], bool)),
            "call_ns": _int64(invoked(lines.time_ns)),
            "ret_ns": pa.array(_int64(completed(lines.time_ns)), mask=is_open),
            "invoked": _int64(invoked(lines.indexes)),
            "completed": pa.array(_int64(completed(lines.indexes)), mask=is_open),
            "error": pa.array(completed(lines.error), pa.string()),
        }
        return cls(
            f=f,
            kind=kind,
            argument=invoked(lines.value),
            result=completed(lines.value),
            extra=_both(invoked(lines.extra), completed(lines.extra)),
            process=process,
            columns={name: pa.array(column) for name, column in columns.items()},
        )

    def __len__(self) -> int:
        return len(self.f)

    def operation(self, at: int) -> Operation:
        """As the checkers have them."""
        names = ("call", "ret", "invoked", "completed")
        call, ret, index, ret_index = (self.columns[name][at].as_py() for name in names)
        return Operation(
            process=self.process[at],
            f=self.f[at],
            kind=Kind(self.kind[at]),
            argument=self.argument[at],
            result=self.result[at],
            call=call,
            ret=NEVER if ret is None else ret,
            index=index,
            ret_index=ret_index,
            extra=self.extra[at] or {},
        )

    def rows(self, of: Sequence[int] | None, columns: Mapping[str, Any]) -> pa.Table:
        """The rows of these operations, or of all. A column that is not given is null, or zero."""
        count = len(self) if of is None else len(of)
        taken = None if of is None else pa.array(of, pa.int64())
        told: dict[str, Any] = {"step": 0, **columns}
        if (values := told.pop("told", None)) is not None:
            told["number"], told["value"] = _kept(values)
        for name, column in self.columns.items():
            told[name] = column if taken is None else column.take(taken)
        return _table(told, count)


def table_of_rows(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([row._asdict() for row in rows], _ROWS)


def _table(columns: Mapping[str, Any], count: int) -> pa.Table:
    return pa.Table.from_arrays(
        [_array(columns.get(name), name, count) for name in Row._fields], schema=_ROWS
    )


_ROWS = pa.schema([SCHEMA.field(name) for name in Row._fields])


def _array(column: Any, name: str, count: int) -> pa.Array:
    of = SCHEMA.field(name).type
    if column is None or isinstance(column, int | str):
        return pa.repeat(pa.scalar(column, of), count)
    return column if isinstance(column, pa.Array) else pa.array(column, of)


def keyed_rows(operations: Operations) -> pa.Table:
    objects: list[str] = []
    whats: list[str] = []
    told: list[Any] = []
    wholes: list[int] = []
    columns = (operations.f, operations.kind, operations.argument, operations.result)
    for f, kind, asked, did, extra in zip(*columns, operations.extra, strict=True):
        key, value = _accessed(f, kind, asked, did)
        objects.append(key)
        if extra or value is _MORE or (type(value) in _NESTING and _has_mapping(value)):
            wholes.append(len(told))
            whats.append("operation")
            told.append(NOTHING)
        else:
            whats.append("access")
            told.append(value)
    found: dict[str, Any] = {"object": texts(objects), "what": texts(whats), "told": told}
    if wholes:
        arguments: list[bytes | None] = [None] * len(told)
        results, extras = arguments.copy(), arguments.copy()
        for at in wholes:
            arguments[at] = packed(operations.argument[at])
            results[at] = packed(operations.result[at])
            extras[at] = packed(operations.extra[at] or None)
        found |= {"argument": arguments, "result": results, "extra": extras}
    return operations.rows(None, found)


_MORE = object()


def _has_mapping(value: Value) -> bool:
    """Equal ones may be written in another order of their keys: it is not one value."""
    match value:
        case list() | tuple():
            return any(map(_has_mapping, value))
        case _:
            return isinstance(value, dict)


def _accessed(f: str, kind: str, asked: Value, did: Value) -> tuple[str, Any]:
    """The key, and the value that came or went; _MORE if the operation says more than that."""
    if not isinstance(asked, list | tuple) or not asked:
        return WHOLE, _MORE
    key = asked[0] if type(asked[0]) is str else str(asked[0])
    if len(asked) != 2:
        return key, _MORE
    if f in BRINGING and asked[1] is not None:
        return key, asked[1]
    if f in TAKING and asked[1] is None:
        if kind != "ok":
            return key, NOTHING
        if isinstance(did, list | tuple) and len(did) == 2:
            return key, did[1]
    return key, _MORE


def whole_rows(operations: Operations, of: Sequence[int] | None = None) -> pa.Table:
    """Operations that concern the run as a whole."""
    places = range(len(operations)) if of is None else of
    columns = {
        "object": WHOLE,
        "what": "operation",
        "argument": [packed(operations.argument[at]) for at in places],
        "result": [packed(operations.result[at]) for at in places],
        "extra": [packed(operations.extra[at] or None) for at in places],
    }
    return operations.rows(of, columns)


def packed(value: Value) -> bytes | None:
    return None if value is None else _encode(value)


def _int64(numbers: Sequence[int]) -> NDArray[np.int64]:
    """Raises OverflowError."""
    return np.fromiter(numbers, np.int64, len(numbers))


def taking(places: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Takes what is at these places."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda column: [column[at] for at in places]


def _both(
    before: Sequence[Mapping[str, Value] | None],
    after: Sequence[Mapping[str, Value] | None],
) -> Sequence[Mapping[str, Value] | None]:
    if not any(after):
        return before
    return [
        {**(invoked or {}), **completed} if completed else invoked
        for invoked, completed in zip(before, after, strict=True)
    ]


def texts(column: Sequence[str]) -> pa.Array:
    """Of names that come again and again: each is looked at once."""
    names = dict.fromkeys(column)
    numbers = dict(zip(names, range(len(names)), strict=True))
    code = np.fromiter(map(numbers.__getitem__, column), np.int64, len(column))
    return pa.array(list(names), pa.string()).take(pa.array(code))


def _names(processes: Sequence[int | str]) -> pa.Array:
    if _TELLING.issuperset(map(type, processes)):
        named = {each: json.dumps(each) for each in dict.fromkeys(processes)}
        return texts(list(map(named.__getitem__, processes)))
    return texts(list(map(json.dumps, processes)))


def _kept(values: Sequence[Any]) -> tuple[pa.Array, pa.Array]:
    """As numbers, and as values that are none."""
    try:
        if _INTS.issuperset(map(type, values)):
            return pa.array(values, pa.int64()), pa.nulls(len(values), pa.binary())
    except OverflowError:
        pass
    numbers = [each if type(each) is int and each in _NUMBERS else None for each in values]
    others = [
        _encode(each) if number is None and each is not NOTHING else None
        for number, each in zip(numbers, values, strict=True)
    ]
    return pa.array(numbers, pa.int64()), pa.array(others, pa.binary())
