"""Faults as bands of time, other deeds of the nemesis as marks, and the recovery after each heal.

A fault is what the nemesis injects and heals (`jepsen_like.faults.nemesis`), or what Jepsen's
starts and stops (`start-partition`, `stop-partition`). One that is never healed lasts to the end.

The recovery is measured twice: until the first operation was ok, and until a second had half as
many as the median of the seconds without a fault. Other faults may be in force meanwhile.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from jepsen_like.checkers.log_columns import OK
from jepsen_like.histories.history import NEMESIS, Op, Value
from jepsen_like.report.bars import NONE, Bars, Clock, Column

__all__ = ["Band", "bands_and_marks", "recoveries"]

_START, _STOP = "start", "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    begin: int  # microseconds
    end: int | None  # None: it was in force when the history ended
    kind: str
    nodes: str = ""
    role: str = ""
    bit: bool | None = None  # None: nobody said
    evidence: str = ""


Mark = tuple[int, str]  # when, and what


@dataclass(slots=True)
class _Reading:
    ended: list[Band] = field(default_factory=list)
    in_force: dict[str, Band] = field(default_factory=dict)
    marks: list[Mark] = field(default_factory=list)

    @property
    def bands(self) -> list[Band]:
        return sorted([*self.ended, *self.in_force.values()], key=lambda band: band.begin)

    def read(self, op: Op, at: int) -> None:
        match op.f, op.value:
            case "inject", {"fault": number, "kind": kind, "nodes": nodes, **others}:
                role = str(others.get("role", ""))
                named = ", ".join(map(str, nodes))
                band = Band(begin=at, end=None, kind=str(kind), nodes=named, role=role)
                self._begin(f"fault {number}", band)
            case "heal", {"fault": number}:
                self._end(f"fault {number}", at, op.extra)
            case "not-injected", {"fault": number, "kind": kind}:
                self.in_force.pop(f"fault {number}", None)
                why = f": {op.extra['why']}" if "why" in op.extra else ""
                self.marks.append((at, f"{kind} not injected{why}"))
            case "phase", phase:
                self.marks.append((at, str(phase)))
            case _:
                self._foreign(op, at)

    def _foreign(self, op: Op, at: int) -> None:
        word, _, kind = op.f.partition("-")
        if word == _START:
            nodes = "" if op.value is None else f"{op.value}"[:80]
            self._begin(kind, Band(begin=at, end=None, kind=kind or "fault", nodes=nodes))
        elif word == _STOP:
            self._end(kind, at, {})
        else:
            told = "" if op.value is None else f" {op.value}"[:80]
            self.marks.append((at, f"{op.f}{told}"))

    def _begin(self, name: str, band: Band) -> None:
        """Jepsen writes each of its doings twice: what it is about to do, and what it did."""
        self.in_force.setdefault(name, band)

    def _end(self, name: str, at: int, told: Value) -> None:
        if name in self.in_force:
            self.ended.append(
                replace(
                    self.in_force.pop(name),
                    end=at,
                    bit=told.get("bit"),
                    evidence=str(told.get("evidence", "")),
                )
            )


def bands_and_marks(ops: Sequence[Op], clock: Clock) -> tuple[list[Band], list[Mark]]:
    reading = _Reading()
    for place, op in enumerate(ops):
        if op.process == NEMESIS:
            reading.read(op, int(clock.at[place]))
    return reading.bands, reading.marks


_SECOND = 1_000_000
_SHORTEST = 3  # seconds of a run, in which some may be usual
_LEAST = 2  # ok in a second, else half of the median is nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """In microseconds after the heal; None: not before the history ended."""

    first_ok: int | None
    half: int | None


def recoveries(bands: Sequence[Band], bars: Bars, end: int) -> tuple[int, list[Recovery]]:
    """The median of ok operations a second without faults, and of each band what came after."""
    served = np.sort(bars.ret[(bars.outcome == OK) & (bars.completed != NONE)])
    median = _median(bands, served, end)
    return median, [
        Recovery(first_ok=None, half=None)
        if band.end is None
        else Recovery(
            first_ok=_first_ok(served, band.end), half=_half(served, band.end, median, end)
        )
        for band in bands
    ]


def _median(bands: Sequence[Band], served: Column, end: int) -> int:
    """The median of seconds that no fault touches, or of all if there is none. 0: not known."""
    if end < _SHORTEST * _SECOND:
        return 0
    begins = np.arange(0, max(end - _SECOND, 0) + 1, _SECOND)
    counts = _served_in(served, begins)
    quiet = np.ones(len(begins), dtype=bool)
    for band in bands:
        healed = end if band.end is None else band.end
        quiet &= (begins + _SECOND <= band.begin) | (begins >= healed)
    chosen = counts[quiet] if quiet.any() else counts
    return int(np.median(chosen))


def _first_ok(served: Column, healed: int) -> int | None:
    at = int(np.searchsorted(served, healed))
    return int(served[at]) - healed if at < len(served) else None


def _half(served: Column, healed: int, median: int, end: int) -> int | None:
    """A fast second begins at the heal, or where an operation ends that is ok."""
    if median < _LEAST:
        return None
    later = served[np.searchsorted(served, healed) :]
    begins = np.concatenate([np.array([healed]), later])
    begins = begins[begins + _SECOND <= end]
    fast = begins[_served_in(served, begins) * 2 >= median]
    return int(fast[0]) - healed if len(fast) else None


def _served_in(served: Column, begins: Column) -> Column:
    """In the second from each of these on."""
    counts: Column = np.searchsorted(served, begins + _SECOND) - np.searchsorted(served, begins)
    return counts
