"""Faults as bands of time, and whatever else the nemesis did as marks.

A fault is what the nemesis injects and heals (`jepsen_like.faults.nemesis`), or what
Jepsen's starts and stops (`start-partition`, `stop-partition`). One that is never healed lasts to
the end.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from jepsen_like.histories.history import NEMESIS, Op, Value
from jepsen_like.report.clock import Clock

__all__ = ["Band", "Mark", "bands_and_marks"]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    at: int
    text: str


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
                self.marks.append(Mark(at=at, text=f"{kind} not injected{why}"))
            case "phase", phase:
                self.marks.append(Mark(at=at, text=str(phase)))
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
            self.marks.append(Mark(at=at, text=f"{op.f}{told}"))

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
    for place, op in _nemesis(ops):
        reading.read(op, int(clock.at[place]))
    return reading.bands, reading.marks


def _nemesis(ops: Sequence[Op]) -> Iterator[tuple[int, Op]]:
    return ((place, op) for place, op in enumerate(ops) if op.process == NEMESIS)
