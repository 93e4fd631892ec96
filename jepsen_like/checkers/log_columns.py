"""A history of sends and polls as columns: what all checks of the log workload work on.

One row a send, one row a polled record, one row a key of which a reader has seen the end. Keys and
values are numbers here, so that a check is a few NumPy passes over all keys at once, whoever filled
the columns.

What an operation says, and what a session is: see `log_steps`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from jepsen_like.checkers.log_steps import UNKNOWN, Ended, LogSteps, Read, Sent, Step
from jepsen_like.checkers.operations import Operation
from jepsen_like.history import Kind, Value

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
    operation: Column  # which of the operations
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
    operations: Sequence[Operation]
    keys: Sequence[str]  # name of each key
    values: Sequence[Value]  # what was sent as each value
    sends: Sends
    reads: Reads
    ends: Ends

    @classmethod
    def of(cls, operations: Sequence[Operation]) -> "LogColumns":
        loading = _Loading()
        steps = LogSteps()
        for number, operation in enumerate(operations):
            for step in steps.of(operation):
                loading.add(number, operation, step)
        return cls(
            operations=operations,
            keys=[str(key) for key in loading.keys],
            values=list(loading.values),
            sends=Sends(**_columns(loading.sends, Sends)),
            reads=Reads(**_columns(loading.reads, Reads)),
            ends=Ends(**_columns(loading.ends, Ends)),
        )

    def evidence(self, operations: Iterable[int]) -> tuple[int, ...]:
        """Where in the history these operations are, each of them once."""
        found = {index for each in operations for index in self.operations[each].evidence}
        return tuple(sorted(found))


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

    def add(self, number: int, operation: Operation, step: Step) -> None:
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
    return codes.setdefault(value, len(codes))
