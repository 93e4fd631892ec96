"""The end states of a segment of a register, for each state in which it may begin.

A state is a value, and the changes of unknown end that have been used up, by their calls. Nothing
else reaches across a quiescent moment. So the states after a segment follow from those before it,
and all segments are judged at once: each from every state that it can tell apart. These are the
values that may be seen before the first change has surely taken effect, and any other value, which
nobody there can have seen.

A change of unknown end matters to a segment if what it makes is seen or expected there. One that
does not can take effect later, or never: the value that it makes is seen by nobody here, so that it
was replaced, or remains until the next segment, where it may as well happen first. Where a
compare-and-set failed and does not tell what it saw, all matter.

If no state that follows has used up some change here, then it makes no difference whether it was
used up before. So a segment is first judged as if nothing had been; and then again as if some of
what it used up itself had been, and so on.

Within a segment, blocks of quiescent stretches follow one another. States that have come to the
same ones are continued together: soon all have.
Source: Wing and Gong 1993; Horn and Kroening 2015; facts on checking, a'.
"""

from collections import defaultdict
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jepsen_like.checkers.models import REGISTER
from jepsen_like.checkers.operations import NEVER, NO_LINE, AsWritten, Operation
from jepsen_like.checkers.pairing import Mask
from jepsen_like.checkers.register_accesses import new_value
from jepsen_like.checkers.register_search import Reached, register_continued
from jepsen_like.checkers.search import Budget, check_by_search
from jepsen_like.checkers.search_depth import TURN
from jepsen_like.checkers.verdict import Finding
from jepsen_like.histories.history import Kind
from spark.columns import numbers
from spark.searched_rows import access_of
from spark.searched_segments import quiescent

__all__ = [
    "OTHER",
    "PENDING_MAX",
    "STARTS_MAX",
    "Relation",
    "Segment",
    "State",
    "States",
    "Undecided",
    "undominated",
]

PENDING_MAX = 8  # changes of unknown end that one segment uses and that may be used up before it
STARTS_MAX = 4_000  # states in which one segment begins
OTHER = "any other value"  # no value has this text
_STRETCH_MAX = 500_000  # accesses without a quiescent moment: a worker holds them as operations
_WORK_MAX = 64  # states from which each access is looked at, on average
_BLOCK = 200  # operations that are continued at once, or one quiescent stretch
State = tuple[str, frozenset[int]]
States = frozenset[State]


class After(NamedTuple):
    """States that may follow; none: `blocked` has no place in any order."""

    states: States
    blocked: Operation | None


class Undecided(Exception):
    """Nothing is said of a segment, and why."""


@dataclass(frozen=True, slots=True)
class Relation:
    """Which states may follow each state; none if it cannot be."""

    ends: Sequence[tuple[Sequence[State], States]]

    def after(self, states: States) -> States:
        """All states that may follow from any of these."""
        ends = {start: after for starts, after in self.ends for start in starts}
        values = {value for value, _ in ends}
        found: set[State] = set()
        for value, used in states:
            known, spent = value if value in values else OTHER, frozenset[int]()
            while more := used & _used_by(ends[known, spent]) - spent:
                spent |= more
            for end, using in ends[known, spent]:
                found.add((value if end == OTHER else end, used | using))
        return undominated(found)

    @property
    def anywhere(self) -> States | None:
        """States of which one is there at the end, whatever was before; None: it may be any."""
        found = frozenset(state for _, states in self.ends for state in states)
        return None if any(value == OTHER for value, _ in found) else undominated(found)


def _used_by(states: States) -> frozenset[int]:
    return frozenset[int]().union(*(used for _, used in states))


def undominated(states: Collection[State]) -> States:
    """Without those that have used up more than others of the same value."""
    return frozenset(
        (value, used)
        for value, used in states
        if not any(value == other and less < used for other, less in states)
    )


class Segment:
    """`rows` of accesses, by their calls; `unknown`: changes of unknown end, of which those that
    began before its end may matter."""

    def __init__(self, rows: pa.Table, unknown: Sequence[Operation], budget: Budget) -> None:
        self._rows, self._budget = rows, budget
        self._call, self._ret = numbers(rows, "call"), numbers(rows, "ret")
        end = int(self._ret.max())
        before = [each for each in unknown if each.call < end]
        seen = self._seen(np.full(len(rows), fill_value=True))
        has_untold = bool(self._has("kind", "fail").any())
        self._unknown = mattering(before, seen, has_untold=has_untold)

    def _has(self, column: str, text: str) -> Mask:
        return np.asarray(pc.equal(self._rows.column(column), text))

    def _seen(self, rows: Mask) -> set[str]:
        """What these saw or expected."""
        found: set[str] = set()
        for f, column in (("read", "value"), ("cas", "expected")):
            mine = self._rows.filter(pa.array(rows & self._has("f", f)))
            found |= {*pc.unique(mine.column(column)).to_pylist()}
        return found

    def _values(self) -> set[str]:
        """That may be told apart at the beginning: until the first change that surely happened, and
        changes anything, has returned."""
        changes = ~self._has("f", "read") & ~self._has("kind", "fail")
        is_same = pc.equal(self._rows.column("expected"), self._rows.column("new"))
        changes &= ~np.asarray(pc.fill_null(is_same, fill_value=False))
        first = self._ret[changes].min(initial=NEVER)
        return self._seen(self._call <= first) | _expected_by(self._unknown)

    def starts(self) -> set[State]:
        """One for each value, with nothing used up. Raises `Undecided`."""
        values = self._values()
        if len(values) >= STARTS_MAX:
            raise Undecided(
                f"{len(values):,} values may have been there when the same operations began"
            )
        return {(value, frozenset()) for value in (*values, OTHER)}

    def relation(self) -> Relation:
        """Raises `Undecided`."""
        ends: list[tuple[list[State], States]] = []
        waiting, known = self.starts(), set[State]()
        while waiting:
            known |= waiting
            if len(known) > STARTS_MAX:
                raise Undecided(f"more than {STARTS_MAX:,} states must be told apart")
            followed = self._follow(waiting)
            ends += followed
            waiting = {each for more in followed for each in self._spent(*more)} - known
        return Relation(ends)

    def _follow(self, starts: Collection[State]) -> list[tuple[list[State], States]]:
        classes = {frozenset([start]): [start] for start in starts}
        work = 0
        for block in self._blocks():
            following: dict[States, list[State]] = {}
            for states, mine in classes.items():
                following.setdefault(block.after(states).states, []).extend(mine)
            classes = following
            work += block.work
            if work > _WORK_MAX * max(len(self._rows), _BLOCK):
                raise Undecided("too many states must be told apart for too long")
        return [(mine, states) for states, mine in classes.items()]

    def _spent(self, starts: Sequence[State], ends: States) -> Iterator[State]:
        """The same with what was used up here and may have been before, which makes a difference.
        What nothing that follows has used makes none."""
        for value, spent in starts:
            more = [each for each in _used_by(ends) - spent if each < self._call[0]]
            if len(more) > PENDING_MAX:
                least = (
                    f"{len(more)} changes of unknown end may have taken effect for the same reads"
                )
                raise Undecided(f"{least}, beyond the {PENDING_MAX} of pieces")
            for count in range(1, len(more) + 1):
                for some in combinations(more, count):
                    yield value, spent | frozenset(some)

    def _blocks(self) -> Iterator["_Block"]:
        cuts = [*quiescent(self._call, self._ret).tolist(), len(self._rows)]
        if (longest := int(np.diff(cuts).max())) > _STRETCH_MAX:
            raise Undecided(f"{longest:,} accesses follow one another, and none finds nothing open")
        begin = 0
        for cut in cuts:
            if cut - begin >= _BLOCK or cut == len(self._rows):
                yield self._block(begin, cut)
                begin = cut

    def _block(self, begin: int, end: int) -> "_Block":
        mine = [access_of(row) for row in self._rows.slice(begin, end - begin).to_pylist()]
        last = max(each.ret for each in mine)
        seen = {repr(each.result) for each in mine if each.f == "read"}
        seen |= _expected_by(mine)
        has_untold = any(each.kind is Kind.FAIL for each in mine)
        before = [each for each in self._unknown if each.call < last]
        return _Block(mine, mattering(before, seen, has_untold=has_untold), self._budget)

    def witness(self, name: str, states: States | None) -> Finding:
        """What shows that none of these states can have been there before; None: whatever was.

        It is known already, so that what takes too long is not told in full.
        """
        now = frozenset(self.starts()) if states is None else states
        try:
            for block in self._blocks():
                after = block.after(now)
                if after.blocked is not None:
                    return _finding(name, now, block, after.blocked)
                now = after.states
        except Undecided:
            pass
        detail = f"no order of {len(self._rows):,} operations fits, of which this is the first"
        first = access_of(self._rows.slice(0, 1).to_pylist()[0])
        return Finding.of("not-linearizable", name, detail, first)


def _expected_by(operations: Iterable[Operation]) -> set[str]:
    return {repr(each.argument[0]) for each in operations if each.f == "cas"}


def mattering(
    unknown: Sequence[Operation], seen: AbstractSet[str], *, has_untold: bool
) -> list[Operation]:
    """Those that matter where these values were seen or expected."""
    if has_untold:
        return list(unknown)
    left: dict[str, list[Operation]] = defaultdict(list)  # by what they make
    for each in unknown:
        left[repr(new_value(each))].append(each)
    waiting, found = [*seen], list[Operation]()
    while waiting:
        makers = left.pop(waiting.pop(), [])
        found += makers
        waiting += _expected_by(makers)
    return found


@dataclass(slots=True)
class _Block:
    """Quiescent stretches that follow one another. What is found from one state is kept."""

    accesses: Sequence[Operation]
    unknown: Sequence[Operation]  # that matter here
    budget: Budget
    found: dict[State, Reached] = field(default_factory=dict)

    @property
    def work(self) -> int:
        return len(self.found) * len(self.accesses)

    def after(self, states: States) -> After:
        """All states after the block. Raises `Undecided`."""
        matters = {each.call for each in self.unknown}
        found: set[State] = set()
        blocked = None
        for value, used in states:
            reached = self._from((value, used & matters))
            found |= {(repr(end), used | using) for end, using in reached.states}
            blocked = reached.blocked or blocked
        return After(undominated(found), None if found else blocked)

    def _from(self, state: State) -> Reached:
        if state not in self.found:
            value, used = state
            search = register_continued(self.left(used), [AsWritten(value)])
            self.found[state] = _within(search, self.budget)
        return self.found[state]

    def left(self, used: AbstractSet[int]) -> list[Operation]:
        """What has been used up does not happen again. In the order of their calls."""
        unknown = (each for each in self.unknown if each.call not in used)
        return sorted([*self.accesses, *unknown], key=lambda each: each.call)


def _within(search: Generator[int, None, Reached], budget: Budget) -> Reached:
    steps = 0
    while True:
        try:
            kept = next(search)
        except StopIteration as end:
            reached: Reached = end.value
            return reached
        steps += TURN
        if steps > budget.steps or kept > budget.kept:
            raise Undecided(f"a stretch without a quiescent moment: {steps:,} configurations")


def _finding(name: str, states: States, block: _Block, blocked: Operation) -> Finding:
    since = min(each.index for each in block.accesses)
    (value, used), *others = states
    if not others:
        left = block.left(used)
        begun = [_begins_with(value, before=left[0].call), *left]
        verdict = check_by_search(name, begun, REGISTER, block.budget)
        if verdict.findings:
            found = verdict.findings[0]
            return replace(found, detail=f"from line {since} on, {found.detail}")
    values = " or ".join(sorted({value for value, _ in states}))
    what = blocked.argument if blocked.result is None else blocked.result
    detail = (
        f"no order has a place for {blocked.f} {what!r:.60} ({blocked.index}), "
        f"whatever else happened since line {since}, when there was {values:.200}"
    )
    return Finding.of("not-linearizable", name, detail, blocked)


def _begins_with(value: str, *, before: int) -> Operation:
    return Operation(
        process="initial",
        f="write",
        kind=Kind.OK,
        argument=AsWritten(value),
        call=before - 2,
        ret=before - 1,
        index=NO_LINE,
    )
