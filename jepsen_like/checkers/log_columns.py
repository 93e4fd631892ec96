"""A history of sends and polls as columns: what all checks of the log workload work on.

One row a send, one row a polled record, one row a key of which a reader has seen the end. Keys and
values are numbers here, so that a check is a few NumPy passes over all keys at once, whoever filled
the columns.

A session is one stretch of a process's reading of one key, from an assignment on: within it,
positions go on from poll to poll. Assigning keys again keeps the sessions of those that stay,
unless all are read from the beginning. A consumer that subscribes is moved about by others: its
positions are not followed (session UNKNOWN), as in Jepsen's kafka workload.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from jepsen_like.checkers.operations import Operation
from jepsen_like.history import Kind, MalformedHistory, Value

__all__ = ["FAIL", "INFO", "OK", "UNKNOWN", "Column", "Ends", "LogColumns", "Reads", "Sends"]

Column = NDArray[np.int64]
UNKNOWN = -1  # an offset that nobody told; a session that is not followed
OK, INFO, FAIL = 0, 1, 2
_CODES = {Kind.OK: OK, Kind.INFO: INFO, Kind.FAIL: FAIL}


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
        for number, operation in enumerate(operations):
            loading.add(number, operation)
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
class _Session:
    number: int
    start: int  # call of the assignment if it reads from the beginning, else UNKNOWN


@dataclass(slots=True)
class _Loading:
    keys: dict[Value, int] = field(default_factory=dict)
    values: dict[Value, int] = field(default_factory=dict)
    processes: dict[Value, int] = field(default_factory=dict)
    sends: list[tuple[int, ...]] = field(default_factory=list)
    reads: list[tuple[int, ...]] = field(default_factory=list)
    ends: list[tuple[int, ...]] = field(default_factory=list)
    sessions: dict[int | str, dict[str, _Session]] = field(default_factory=dict)  # by process
    subscribed: set[int | str] = field(default_factory=set)
    opened: int = 0

    def add(self, number: int, operation: Operation) -> None:
        try:
            self._add(number, operation)
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise MalformedHistory(
                f"operation {operation.index}: not what a {operation.f} looks like: "
                f"{operation.argument!r:.100} -> {operation.result!r:.100}"
            ) from error

    def _add(self, number: int, operation: Operation) -> None:
        match operation.f:
            case "send" | "poll" | "txn":
                self._add_steps(number, operation)
            case "assign" if operation.kind is Kind.OK:
                self._assign(operation)
            case "subscribe":
                self.subscribed.add(operation.process)
                self.sessions.pop(operation.process, None)
            case "crash":
                self.subscribed.discard(operation.process)
                self.sessions.pop(operation.process, None)
            case _:
                pass

    def _assign(self, operation: Operation) -> None:
        self.subscribed.discard(operation.process)
        begins = operation.extra.get("seek") == "beginning"
        before = {} if begins else self.sessions.get(operation.process, {})
        start = operation.call if begins else UNKNOWN
        self.sessions[operation.process] = {
            key: before.get(key) or self._session(start) for key in operation.argument
        }

    def _session(self, start: int) -> _Session:
        self.opened += 1
        return _Session(self.opened, start)

    def _add_steps(self, number: int, operation: Operation) -> None:
        is_ok = operation.kind is Kind.OK
        for step in operation.result if is_ok else operation.argument:
            match step:
                case ["send", key, [offset, value]] if is_ok:
                    self._add_send(number, operation, key, value, offset)
                case ["send", key, value]:
                    self._add_send(number, operation, key, value, None)
                case ["poll", polled]:
                    self._add_reads(number, operation, polled)
                case ["poll"]:
                    pass
                case _:
                    raise ValueError(step)
        if is_ok:
            self._add_ends(number, operation)

    def _add_send(
        self, number: int, operation: Operation, key: str, value: Value, offset: int | None
    ) -> None:
        self.sends.append(
            (
                number,
                _code(self.keys, key),
                _code(self.processes, operation.process),
                operation.call,
                operation.ret,
                _CODES[operation.kind],
                _code(self.values, value),
                UNKNOWN if offset is None else offset,
            )
        )

    def _add_reads(self, number: int, operation: Operation, polled: Mapping[str, Value]) -> None:
        for key, records in polled.items():
            code = _code(self.keys, key)
            session = self._session_of(operation, key)
            number_of_session = session.number if session else UNKNOWN
            for offset, value in records:
                self.reads.append(
                    (
                        number,
                        code,
                        number_of_session,
                        operation.call,
                        operation.ret,
                        _code(self.values, value),
                        offset,
                    )
                )

    def _add_ends(self, number: int, operation: Operation) -> None:
        """`caught_up`: all that it is assigned. `ends`: the end of each key, as it was told."""
        ends = dict(operation.extra.get("ends") or {})
        if operation.extra.get("caught_up"):
            ends = {**dict.fromkeys(self.sessions.get(operation.process, {}), UNKNOWN), **ends}
        for key, end in ends.items():
            session = self._session_of(operation, key)
            is_done = session is not None and bool(operation.extra.get("caught_up"))
            self.ends.append(
                (
                    number,
                    _code(self.keys, key),
                    session.number if session else UNKNOWN,
                    session.start if session and is_done else UNKNOWN,
                    operation.call,
                    operation.ret,
                    end,
                )
            )

    def _session_of(self, operation: Operation, key: str) -> _Session | None:
        """A reader that was never assigned anything is followed too: it began somewhere."""
        if operation.process in self.subscribed:
            return None
        sessions = self.sessions.setdefault(operation.process, {})
        if key not in sessions:
            sessions[key] = self._session(UNKNOWN)
        return sessions[key]


def _code(codes: dict[Value, int], value: Value) -> int:
    return codes.setdefault(value, len(codes))
