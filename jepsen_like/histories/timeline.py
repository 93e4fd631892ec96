"""A history for people: time runs down, each process has a lane, each fault in force a band.

      t ms  faults  lanes
     120.0  A       [ | .   5 send chaos-1 17
     121.4  AB      | ] .   6 poll -> ok chaos-1: 12=17

    [ it begins   | it is under way   ] ok   x fail   ? nobody knows   . nothing

A process that is thrown away leaves its lane to the next one. What stands behind the lanes is the
operation's index in the history, what it asked for, and how it ended. Evidence is marked with `*`.

Pure: ops in, lines out. Of histories from anywhere: a fault is whatever the nemesis injects and
heals (`jepsen_like.faults.nemesis`).
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from jepsen_like.histories.history import NEMESIS, Kind, Op, Value

__all__ = ["around", "described", "timeline"]

_MARKS = {Kind.INVOKE: "[", Kind.OK: "]", Kind.FAIL: "x", Kind.INFO: "?"}
_BANDS = "ABCDEFGHJKLMNPQRSTUVWXYZ"
_RECORDS_SHOWN = 6  # of a poll, for each key
_TEXT_MAX = 140


@dataclass(slots=True)
class _Lanes:
    """The process that works in each lane, or None while the lane is free."""

    lanes: list[int | str | None] = field(default_factory=list)
    open: set[int | str] = field(default_factory=set)

    def of(self, process: int | str) -> int:
        if process in self.lanes:
            return self.lanes.index(process)
        if None in self.lanes:
            lane = self.lanes.index(None)
            self.lanes[lane] = process
        else:
            lane = len(self.lanes)
            self.lanes.append(process)
        return lane

    def take(self, op: Op) -> list[str]:
        """The marks of all lanes as the op happens."""
        lane = self.of(op.process)
        marks = ["|" if process in self.open else "." for process in self.lanes]
        marks[lane] = _MARKS[op.kind]
        if op.kind is Kind.INVOKE:
            self.open.add(op.process)
        else:
            self.open.discard(op.process)
        if op.kind is Kind.INFO:
            self.lanes[lane] = None
        return marks


@dataclass(slots=True)
class _Bands:
    """The faults in force, by number, each in a column of its own."""

    in_force: dict[Value, str] = field(default_factory=dict)
    width: int = 0

    def inject(self, number: Value) -> str:
        used = set(self.in_force.values())
        letter = next((each for each in _BANDS if each not in used), "#")
        self.in_force[number] = letter
        self.width = max(self.width, len(self.in_force))
        return letter

    def heal(self, number: Value) -> str:
        return self.in_force.pop(number, "#")

    def __str__(self) -> str:
        return "".join(sorted(self.in_force.values()))


def timeline(ops: Sequence[Op], *, evidence: Collection[int] = ()) -> Iterator[str]:
    """A line for each op, after a heading. `evidence`: indexes of ops to be marked."""
    lanes, bands = _Lanes(), _Bands()
    told = [(op, *_told(op, lanes, bands), str(bands)) for op in ops if op.f != "observe"]
    width = max(6, bands.width)
    yield f"{'t ms':>10}  {'faults':<{width}}  lanes"
    for op, marks, text, in_force in told:
        is_evidence = "*" if op.index in evidence else " "
        yield (
            f"{op.time_ns / 1e6:10.1f} {is_evidence}{in_force:<{width}}"
            f"  {' '.join(marks):<{2 * len(lanes.lanes)}} {op.index:5} {text}"
        ).rstrip()


def _told(op: Op, lanes: _Lanes, bands: _Bands) -> tuple[list[str], str]:
    if op.process != NEMESIS:
        return lanes.take(op), f"{op.process} {op.f} {described(op)}"[:_TEXT_MAX]
    marks = ["|" if process in lanes.open else "." for process in lanes.lanes]
    return marks, _nemesis(op, bands)[:_TEXT_MAX]


def _nemesis(op: Op, bands: _Bands) -> str:
    match op.f, op.value:
        case "inject", {"fault": number, "kind": kind, "nodes": nodes}:
            return f"=== {bands.inject(number)}: {kind} {_numbers(nodes)} begins"
        case "heal", {"fault": number, "kind": kind, "nodes": nodes}:
            evidence = op.extra.get("evidence", "")
            return f"=== {bands.heal(number)}: {kind} {_numbers(nodes)} is healed: {evidence}"
        case "phase", phase:
            return f"=== {phase}"
        case _:
            return f"=== {op.f} {op.value} {op.extra.get('why', '')}"


def _numbers(nodes: Iterable[Value]) -> str:
    return ",".join(map(str, nodes))


def described(op: Op) -> str:
    """The arguments of an invocation, or the result of a completion."""
    text = ", ".join(op.value) if op.f == "assign" else _value(op.value)
    match op.kind:
        case Kind.INVOKE:
            return text
        case Kind.OK:
            seen = " caught up" if op.extra.get("caught_up") else ""
            return f"-> ok {text}{seen}"
        case Kind.FAIL | Kind.INFO:
            seen = f"saw {op.extra['seen']}" if "seen" in op.extra else ""
            return " ".join(filter(None, ("->", op.kind.value, op.error, seen)))


def _value(value: Value) -> str:
    match value:
        case [["send", key, [offset, sent]]]:
            return f"{key} {offset}={sent}"
        case [["send", key, sent]]:
            return f"{key} {sent}"
        case [["poll"]]:
            return ""
        case [["poll", found]]:
            return "; ".join(f"{key}: {_records(records)}" for key, records in found.items()) or "-"
        case [str(key), [old, new]]:
            return f"{key} {old} -> {new}"
        case [str(key), held]:
            return f"{key} {held}"
        case None:
            return ""
        case _:
            return str(value)


def _records(records: Sequence[Sequence[Value]]) -> str:
    shown = " ".join(f"{offset}={value}" for offset, value in records[:_RECORDS_SHOWN])
    more = len(records) - _RECORDS_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def around(ops: Sequence[Op], evidence: Collection[int], *, context: int) -> Sequence[Op]:
    """The evidence, all that the nemesis did, and so many ops before and after each of those."""
    places = [place for place, op in enumerate(ops) if op.index in evidence]
    kept = {
        near
        for place in places
        for near in range(max(0, place - context), min(len(ops), place + context + 1))
    }
    return [op for place, op in enumerate(ops) if place in kept or op.process == NEMESIS]
