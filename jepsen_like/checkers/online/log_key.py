"""One key of a log, judged while it grows: what each rule needs to remember of it.

Order. An offset was there when somebody was told of it; so `top` is the greatest offset that was
there. A send that was invoked when offset t was there already may not land at t or before; nor may
a reader who began then be told that the log ends there. Source: `jepsen_like.checkers.log_records`.

Values. Each offset has one value, and each value one offset, that of its acknowledgement. Offsets
and values are remembered up to a number of them; older ones are forgotten, the lowest first, and
nothing is said of what is read there again. Writes of unknown end are remembered until somebody
reads them.

Readers. Positions go forward, and skip nothing that anybody was told of, before or after. One that
reads from the beginning to the end must find all that was known when it began.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jepsen_like.checkers.online.intervals import Intervals
from jepsen_like.checkers.online.told import Name
from jepsen_like.histories.history import Kind, Value

__all__ = ["Broken", "LogKey", "Reading"]

_JUMPS = 1_000
_INTERVALS = 1_000
_STEPS = 64  # then it is time to forget


class Broken(NamedTuple):
    """A rule, what is wrong, and the lines that show it beside the operation that ends now."""

    rule: str
    detail: str
    lines: tuple[int, ...] = ()


@dataclass(slots=True)
class _Sent:
    """`top`: the greatest offset that was there when it was invoked."""

    line: int
    top: int
    kind: Kind | None = None  # None: open
    told: int | None = None  # the offset of its acknowledgement
    read: int | None = None  # the first at which it was read
    read_by: int = -1


@dataclass(slots=True)
class Reading:
    """From the beginning: what it has not found yet of all that was known before it began."""

    offsets: Intervals
    names: set[Name]  # acknowledged without an offset
    is_whole: bool = False  # it has come to the end once
    last: int = -1


@dataclass(slots=True)
class LogKey:
    top: int = -1
    floor: int = 0  # below, offsets are forgotten
    lost: bool = False  # a value without an offset was forgotten
    at: dict[int, tuple[Name, int]] = field(default_factory=dict)  # value and line, by offset
    sent: dict[Name, _Sent] = field(default_factory=dict)
    steps: list[tuple[int, int]] = field(default_factory=list)  # line, and top from there on
    known: Intervals = field(default_factory=Intervals)
    jumps: dict[tuple[int, int], tuple[int, bool]] = field(default_factory=dict)
    sends: dict[int | str, int] = field(default_factory=dict)  # the last offset, by process
    sessions: dict[int, int] = field(default_factory=dict)  # the last offset, by session
    readings: dict[int, Reading] = field(default_factory=dict)  # by session

    @property
    def is_due(self) -> bool:
        return len(self.steps) > _STEPS

    def invoked(self, name: Name, line: int) -> bool:
        """Whether it is sent for the first time."""
        before = self.sent.get(name)
        self.sent[name] = _Sent(line, self.top)
        return before is None or before.kind is Kind.FAIL

    def beginning(self) -> Reading:
        """What somebody who reads from the beginning from now on has to find."""
        names = {
            name
            for name, each in self.sent.items()
            if each.kind is Kind.OK and each.told is None and each.read is None
        }
        return Reading(self.known.copy(), names)

    # --- what was told; `strict`: values are at one offset ---------------------------------------

    def acknowledged(
        self, name: Name, offset: int | None, line: int, *, process: int | str, strict: bool
    ) -> Iterator[Broken]:
        sent = self.sent.get(name)
        if sent is None:
            return
        sent.kind = Kind.OK
        if offset is None:
            return
        yield from self._shown(offset, name, line)
        if sent.top >= offset:
            yield _too_late(offset, sent)
        if strict and sent.read not in (None, offset) and sent.told is None:
            yield _elsewhere(name, offset, sent)
        before = self.sends.get(process, -1)
        if before >= offset:
            yield Broken("nonmonotonic-send", f"a send at {offset} followed one at {before}")
        self.sends[process] = offset
        sent.told = offset
        self._there(offset, line)

    def failed(self, name: Name) -> Iterator[Broken]:
        sent = self.sent.get(name)
        if sent is not None:
            sent.kind = Kind.FAIL
            if sent.read is not None:
                yield _aborted(name, sent.read, sent)

    def unknown(self, name: Name) -> None:
        if (sent := self.sent.get(name)) is not None:
            sent.kind = Kind.INFO

    def read(
        self, name: Name, offset: int, line: int, *, session: int, strict: bool
    ) -> Iterator[Broken]:
        sent = self.sent.get(name)
        if sent is not None:
            yield from self._read_sent(name, sent, offset, line, strict=strict)
        elif offset >= self.floor and offset not in self.at and self._knows_all(strict):
            yield Broken("phantom", f"{name!r} was read at offset {offset}, and nobody sent it")
        yield from self._shown(offset, name, line)
        self._there(offset, line)
        if (reading := self.readings.get(session)) is not None:
            reading.offsets.discard(offset)
            reading.names.discard(name)
            reading.last = max(reading.last, offset)

    def _read_sent(
        self, name: Name, sent: _Sent, offset: int, line: int, *, strict: bool
    ) -> Iterator[Broken]:
        if sent.kind is Kind.FAIL:
            yield _aborted(name, offset, sent)
        if sent.top >= offset:
            yield _too_late(offset, sent)
        if strict and sent.read not in (None, offset):
            detail = f"{name!r} is at offset {sent.read}, and at {offset}"
            yield Broken("duplicate", detail, (sent.read_by,))
        if strict and sent.read is None and sent.told not in (None, offset):
            sent.read, sent.read_by = offset, line
            yield _elsewhere(name, sent.told or 0, sent)
        if sent.read is None:
            sent.read, sent.read_by = offset, line

    def _knows_all(self, strict: bool) -> bool:
        """Whether a value that is not known was never sent, or is at another offset."""
        return not self.lost and (strict or not self.floor)

    def _shown(self, offset: int, name: Name, line: int) -> Iterator[Broken]:
        before = self.at.get(offset)
        if before is not None:
            if before[0] != name:
                detail = f"offset {offset} holds {before[0]!r}, and {name!r}"
                yield Broken("inconsistent-offsets", detail, (before[1],))
        elif offset >= self.floor:
            self.at[offset] = name, line
        if self.known.add(offset) and self.jumps:
            for (low, high), (skipped_by, is_internal) in self.jumps.items():
                if low < offset < high:
                    yield _skipped(low, high, offset, is_internal, (skipped_by,))
                    return

    def _there(self, offset: int, line: int) -> None:
        if offset > self.top:
            self.top = offset
            self.steps.append((line, offset))

    # --- readers ---------------------------------------------------------------------------------

    def moved(
        self, session: int, before: int, offset: int, line: int, *, is_internal: bool
    ) -> Iterator[Broken]:
        """From one record of a session to the next."""
        if offset <= before:
            rule = "int-nonmonotonic-poll" if is_internal else "nonmonotonic-poll"
            yield Broken(rule, f"a poll at offset {offset} followed one at {before}")
        elif offset > before + 1:
            skipped = self.known.first_between(before, offset)
            if skipped is not None:
                shown = self.at.get(skipped)
                lines = () if shown is None else (shown[1],)
                yield _skipped(before, offset, skipped, is_internal, lines)
            elif (before, offset) not in self.jumps:
                self.jumps[before, offset] = line, is_internal

    def ended(self, end: int, call: int, line: int) -> Iterator[Broken]:
        """A reader that began at `call` was told that the log ends there."""
        at = bisect_left(self.steps, (call, -1)) - 1
        top = self.steps[at][1] if at >= 0 else -1
        if top >= end:
            told = f"offset {top} was there before a reader began who was told the end {end}"
            yield Broken("not-linearizable", told, (self.steps[at][0],))
        if end > 0:
            self._there(end - 1, line)

    def came_to_the_end(self, session: int) -> Iterator[Broken]:
        if (reading := self.readings.get(session)) is not None:
            reading.is_whole = True
            yield from self._missing(reading, reading.last)

    def closed(self, session: int) -> Iterator[Broken]:
        """Nothing more comes of a session."""
        self.sessions.pop(session, None)
        reading = self.readings.pop(session, None)
        if reading is not None and reading.is_whole:
            yield from self._missing(reading, None)

    def _missing(self, reading: Reading, before: int | None) -> Iterator[Broken]:
        missing = reading.offsets.starts[0] if reading.offsets else None
        if missing is not None and (before is None or missing < before):
            name, line = self.at.get(missing, (None, -1))
            sent = self.sent.get(name)
            rule = "unseen" if sent is not None and sent.read is None else "vanished"
            lines = (line,) if line >= 0 else ()
            detail = f"offset {missing} was there, and later the whole log read without it"
            yield Broken(rule, detail, lines)
        elif before is None and reading.names:
            name = next(iter(reading.names))
            yield Broken("unseen", f"{name!r} was acknowledged, and later the log read without it")

    # --- what is forgotten -----------------------------------------------------------------------

    def forget(self, values: int, unknown: int, earliest: int) -> None:
        """Keeps so many values, and so many sends without an offset. `earliest` call that is
        open."""
        del self.steps[: max(bisect_left(self.steps, (earliest, -1)) - 1, 0)]
        while len(self.jumps) > _JUMPS:
            del self.jumps[next(iter(self.jumps))]
        while len(self.known) > _INTERVALS:
            self.known.forget_first()
        if len(self.at) > values + values // 4:
            self._forget_lowest(len(self.at) - values)
        if len(self.sent) - len(self.at) > unknown + unknown // 4:
            self._forget_unlocated(len(self.sent) - len(self.at) - unknown)

    def _forget_lowest(self, count: int) -> None:
        for offset in sorted(self.at)[:count]:
            self.floor = offset + 1
            name, _ = self.at.pop(offset)
            sent = self.sent.get(name)
            if sent is not None and sent.kind is not None and offset in (sent.told, sent.read):
                del self.sent[name]

    def _forget_unlocated(self, count: int) -> None:
        ended = [
            (name, each.told is None and each.read is None)
            for name, each in self.sent.items()
            if each.kind is not None and each.told not in self.at and each.read not in self.at
        ]
        for name, is_unlocated in ended[:count]:
            self.lost |= self.sent.pop(name).kind is not Kind.FAIL and is_unlocated

    # --- as a state ------------------------------------------------------------------------------

    def dump(self) -> Value:
        return [
            *(self.top, self.floor, self.lost),
            list(self.at.items()),
            [
                [name, each.line, each.top, each.kind, each.told, each.read, each.read_by]
                for name, each in self.sent.items()
            ],
            self.steps,
            _intervals(self.known),
            list(self.jumps.items()),
            list(self.sends.items()),
            list(self.sessions.items()),
            [
                [
                    session,
                    _intervals(each.offsets),
                    sorted(each.names, key=repr),
                    each.is_whole,
                    each.last,
                ]
                for session, each in self.readings.items()
            ],
        ]

    @classmethod
    def load(cls, told: Any) -> "LogKey":
        top, floor, lost, at, sent, steps, known, jumps, sends, sessions, readings = told
        return cls(
            top=top,
            floor=floor,
            lost=lost,
            at={offset: (name, line) for offset, (name, line) in at},
            sent={
                name: _Sent(line, top, kind and Kind(kind), *rest)
                for name, line, top, kind, *rest in sent
            },
            steps=[(line, top) for line, top in steps],
            known=Intervals(*known),
            jumps={(low, high): (line, bool(of)) for (low, high), (line, of) in jumps},
            sends=dict(sends),
            sessions=dict(sessions),
            readings={
                session: Reading(Intervals(*offsets), set(names), *rest)
                for session, offsets, names, *rest in readings
            },
        )


def _intervals(of: Intervals) -> Value:
    return [of.starts, of.ends]


def _too_late(offset: int, sent: _Sent) -> Broken:
    detail = f"offset {sent.top} was there when the send of offset {offset} began, which was later"
    return Broken("not-linearizable", detail, (sent.line,))


def _elsewhere(name: Name, told: int, sent: _Sent) -> Broken:
    detail = f"{name!r} was acknowledged at offset {told}, and is read at {sent.read}"
    return Broken("acknowledged-elsewhere", detail, (sent.line, sent.read_by))


def _aborted(name: Name, offset: int, sent: _Sent) -> Broken:
    detail = f"{name!r} was read at offset {offset}, and its send failed"
    return Broken("G1a", detail, (sent.line,))


def _skipped(
    low: int, high: int, skipped: int, is_internal: bool, lines: tuple[int, ...]
) -> Broken:
    rule = "int-poll-skip" if is_internal else "poll-skip"
    detail = f"a poll at offset {high} followed one at {low}, skipping {skipped} that others saw"
    return Broken(rule, detail, lines)
