"""The rows of a log: an operation becomes a row for each step, a poll one for each record.

Sends of one value, and polls of a reader whose session is known, are most of a log: they are
taken apart here. What else an operation may say, and where a reader reads, `LogSteps` knows.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import chain
from typing import Any, assert_never

import numpy as np
import pyarrow as pa

from jepsen_like.checkers.log_steps import UNKNOWN, Ended, LogSteps, Read, Sent, Step
from jepsen_like.histories.history import Value
from spark.operation_rows import NOTHING, Operations, packed, texts, whole_rows

__all__ = ["STEPS", "LogRows"]

_WHAT: dict[type[Step], str] = {Sent: "send", Read: "read", Ended: "end"}
STEPS = tuple(_WHAT.values())

_OFFSETS = range((1 << 40) + 1)
_NUMBERS = frozenset({int})
_KEYS = frozenset({int, str})
_PAIRS = frozenset({list, tuple})
_PLAIN = frozenset({int, str, bool, float, bytes, type(None)})  # values that can be told apart
_ASKED = [["poll"]]


@dataclass(slots=True)
class LogRows:
    """Of blocks of operations that follow one another."""

    steps: LogSteps = field(default_factory=LogSteps)

    def of(self, operations: Operations) -> Iterator[pa.Table]:
        usual, others = _Usual(may_read=_are_usual_polls(operations)), _Columns()
        columns = (operations.f, operations.kind, operations.argument, operations.result)
        for at, (f, kind, asked, did, extra) in enumerate(
            zip(*columns, operations.extra, strict=True)
        ):
            if extra:
                is_usual = False
            elif f == "send":
                is_usual = usual.is_sent(at, asked, did, is_ok=kind == "ok")
            elif f == "poll" and kind == "ok" and asked == _ASKED:
                session = partial(self.steps.session, operations.process[at])
                is_usual = usual.is_read(at, did, session)
            else:
                is_usual = False
            if not is_usual:
                self._others(operations, at, others, usual.silent)
        for places, found in usual.sent(operations):
            if found is not None:
                yield operations.rows(places, found)
                continue
            for at in places:  # no session is asked for: their order does not matter
                self._others(operations, at, others, usual.silent)
        yield operations.rows(*usual.read(operations))
        yield operations.rows(others.of, others.columns())
        yield whole_rows(operations, usual.silent)

    def _others(
        self, operations: Operations, at: int, others: "_Columns", silent: list[int]
    ) -> None:
        operation = operations.operation(at)
        steps = self.steps.of(operation)
        if not steps:
            silent.append(at)
        for number, step in enumerate(steps):
            others.add(at, number, step)
            others.extra.append(packed(operation.extra or None) if not number else None)


@dataclass(slots=True)
class _Columns:
    of: list[int] = field(default_factory=list)
    object: list[str] = field(default_factory=list)
    told: list[Any] = field(default_factory=list)
    offset: list[int | None] = field(default_factory=list)
    session: list[int | None] = field(default_factory=list)
    step: list[int] = field(default_factory=list)
    what: list[str] = field(default_factory=list)
    start: list[int | None] = field(default_factory=list)
    assigned: list[int | None] = field(default_factory=list)
    extra: list[bytes | None] = field(default_factory=list)

    def add(self, at: int, number: int, step: Step) -> None:
        self.of.append(at)
        self.step.append(number)
        self.object.append(step.key)
        self.what.append(_WHAT[type(step)])
        match step:
            case Sent(value=value, offset=offset):
                row = value, offset, UNKNOWN, UNKNOWN, UNKNOWN
            case Read(value=value, offset=offset, session=session, since=since):
                row = value, offset, session, since, UNKNOWN
            case Ended(end=end, session=session, start=start, assigned=assigned):
                row = NOTHING, end, session, start, assigned
            case other:
                assert_never(other)
        self.told.append(row[0])
        columns = (self.offset, self.session, self.start, self.assigned)
        for column, number in zip(columns, row[1:], strict=True):
            column.append(None if number == UNKNOWN else number)

    def columns(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "of"}


@dataclass(slots=True)
class _Usual:
    """Operations that read nothing whose session is not known.

    `may_read`: what all polls of the block returned is as usual. It is known before the first of
    them is looked at, since a session is that of the moment: a poll cannot be put off.
    """

    may_read: bool
    acknowledged: list[int] = field(default_factory=list)
    unanswered: list[int] = field(default_factory=list)
    polls: list[int] = field(default_factory=list)
    sessions: list[int] = field(default_factory=list)  # of the keys of these polls
    silent: list[int] = field(default_factory=list)

    def is_sent(self, at: int, asked: Value, did: Value, *, is_ok: bool) -> bool:
        match did if is_ok else asked:
            case [["send", _, _]]:
                (self.acknowledged if is_ok else self.unanswered).append(at)
                return True
        return False

    def is_read(self, at: int, did: Value, session: Callable[[str], int | None]) -> bool:
        polled = _polled(did)
        if polled is None or not self.may_read:
            return False
        if not polled:
            self.silent.append(at)
            return True
        sessions = [found for key in polled if (found := session(str(key))) is not None]
        if len(sessions) < len(polled) or not all(polled.values()):
            return False
        self.polls.append(at)
        self.sessions += sessions
        return True

    def sent(self, operations: Operations) -> Iterator[tuple[Sequence[int], dict[str, Any] | None]]:
        """Whose rows they are, and their columns; None if any of them is unusual, or wrong."""
        acknowledged = [operations.result[at] for at in self.acknowledged]
        yield self.acknowledged, _sent(acknowledged, is_ok=True)
        unanswered = [operations.argument[at] for at in self.unanswered]
        yield self.unanswered, _sent(unanswered, is_ok=False)

    def read(self, operations: Operations) -> tuple[Sequence[int], dict[str, Any]]:
        rows = _read([operations.result[at][0][1] for at in self.polls], self.sessions)
        assert rows is not None, "each poll of the block is as usual"
        return np.array(self.polls, dtype=np.int64)[rows.pop("of")], rows


def _polled(did: Value) -> Mapping[Any, Any] | None:
    """By key; None if it is no answer to a poll that is usual."""
    match did:
        case [["poll", dict(polled)]] if _KEYS.issuperset(map(type, polled)):
            return polled
    return None


def _are_usual_polls(operations: Operations) -> bool:
    """Whether there is nothing in what any poll returned that only `LogSteps` can judge."""
    told = zip(operations.f, operations.kind, operations.result, strict=True)
    polled = [_polled(did) for f, kind, did in told if f == "poll" and kind == "ok"]
    records = [found for each in polled if each for found in each.values()]
    return _columns_of(records) is not None


def _sent(found: Sequence[Value], *, is_ok: bool) -> dict[str, Any] | None:
    try:
        steps = [step for (step,) in found]
        send, key, value = zip(*steps, strict=True)
        offset: Sequence[Value] | None = None
        if is_ok:
            if not _PAIRS.issuperset(map(type, value)):
                return None
            offset, value = zip(*value, strict=True)
    except (TypeError, ValueError):
        return None
    is_plain = send.count("send") == len(send) and _KEYS.issuperset(map(type, key))
    if not is_plain or not _are_told_apart(value) or not (offset is None or _are_offsets(offset)):
        return None
    return {"object": texts(list(map(str, key))), "what": "send", "told": value, "offset": offset}


def _read(polled: Sequence[Mapping[Any, Value]], sessions: Sequence[int]) -> dict[str, Any] | None:
    """Of which poll each row is, and the columns; `sessions` are those of each key."""
    keys = [str(key) for each in polled for key in each]
    records = [found for each in polled for found in each.values()]
    columns = _columns_of(records)
    if columns is None:
        return None
    offset, value = columns
    counts = np.fromiter(map(len, records), np.int64, len(records))
    key = np.repeat(np.arange(len(keys)), counts)
    poll = np.repeat(np.arange(len(polled)), np.fromiter(map(len, polled), np.int64, len(polled)))[
        key
    ]
    return {
        "of": poll,
        "object": pa.array(keys, pa.string()).take(pa.array(key)),
        "what": "read",
        "step": np.arange(len(poll)) - np.searchsorted(poll, poll),
        "told": value,
        "offset": offset,
        "session": np.array(sessions, dtype=np.int64)[key],
    }


def _columns_of(records: Sequence[Value]) -> tuple[Sequence[int], Sequence[Value]] | None:
    """Offsets and values of the records of some keys; None if any is unusual, or wrong."""
    try:
        pairs = list(chain.from_iterable(records))
        if not _PAIRS.issuperset(map(type, pairs)):
            return None
        offset, value = zip(*pairs, strict=True) if pairs else ((), ())
    except (TypeError, ValueError):
        return None
    if not _are_offsets(offset) or None in offset or not _are_told_apart(value):
        return None
    return offset, value


def _are_offsets(offsets: Sequence[Value]) -> bool:
    told = [each for each in offsets if each is not None] if None in offsets else offsets
    return _NUMBERS.issuperset(map(type, told)) and (
        not told or (min(told) in _OFFSETS and max(told) in _OFFSETS)
    )


def _are_told_apart(values: Sequence[Value]) -> bool:
    if _PLAIN.issuperset(map(type, values)):
        return True
    try:
        deque(map(hash, values), maxlen=0)
    except TypeError:
        return False
    return True
