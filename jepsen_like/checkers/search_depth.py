"""Depth first: take an operation that may be next, and go back where none is left.

What has been tried is remembered, as the set of operations taken and the state reached. Nearly all
of that set is the same everywhere: every operation before the first one that is not taken. So it
is kept as that place and a few bits behind it, and the memory does not grow with the history.

Two prunings keep all answers: a read that is right in the present state is taken at once, since it
changes nothing and only gets later; and of unknown operations that ask for the same, the earlier
one is taken first. Source: Wing and Gong 1993; Lowe 2017.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from jepsen_like.checkers.models import ILLEGAL, Model
from jepsen_like.checkers.operations import NEVER, Operation
from jepsen_like.checkers.search_answer import TURN, Answer, Search
from jepsen_like.verdict import Outcome

__all__ = ["depth_first"]


class _Taken(NamedTuple):
    """A configuration: which operations are taken, and the state after them."""

    first: int  # all ended operations before it are taken
    bits: int  # of those from `first` on, that are taken; the lowest is never set
    unknown: int  # bits of the unknown operations that are taken
    state: Hashable


@dataclass(slots=True)
class _Depth:
    model: Model
    ended: Sequence[Operation]  # by call
    unknown: Sequence[Operation]  # by call
    same_before: Sequence[int]  # of each unknown one: bit of the one before that asks for the same
    seen: set[_Taken] = field(default_factory=set)
    deepest: _Taken | None = None

    def run(self) -> Search:
        start = self._with_reads(_Taken(0, 0, 0, self.model.initial))
        stack = [iter([start])]
        steps = 0
        while stack:
            taken = next(stack[-1], None)
            if taken is None:
                stack.pop()
                continue
            if taken in self.seen:
                continue
            self.seen.add(taken)
            if taken.first == len(self.ended):
                return Answer(outcome=Outcome.VALID)
            if self.deepest is None or taken.first >= self.deepest.first:
                self.deepest = taken
            stack.append(self._next(taken))
            steps += 1
            if steps % TURN == 0:
                yield len(self.seen)
        return Answer(outcome=Outcome.VIOLATED, blocked=self._blocked())

    def _next(self, taken: _Taken) -> Iterator[_Taken]:
        """All that may follow, the most urgent first."""
        able, first_ret = self._able(taken)
        for at in sorted(able, key=lambda each: self.ended[each].ret):
            state = self.model.step(taken.state, self.ended[at])
            if state is not ILLEGAL:
                yield self._with_reads(_take(taken, at, state))
        for at, operation in enumerate(self.unknown):
            if operation.call > first_ret:
                break
            is_free = not taken.unknown >> at & 1
            before = self.same_before[at]
            if is_free and taken.unknown & before == before:
                state = self.model.step(taken.state, operation)
                if state is not ILLEGAL and state != taken.state:
                    both = taken.unknown | 1 << at
                    yield self._with_reads(_Taken(taken.first, taken.bits, both, state))

    def _able(self, taken: _Taken) -> tuple[list[int], int]:
        """Ended operations that may be next: called before any that is not taken has returned."""
        first_ret = NEVER
        able = []
        bits = taken.bits
        for at in range(taken.first, len(self.ended)):
            operation = self.ended[at]
            if operation.call > first_ret:
                break
            if not bits & 1:
                able.append(at)
                first_ret = min(first_ret, operation.ret)
            bits >>= 1
        return able, first_ret

    def _with_reads(self, taken: _Taken) -> _Taken:
        """And all reads that are right now."""
        while True:
            able, _ = self._able(taken)
            right = [
                at
                for at in able
                if self.model.is_read(self.ended[at])
                and self.model.step(taken.state, self.ended[at]) is not ILLEGAL
            ]
            if not right:
                return taken
            for at in right:
                taken = _take(taken, at, taken.state)

    def _blocked(self) -> Operation | None:
        if self.deepest is None:
            return None
        able, _ = self._able(self.deepest)
        return min((self.ended[at] for at in able), key=lambda each: each.ret)


def _take(taken: _Taken, at: int, state: Hashable) -> _Taken:
    first, bits = taken.first, taken.bits | 1 << (at - taken.first)
    while bits & 1:
        first, bits = first + 1, bits >> 1
    return _Taken(first, bits, taken.unknown, state)


def depth_first(operations: Sequence[Operation], model: Model) -> Search:
    ended = [each for each in operations if each.ret != NEVER]
    unknown = [each for each in operations if each.ret == NEVER]
    return _Depth(model, ended, unknown, same_before(unknown)).run()


def same_before(unknown: Sequence[Operation]) -> list[int]:
    """Of each the bit of the last one before it that asks for the same, or 0."""
    last: dict[str, int] = {}
    before = []
    for at, operation in enumerate(unknown):
        asked = f"{operation.f} {operation.argument!r}"
        before.append(last.get(asked, 0))
        last[asked] = 1 << at
    return before
