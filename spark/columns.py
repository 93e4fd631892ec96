"""Rows of the table as what the pure checkers take: columns of objects, operations, lines.

Rows of several runs may be mixed: an object is then named by its run and its own name, so that all
are judged in one pass as if they were the objects of one history. Rows of registers and queues
become columns if each of their operations is one plain access.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jepsen_like.checkers.log_columns import CODES, UNKNOWN, Ends, LogColumns, Reads, Sends
from jepsen_like.checkers.operations import NEVER, Operation
from jepsen_like.checkers.pairing import Column, Pairing, numbered, order_of
from jepsen_like.checkers.queue_columns import NOTHING, QueueColumns, QueueEnds
from jepsen_like.checkers.verdict import places
from jepsen_like.checkers.zones import Accesses, RegisterColumns
from jepsen_like.histories.history import Kind, Op, Value
from spark.schema import BRINGING, NIL
from spark.verdicts import named

__all__ = [
    "Chosen",
    "Values",
    "kinds",
    "lines",
    "log_columns",
    "numbers",
    "objects",
    "operation_of",
    "operations",
    "plain",
    "queue_columns",
    "register_columns",
    "values",
]


def log_columns(rows: pa.Table) -> LogColumns:
    """Takes rows in the order of the table; those that are no step of a log are left out."""
    names, key = objects(rows)
    found, value = values(rows)
    columns: dict[str, Callable[[], Column]] = {
        "key": lambda: key,
        "value": lambda: value,
        "operation": lambda: places(numbers(rows, "invoked"), numbers(rows, "completed")),
        "process": lambda: _codes(rows, "process")[1],
        "session": lambda: _sessions(key, numbers(rows, "session")),
        "call": lambda: numbers(rows, "call"),
        "ret": lambda: numbers(rows, "ret", missing=NEVER),
        "kind": lambda: kinds(rows),
        "offset": lambda: numbers(rows, "offset"),
        "end": lambda: numbers(rows, "offset"),
        "start": lambda: numbers(rows, "start"),
        "since": lambda: numbers(rows, "start"),
        "assigned": lambda: numbers(rows, "assigned"),
    }
    what = rows.column("what").combine_chunks()
    tables: dict[str, Any] = {"send": Sends, "read": Reads, "end": Ends}
    mine = {each: np.flatnonzero(pc.equal(what, each)) for each in tables}
    parts: dict[str, dict[str, Column]] = {each: {} for each in tables}
    for name, column in columns.items():  # one after the other: each is as large as all rows
        made = column()
        for each, table in tables.items():
            if name in table.__dataclass_fields__:
                parts[each][name] = made[mine[each]]
    return LogColumns(
        keys=names,
        values=found,
        sends=Sends(**parts["send"]),
        reads=Reads(**parts["read"]),
        ends=Ends(**parts["end"]),
    )


def operations(rows: pa.Table, *, keyed: bool) -> list[Operation]:
    """In order of their calls. `keyed`: the key in the argument becomes the name of the object."""
    wanted = rows.filter(pc.is_in(rows.column("what"), pa.array(["operation", "access"])))
    found = [operation_of(row, keyed=keyed) for row in wanted.to_pylist()]
    return sorted(found, key=lambda operation: operation.call)


def lines(rows: pa.Table, what: str) -> Iterator[Op]:
    """Faults and observations ("line"), or what `lint` found ("lint") or believed ("trusted")."""
    wanted = rows.filter(pc.equal(rows.column("what"), what)).sort_by("call")
    for row in wanted.to_pylist():
        yield Op(
            index=row["invoked"],
            time_ns=row["call_ns"],
            kind=Kind(row["kind"]),
            process=json.loads(row["process"]),
            f=row["f"],
            value=_unpacked(row["argument"]),
            error=row["error"],
            extra=_unpacked(row["extra"]) or {},
        )


def operation_of(row: dict[str, Any], *, keyed: bool) -> Operation:
    argument, result = _unpacked(row["argument"]), _unpacked(row["result"])
    if row["what"] == "access":
        argument, result = _access(row)
    if keyed and isinstance(argument, list) and argument:
        argument = [named(row["run"], str(argument[0])), *argument[1:]]
    return Operation(
        process=json.loads(row["process"]),
        f=row["f"],
        kind=Kind(row["kind"]),
        argument=argument,
        result=result,
        call=row["call"],
        ret=NEVER if row["ret"] is None else row["ret"],
        index=row["invoked"],
        ret_index=row["completed"],
        extra=_unpacked(row["extra"]) or {},
    )


def _access(row: dict[str, Any]) -> tuple[Value, Value]:
    """The argument and the result."""
    value = _unpacked(row["value"]) if row["number"] is None else row["number"]
    asked = value if row["f"] in BRINGING else None
    return [row["object"], asked], [row["object"], value] if row["kind"] == "ok" else None


def objects(rows: pa.Table) -> tuple[list[str], Column]:
    """The names, with their runs, and of each row which of them it is of."""
    runs, run = _codes(rows, "run")
    names, of = _codes(rows, "object")
    pairs, key = numbered(run * max(1, len(names)) + of, len(runs) * len(names))
    apart = (divmod(int(pair), len(names)) for pair in pairs)
    return [named(runs[first], names[second]) for first, second in apart], key


def values(rows: pa.Table) -> tuple["Values", Column]:
    """Ints and other values have codes of their own, one behind the other."""
    ints, number = _encoded(rows, "number")
    others, other = _encoded(rows, "value")
    return Values(ints, others), np.where(other >= 0, other + len(ints), number)


class Values:
    """The values of a table by their codes."""

    def __init__(self, numbers: pa.Array, others: pa.Array) -> None:
        self._numbers, self._others = numbers, others

    def columns(self, codes: Column) -> tuple[pa.Array, pa.Array]:
        """`number` and `value` of rows with these codes; -1 is neither."""
        other = codes - len(self._numbers)
        ints = self._numbers.take(pa.array(codes, mask=(codes < 0) | (other >= 0)))
        return ints, self._others.take(pa.array(other, mask=other < 0))

    @property
    def nil(self) -> int:
        """The code of nothing; one that is none if it does not occur."""
        at = pc.index(self._others, pa.scalar(NIL, self._others.type)).as_py()
        return int(at) + len(self._numbers) if at >= 0 else len(self)

    def __len__(self) -> int:
        return len(self._numbers) + len(self._others)

    def __getitem__(self, code: int) -> Value:
        if code < len(self._numbers):
            return self._numbers[int(code)].as_py()
        return _unpacked(self._others[int(code) - len(self._numbers)].as_py())


def _sessions(key: Column, session: Column) -> Column:
    """Numbers of their own for the sessions of different keys; UNKNOWN stays."""
    pairs = key * (int(session.max(initial=0)) + 1) + session
    return np.where(session == UNKNOWN, UNKNOWN, pairs)


def kinds(rows: pa.Table) -> Column:
    names, codes = _codes(rows, "kind")
    # What is not ok, info or fail is no operation.
    known = {kind.value: code for kind, code in CODES.items()}
    return np.array([known.get(name, UNKNOWN) for name in names] or [0], dtype=np.int64)[codes]


def _codes(rows: pa.Table, name: str) -> tuple[list[str], Column]:
    dictionary, codes = _encoded(rows, name)
    return dictionary.to_pylist(), codes


def _encoded(rows: pa.Table, name: str) -> tuple[pa.Array, Column]:
    encoded = rows.column(name).combine_chunks().dictionary_encode()
    codes = pc.fill_null(encoded.indices.cast(pa.int64()), -1)
    return encoded.dictionary, codes.to_numpy(zero_copy_only=False)


def numbers(rows: pa.Table, name: str, missing: int = UNKNOWN) -> Column:
    column = pc.fill_null(rows.column(name).combine_chunks(), missing)
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)


def _unpacked(packed: bytes | None) -> Value:
    return None if packed is None else msgspec.msgpack.decode(packed)


_NEVER_WRITTEN = -1


def plain(rows: pa.Table, *fs: str) -> tuple[pa.Table, pa.Table]:
    """The rows of objects that have only accesses of these kinds, and those of the others."""
    is_access = pc.equal(rows.column("what"), "access")
    fits = pc.and_(is_access, pc.is_in(rows.column("f").cast(pa.string()), pa.array(fs)))
    if pc.all(fits).as_py():
        return rows, rows.slice(0, 0)
    names, key = objects(rows)
    is_mixed = np.zeros(len(names), dtype=bool)
    is_mixed[key[~np.asarray(fits)]] = True
    mixed = pa.array(is_mixed[key])
    return rows.filter(pc.invert(mixed)), rows.filter(mixed)


def register_columns(rows: pa.Table) -> RegisterColumns:
    """Takes rows of reads and writes."""
    is_write = np.asarray(pc.equal(rows.column("f"), "write"))
    is_ok = np.asarray(pc.equal(rows.column("kind"), "ok"))
    has_failed = np.asarray(pc.equal(rows.column("kind"), "fail"))
    says = np.where(is_write, ~has_failed, is_ok)
    names, key = objects(rows)
    found, value = values(rows)
    accesses = Accesses(
        key=key[says],
        value=np.where(value == found.nil, _NEVER_WRITTEN, value)[says],
        call=numbers(rows, "call")[says],
        ret=numbers(rows, "ret", missing=NEVER)[says],
    )
    return RegisterColumns(keys=names, accesses=accesses, is_write=is_write[says])


def queue_columns(rows: pa.Table) -> QueueColumns:
    """Takes rows of enqueues and dequeues."""
    names, key = objects(rows)
    found, value = values(rows)
    value = np.where(value == found.nil, NOTHING, value)
    pairing = Pairing.of(key, value)
    pairs, number = numbered(pairing.pairs(key, value), pairing.size)
    of_pair = pairing.second(pairs)
    is_value = of_pair != NOTHING
    order = order_of(numbers(rows, "call"))
    columns = {
        "operation": places(numbers(rows, "invoked"), numbers(rows, "completed")),
        "key": key,
        "value": np.where(is_value, np.cumsum(is_value) - 1, NOTHING)[number],
        "call": numbers(rows, "call"),
        "ret": numbers(rows, "ret", missing=NEVER),
        "kind": kinds(rows),
    }
    is_enqueue = np.asarray(pc.equal(rows.column("f"), "enqueue"))[order]

    def ends(mine: Column) -> QueueEnds:
        return QueueEnds(**{name: column[mine] for name, column in columns.items()})

    return QueueColumns(
        keys=names,
        values=Chosen(found, of_pair[is_value]),
        enqueues=ends(order[is_enqueue]),
        dequeues=ends(order[~is_enqueue]),
    )


@dataclass(frozen=True, slots=True)
class Chosen:
    """Some of the values, again and in an order of their own."""

    values: Values
    codes: Column

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, at: int) -> Value:
        return self.values[int(self.codes[at])]

    def columns(self, at: Column) -> tuple[pa.Array, pa.Array]:
        """`number` and `value` of rows with these of them."""
        return self.values.columns(self.codes[at])
