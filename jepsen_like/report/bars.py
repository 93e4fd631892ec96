"""Operations as bars, from call to return, each in the lane of its process; and which are drawn.

Times are microseconds since the start of the run. A clock that did not begin with the run counts
from the first line. Histories of others may have no times: then a line takes a millisecond, and the
page says so.

A process that ends without an answer is thrown away, and leaves its lane to the next one. Lines
that are no operations (what a node was seen to say, a phase) are bars without a length if they are
evidence, and left out if not.

If there are too many operations, half of the page is for windows round the evidence, in which
nothing is left out. The rest is for what is worth a look wherever it is (operations that failed,
that nobody knows the end of, the slowest of each stretch of time) and for every n-th of all others.
Counts and latencies do not depend on it: they are of all operations (`series`).
"""

import heapq
from array import array
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from jepsen_like.checkers.log_columns import CODES, OK
from jepsen_like.checkers.operations import NEVER, Operation
from jepsen_like.checkers.pairing import Column, positions
from jepsen_like.histories.history import Kind, Op

__all__ = ["DRAWN", "NONE", "Bars", "Clock", "Column", "drawn"]

_US_A_LINE = 1000
_NS_A_LINE_AT_LEAST = 1000  # on average: nothing writes faster, so less is no time


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clock:
    at: Column  # of each position in the history; never goes backwards
    is_time: bool  # else it counts lines

    @classmethod
    def of(cls, ops: Sequence[Op]) -> "Clock":
        times = np.fromiter((op.time_ns for op in ops), dtype=np.int64, count=len(ops))
        if len(ops) and times[-1] - times[0] >= _NS_A_LINE_AT_LEAST * (len(ops) - 1):
            begins_with_run = 0 <= times[0] <= times[-1] - times[0]
            start = 0 if begins_with_run else times[0]
            return cls(at=(np.maximum.accumulate(times) - start) // 1000, is_time=True)
        return cls(at=np.arange(len(ops), dtype=np.int64) * _US_A_LINE, is_time=False)

    @property
    def end(self) -> int:
        return int(self.at[-1]) if len(self.at) else 0


NONE = -1  # no completion was ever written


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bars:
    """A row an operation, in order of the calls."""

    invoked: Column  # positions in the history
    completed: Column  # or NONE
    call: Column  # microseconds
    ret: Column  # the end of the history, where there is no completion
    lane: Column
    function: Column
    outcome: Column  # codes as in `log_columns`
    lanes: Sequence[str]
    functions: Sequence[str]

    @classmethod
    def of(
        cls,
        ops: Sequence[Op],
        operations: Sequence[Operation],
        clock: Clock,
        evidence: Collection[int] = (),
    ) -> "Bars":
        """`operations` in order of their calls; `evidence`: indexes of lines."""
        loading = _Loading()
        for each in operations:
            loading.add(each)
        rows = np.array(loading.rows, dtype=np.int64).reshape(-1, 5)
        index = np.fromiter((op.index for op in ops), dtype=np.int64, count=len(ops))
        invoked, completed = rows[:, 0], positions(index, rows[:, 1])
        lone = positions(index, np.array(sorted(evidence), dtype=np.int64))
        lone = lone[(lone >= 0) & ~np.isin(lone, invoked) & ~np.isin(lone, completed)]
        rows = np.concatenate([rows, loading.lone(ops, lone)])
        invoked, completed = np.concatenate([invoked, lone]), np.concatenate([completed, lone])
        order = np.argsort(invoked, kind="stable")
        invoked, completed, rows = invoked[order], completed[order], rows[order]
        number, names = loading.lanes()
        ret = np.where(completed == NONE, clock.end, clock.at[completed])
        return cls(
            invoked=invoked,
            completed=completed,
            call=clock.at[invoked],
            ret=ret,
            lane=number[rows[:, 2]],
            function=rows[:, 3],
            outcome=rows[:, 4],
            lanes=names,
            functions=list(loading.functions),
        )

    def __len__(self) -> int:
        return len(self.invoked)

    def rows_of(self, places: Column) -> Column:
        """Which bars these positions in the history are the begin or the end of."""
        mine = np.isin(self.invoked, places) | np.isin(self.completed, places[places >= 0])
        return np.flatnonzero(mine)


@dataclass(slots=True)
class _Loading:
    rows: "array[int]" = field(default_factory=lambda: array("q"))  # five numbers each
    functions: dict[str, int] = field(default_factory=dict)
    _lane_of: dict[int | str, int] = field(default_factory=dict)
    _free: list[tuple[int, int]] = field(default_factory=list)  # since when, which lane
    _worked: list[list[int | str]] = field(default_factory=list)  # who, in each lane

    def add(self, operation: Operation) -> None:
        completed = NONE if operation.ret_index is None else operation.ret_index
        lane = self._lane(operation.process, operation.call)
        if operation.kind is Kind.INFO and operation.ret_index is not None:
            # Indexes grow with positions, which is all that matters here.
            heapq.heappush(self._free, (operation.ret_index, lane))
            del self._lane_of[operation.process]
        function = self.functions.setdefault(operation.f, len(self.functions))
        outcome = CODES[operation.kind]
        self.rows.extend((operation.call, completed, lane, function, outcome))

    def lone(self, ops: Sequence[Op], places: Column) -> Column:
        rows = []
        for place in places.tolist():
            op = ops[place]
            lane = self._lane(op.process, NEVER)
            function = self.functions.setdefault(op.f, len(self.functions))
            rows.append((place, place, lane, function, OK))
        return np.array(rows, dtype=np.int64).reshape(len(rows), 5)

    def lanes(self) -> tuple[Column, list[str]]:
        """By the first process of each: the new number of each lane, and the names."""
        order = sorted(range(len(self._worked)), key=lambda lane: _rank(self._worked[lane][0]))
        number = np.zeros(len(order), dtype=np.int64)
        number[order] = np.arange(len(order))
        return number, [_named(self._worked[lane]) for lane in order]

    def _lane(self, process: int | str, call: int) -> int:
        lane = self._lane_of.get(process)
        if lane is None:
            if self._free and self._free[0][0] < call and isinstance(process, int):
                _, lane = heapq.heappop(self._free)
            else:
                lane = len(self._worked)
                self._worked.append([])
            self._worked[lane].append(process)
            self._lane_of[process] = lane
        return lane


def _rank(process: int | str) -> tuple[bool, int, str]:
    """Numbers first."""
    if isinstance(process, int):
        return False, process, ""
    return True, 0, process


def _named(worked: Sequence[int | str]) -> str:
    first, last = worked[0], worked[-1]
    return {1: f"{first}", 2: f"{first}, {last}"}.get(len(worked), f"{first} ... {last}")


DRAWN = 20_000
_CONTEXT = 400  # operations before and after a piece of evidence
_WINDOWS = 60  # round the first of them

Span = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drawn:
    rows: Column
    whole: Sequence[Span]  # of time, in microseconds: in these nothing is left out


def drawn(bars: Bars, evidence: Column, end: int, limit: int = DRAWN) -> Drawn:
    """`evidence`: rows, the most telling first. All are drawn, and about `limit` in all."""
    if len(bars) <= limit:
        return Drawn(rows=np.arange(len(bars)), whole=[(0, end)])
    context = min(_CONTEXT, limit // 4 // min(max(len(evidence), 1), _WINDOWS))
    whole = _windows(bars, evidence, context)
    near = np.zeros(len(bars), dtype=bool)
    for begin, until in whole:
        near |= (bars.call <= until) & (bars.ret >= begin)
    near[evidence] = True
    far = np.flatnonzero(~near)
    rest = max(limit - int(near.sum()), limit // 4)
    strange = _every(far[bars.outcome[far] != OK], rest // 3)
    slow = _slowest(bars, far, rest // 3)
    others = _every(far, rest - len(strange) - len(slow))
    rows = np.unique(np.concatenate([np.flatnonzero(near), strange, slow, others]))
    return Drawn(rows=rows, whole=whole)


def _windows(bars: Bars, evidence: Column, context: int) -> list[Span]:
    """From a few calls before each piece of evidence to a few after its return."""
    spans: list[Span] = []
    last = len(bars) - 1
    for row in evidence[:_WINDOWS].tolist():
        ended = int(np.searchsorted(bars.call, bars.ret[row]))
        for at in (row, ended):
            begin, until = max(at - context // 2, 0), min(at + context // 2, last)
            spans.append((int(bars.call[begin]), int(bars.call[until])))
    return _joined(spans)


def _joined(spans: Sequence[Span]) -> list[Span]:
    joined: list[Span] = []
    for begin, until in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], until)
        else:
            joined.append((begin, until))
    return joined


def _every(rows: Column, count: int) -> Column:
    """So many of them, evenly spaced."""
    if len(rows) <= count:
        return rows
    return rows[np.linspace(0, len(rows) - 1, max(count, 1)).astype(np.int64)]


def _slowest(bars: Bars, rows: Column, count: int) -> Column:
    """The one that took longest of each of so many stretches."""
    stretches = np.array_split(rows, max(count, 1))
    latency = bars.ret - bars.call
    found = [int(each[np.argmax(latency[each])]) for each in stretches if len(each)]
    return np.array(found, dtype=np.int64)
