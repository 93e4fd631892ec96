"""Depth first: take an operation that may be next, and go back where none is left.

The search remembers what it has tried, as the set of operations taken and the state reached. Nearly
all of that set is the same everywhere: every operation before the first one that is not taken. So
it is kept as that place and a few bits behind it, and the memory does not grow with the history.

Two prunings keep all answers: a read that is right in the present state is taken at once, since it
changes nothing and only gets later; and of unknown operations that ask for the same, the earlier
one is taken first. Source: Wing and Gong 1993; Lowe 2017.
"""

from collections.abc import Generator, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jepsen_like.checkers.models import ILLEGAL, Model
from jepsen_like.checkers.operations import NEVER, Operation
from jepsen_like.checkers.verdict import Outcome

__all__ = ["TURN", "Answer", "Search", "asked", "depth_first", "same_before"]

TURN = 512  # configurations that one search looks at before another has its turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    outcome: Outcome
    blocked: Operation | None = None  # violated: the one that no order has a place for
    reason: str = ""  # undecided: why
    steps: int = 0


# Yields how many configurations it remembers, once a turn; returns the answer.
Search = Generator[int, None, Answer]


class _Taken(NamedTuple):
    """A configuration: which operations are taken, and the state after them."""

    first: int  # all ended operations before it are taken
    bits: int  # of those from `first` on, that are taken; the lowest is never set
    unknown: int  # bits of the unknown operations that are taken
    state: Hashable


class _Ready(NamedTuple):
    """A configuration with what may come next."""

    taken: _Taken
    able: Sequence[int]  # ended operations called before any that is not taken has returned
    first_ret: int  # of those


class _Depth:
    def __init__(self, operations: Sequence[Operation], model: Model) -> None:
        self._model = model
        self._ended = [each for each in operations if each.ret != NEVER]  # by call
        self._unknown = [each for each in operations if each.ret == NEVER]
        self._same_before = same_before(self._unknown)
        self._calls = [each.call for each in self._ended]
        self._rets = [each.ret for each in self._ended]
        self._is_read = [model.is_read(each) for each in self._ended]
        self._seen: set[_Taken] = set()

    def run(self) -> Search:
        deepest = start = self._with_reads(_Taken(0, 0, 0, self._model.initial))
        stack = [iter([start])]
        steps = 0
        while stack:
            steps += 1
            if steps % TURN == 0:
                yield len(self._seen)
            ready = next(stack[-1], None)
            if ready is None:
                stack.pop()
                continue
            if ready.taken in self._seen:
                continue
            self._seen.add(ready.taken)
            if ready.taken.first == len(self._ended):
                return Answer(outcome=Outcome.VALID)
            if ready.taken.first >= deepest.taken.first:
                deepest = ready
            stack.append(self._next(ready))
        blocked = min(deepest.able, key=self._rets.__getitem__)
        return Answer(outcome=Outcome.VIOLATED, blocked=self._ended[blocked])

    def _next(self, ready: _Ready) -> Iterator[_Ready]:
        """All configurations that may follow, the most urgent first."""
        taken = ready.taken
        step = self._model.step
        for at in sorted(ready.able, key=self._rets.__getitem__):
            state = step(taken.state, self._ended[at])
            if state is not ILLEGAL:
                yield self._with_reads(_take(taken, at, state))
        for at, operation in enumerate(self._unknown):
            if operation.call > ready.first_ret:
                break
            before = self._same_before[at]
            if not taken.unknown >> at & 1 and taken.unknown & before == before:
                state = step(taken.state, operation)
                if state is not ILLEGAL and state != taken.state:
                    unknown = taken.unknown | 1 << at
                    yield self._with_reads(_Taken(taken.first, taken.bits, unknown, state))

    def _with_reads(self, taken: _Taken) -> _Ready:
        """Take all reads that are right in this state."""
        while True:
            able, first_ret = self._able(taken)
            right = [
                at
                for at in able
                if self._is_read[at]
                and self._model.step(taken.state, self._ended[at]) is not ILLEGAL
            ]
            if not right:
                return _Ready(taken, able, first_ret)
            for at in right:
                taken = _take(taken, at, taken.state)

    def _able(self, taken: _Taken) -> tuple[list[int], int]:
        calls, rets = self._calls, self._rets
        able = []
        first_ret, bits = NEVER, taken.bits
        for at in range(taken.first, len(calls)):
            if calls[at] > first_ret:
                break
            if not bits & 1:
                able.append(at)
                if rets[at] < first_ret:
                    first_ret = rets[at]
            bits >>= 1
        return able, first_ret


def _take(taken: _Taken, at: int, state: Hashable) -> _Taken:
    first, bits = taken.first, taken.bits | 1 << (at - taken.first)
    while bits & 1:
        first, bits = first + 1, bits >> 1
    return _Taken(first, bits, taken.unknown, state)


def depth_first(operations: Sequence[Operation], model: Model) -> Search:
    return _Depth(operations, model).run()


def same_before(unknown: Sequence[Operation]) -> list[int]:
    """For each operation: the bit of the last one before it that asks for the same, or 0."""
    last: dict[str, int] = {}
    before = []
    for at, operation in enumerate(unknown):
        before.append(last.get(asked(operation), 0))
        last[asked(operation)] = 1 << at
    return before


def asked(operation: Operation) -> str:
    """A text that is equal for operations that ask for the same."""
    return f"{operation.f} {operation.argument!r}"
