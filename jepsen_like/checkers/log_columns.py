"""A history of sends and polls as columns: what all checks of the log workload work on.

One row a send, one row a polled record, one row a key of which a reader has seen the end. Keys and
values are numbers here, so that a check is a few NumPy passes over all keys at once, whoever filled
the columns.

What an operation says, and what a session is: see `log_steps`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from jepsen_like.checkers.log_steps import UNKNOWN, Ended, LogSteps, Read, Sent, Step
from jepsen_like.checkers.operations import Operation
from jepsen_like.checkers.places import place
from jepsen_like.history import Kind, MalformedHistory, Value

__all__ = [
    "CODES",
    "FAIL",
    "INFO",
    "OK",
    "UNKNOWN",
    "Column",
    "Ends",
    "LogColumns",
    "Reads",
    "Sends",
]

Column = NDArray[np.int64]
OK, INFO, FAIL = 0, 1, 2
CODES = {Kind.OK: OK, Kind.INFO: INFO, Kind.FAIL: FAIL}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sends:
    operation: Column  # where in the history: see `places`
    key: Column
    process: Column
    call: Column
    ret: Column
    kind: Column
    value: Column
    offset: Column


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reads:
    """In the order in which each poll returned them. Only of polls that are ok."""

    operation: Column
    key: Column
    session: Column
    call: Column
    ret: Column
    value: Column
    offset: Column


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ends:
    """Where a reader saw a key end, or only that it has caught up (`end` UNKNOWN)."""

    operation: Column
    key: Column
    session: Column
    start: Column  # call of the assignment from the beginning that it read from; else UNKNOWN
    call: Column
    ret: Column
    end: Column


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogColumns:
    keys: Sequence[str]  # name of each key
    values: Sequence[Value]  # what was sent as each value
    sends: Sends
    reads: Reads
    ends: Ends

    @classmethod
    def of(cls, operations: Sequence[Operation]) -> "LogColumns":
        loading = _Loading()
        steps = LogSteps()
        for operation in operations:
            for step in steps.of(operation):
                loading.add(operation, step)
        return cls(
            keys=[str(key) for key in loading.keys],
            values=list(loading.values),
            sends=Sends(**_columns(loading.sends, Sends)),
            reads=Reads(**_columns(loading.reads, Reads)),
            ends=Ends(**_columns(loading.ends, Ends)),
        )


def _columns(rows: Sequence[tuple[int, ...]], table: type) -> dict[str, Column]:
    names = table.__dataclass_fields__  # type: ignore[attr-defined] # each table is a dataclass
    matrix = np.array(rows, dtype=np.int64).reshape(len(rows), len(names))
    return {name: np.ascontiguousarray(matrix[:, at]) for at, name in enumerate(names)}


@dataclass(slots=True)
class _Loading:
    keys: dict[Value, int] = field(default_factory=dict)
    values: dict[Value, int] = field(default_factory=dict)
    processes: dict[Value, int] = field(default_factory=dict)
    sends: list[tuple[int, ...]] = field(default_factory=list)
    reads: list[tuple[int, ...]] = field(default_factory=list)
    ends: list[tuple[int, ...]] = field(default_factory=list)

    def add(self, operation: Operation, step: Step) -> None:
        number = place(operation)
        key, call, ret = _code(self.keys, step.key), operation.call, operation.ret
        match step:
            case Sent():
                process = _code(self.processes, operation.process)
                value = _code(self.values, step.value)
                kind = CODES[operation.kind]
                self.sends.append((number, key, process, call, ret, kind, value, step.offset))
            case Read():
                value = _code(self.values, step.value)
                self.reads.append((number, key, step.session, call, ret, value, step.offset))
            case Ended():
                self.ends.append((number, key, step.session, step.start, call, ret, step.end))
            case other:
                assert_never(other)


def _code(codes: dict[Value, int], value: Value) -> int:
    try:
        return codes.setdefault(value, len(codes))
    except TypeError as error:
        raise MalformedHistory(f"neither a key nor a value of a log: {value!r:.100}") from error
