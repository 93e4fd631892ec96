"""What one operation of the log workload says, step by step: sent, read, or come to an end.

The only place that knows what sends, polls, assignments and transactions look like. Whoever wants
rows (columns in memory, a table in a file) takes them from here, one operation after the other, in
bounded memory: what is remembered is where each process reads.

A session is one stretch of a process's reading of one key, from an assignment on: within it,
positions go on from poll to poll. Assigning keys again keeps the sessions of those that stay,
unless all are read from the beginning, or from what a group has committed. A consumer that
subscribes is moved about by others: each of its polls is a session of its own, and no session
(UNKNOWN) where the keys of the extra `rebalance-log` say that it was moved meanwhile; both as in
Jepsen's kafka workload.

A reader that sought anything but the beginning (`seek`, of an assignment or a subscription: the
end, what is committed, an offset) does not speak of what lies before the first record that it read:
each of its reads says since which offset it has read. One of which nobody says where it began is
taken for one that began at zero, as in Jepsen's kafka workload.

A key is its text: JSON has no other keys in what a poll returns.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from jepsen_like.checkers.operations import Operation, malformed, pair_of
from jepsen_like.checkers.verdict import place
from jepsen_like.histories.history import Kind, Value

__all__ = ["UNKNOWN", "Ended", "LogSteps", "Read", "Sent", "Step"]

UNKNOWN = -1  # an offset that nobody told; a session that is not followed
_OFFSET_MAX = 1 << 40  # beyond, columns of numbers would overflow


class Sent(NamedTuple):
    key: str
    value: Value
    offset: int


class Read(NamedTuple):
    key: str
    value: Value
    offset: int
    session: int
    since: int  # the first offset of a session that sought another place than zero; else UNKNOWN


class Ended(NamedTuple):
    """Where a reader saw a key end, or only that it has caught up (`end` UNKNOWN)."""

    key: str
    end: int
    session: int
    start: int  # call of the assignment from the beginning that it read from; else UNKNOWN
    assigned: int  # its place


Step = Sent | Read | Ended


class _Session(NamedTuple):
    number: int
    start: int = UNKNOWN  # call of the assignment if it reads from the beginning, else UNKNOWN
    assigned: int = UNKNOWN  # its place


def _key(key: Value) -> str:
    """Raises TypeError if it is none."""
    if not isinstance(key, str | int):
        raise TypeError(key)
    return str(key)


def _value(value: Value) -> Value:
    """Raises TypeError if it cannot be told from others."""
    hash(value)
    return value


def _told(offset: Value) -> int:
    """Raises ValueError if it is none."""
    if type(offset) is not int or not 0 <= offset <= _OFFSET_MAX:
        raise ValueError(offset)
    return offset


@dataclass(slots=True)
class LogSteps:
    """Operations of one process must come in their order; those of several may be mixed."""

    _sessions: dict[int | str, dict[str, _Session]] = field(default_factory=dict)  # by process
    _subscribed: set[int | str] = field(default_factory=set)
    _own: dict[str, int] = field(default_factory=dict)  # sessions of one poll by who subscribes
    _sought: set[int | str] = field(default_factory=set)  # processes that sought another place
    _since: dict[int, int] = field(default_factory=dict)  # of their sessions
    _opened: int = 0

    def of(self, operation: Operation) -> list[Step]:
        try:
            return list(self._steps(operation))
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise malformed(operation, f"a {operation.f}") from error

    def session(self, process: int | str, key: str) -> int | None:
        """The session that this process goes on to read a key in, if its reads say no more."""
        if process in self._subscribed or process in self._sought:
            return None
        found = self._sessions.get(process, {}).get(key)
        return found and found.number

    def sessions(self, process: int | str) -> dict[str, int]:
        """Those that this process goes on with, by key."""
        return {key: each.number for key, each in self._sessions.get(process, {}).items()}

    def goes_on(self, process: int | str, key: str, session: int) -> bool:
        found = self._sessions.get(process, {}).get(key)
        return found is not None and found.number == session

    def forget(self, process: int | str) -> None:
        """It does nothing any more."""
        for each in self._sessions.pop(process, {}).values():
            self._since.pop(each.number, None)
        self._subscribed.discard(process)
        self._sought.discard(process)

    def dump(self) -> Value:
        """All of it between two operations, for `load`; of kinds that msgpack has."""
        sessions = [
            [process, [[key, *each] for key, each in own.items()]]
            for process, own in self._sessions.items()
        ]
        since = list(self._since.items())
        moved = [sorted(each, key=repr) for each in (self._subscribed, self._sought)]
        return [sessions, *moved, since, self._opened]

    @classmethod
    def load(cls, told: Value) -> "LogSteps":
        sessions, subscribed, sought, since, opened = told
        return cls(
            _sessions={
                process: {key: _Session(*each) for key, *each in own} for process, own in sessions
            },
            _subscribed=set(subscribed),
            _sought=set(sought),
            _since=dict(since),
            _opened=opened,
        )

    def _steps(self, operation: Operation) -> Iterator[Step]:
        match operation.f:
            case "send" | "poll" | "txn":
                self._forget_polls()
                yield from self._sends_and_reads(operation)
                if operation.kind is Kind.OK and operation.extra:
                    yield from self._ends(operation)
            case "assign" if operation.kind is Kind.OK:
                self._assign(operation)
            case "subscribe" if operation.kind is not Kind.FAIL:
                self._subscribed.add(operation.process)
                self._sessions.pop(operation.process, None)
                self._sought.discard(operation.process)
                self._seek(operation)
            case "crash" if operation.kind is not Kind.FAIL:
                for of_process in (self._subscribed, self._sought):
                    of_process.discard(operation.process)
                self._sessions.pop(operation.process, None)
            case _:
                pass

    def _sends_and_reads(self, operation: Operation) -> Iterator[Step]:
        is_ok = operation.kind is Kind.OK
        for step in operation.result if is_ok else operation.argument:
            match step:
                case ["send", key, [offset, value]] if is_ok:
                    at = UNKNOWN if offset in (None, UNKNOWN) else _told(offset)
                    yield Sent(_key(key), _value(value), at)
                case ["send", key, value]:
                    yield Sent(_key(key), _value(value), UNKNOWN)
                case ["poll", polled]:
                    yield from self._reads(operation, polled)
                case ["poll"]:
                    pass
                case _:
                    raise ValueError(step)

    def _reads(self, operation: Operation, polled: Mapping[str, Value]) -> Iterator[Read]:
        for name, records in polled.items():
            key = _key(name)
            number = self._session_of_poll(operation, key)
            is_sought = operation.process in self._sought
            for record in records:
                offset, value = pair_of(record)
                at = _told(offset)
                since = self._since.setdefault(number, at) if is_sought else UNKNOWN
                yield Read(key, _value(value), at, number, since)
            self._since.pop(UNKNOWN, None)

    def _ends(self, operation: Operation) -> Iterator[Ended]:
        """`caught_up`: all that it is assigned. `ends`: the end of each key, as it was told."""
        is_caught_up = bool(operation.extra.get("caught_up"))
        told = dict(operation.extra.get("ends") or {})
        ends = {_key(key): _told(end) for key, end in told.items()}
        if is_caught_up:
            ends = {**dict.fromkeys(self._sessions.get(operation.process, {}), UNKNOWN), **ends}
        for key, end in ends.items():
            session = self._session_of(operation, key)
            number, start, assigned = session or _Session(UNKNOWN)
            if not is_caught_up:
                start = assigned = UNKNOWN
            yield Ended(key, end, number, start, assigned)

    def _assign(self, operation: Operation) -> None:
        self._subscribed.discard(operation.process)
        seek = self._seek(operation)
        begins = seek == "beginning"
        before = {} if seek is not None else self._sessions.get(operation.process, {})
        begin = (operation.call, place(operation)) if begins else ()
        self._sessions[operation.process] = {
            key: before.get(key) or self._session(*begin) for key in map(_key, operation.argument)
        }

    def _seek(self, operation: Operation) -> Value:
        """A process that sought another place than zero has done so until it seeks again."""
        seek = operation.extra.get("seek")
        if seek == "beginning":
            self._sought.discard(operation.process)
        elif seek is not None:
            self._sought.add(operation.process)
        return seek

    def _session(self, *begin: int) -> _Session:
        self._opened += 1
        return _Session(self._opened, *begin)

    def _forget_polls(self) -> None:
        for number in self._own.values():
            self._since.pop(number, None)
        self._own.clear()

    def _session_of_poll(self, operation: Operation, key: str) -> int:
        if session := self._session_of(operation, key):
            return session.number
        moved = operation.extra.get("rebalance-log") or ()
        if any(key == _key(each) for entry in moved for each in entry["keys"]):
            return UNKNOWN
        if key not in self._own:
            self._own[key] = self._session().number
        return self._own[key]

    def _session_of(self, operation: Operation, key: str) -> _Session | None:
        """A reader that was never assigned anything is followed too: it began somewhere."""
        if operation.process in self._subscribed:
            return None
        sessions = self._sessions.setdefault(operation.process, {})
        if key not in sessions:
            sessions[key] = self._session()
        return sessions[key]
