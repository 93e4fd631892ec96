"""The frontier: all that may have happened so far, carried through the history in one pass.

At each return of an operation, every configuration must have taken it by then: those that have not
are continued with operations that are open, until they have. If none is left, there is no order.
So it looks at a history once, and says where it breaks; but it pays for every choice there is.

Four prunings keep all answers: a read that is right in the present state is taken at once; of
unknown operations that ask for the same, the earlier one is taken first; one of them is taken only
right before an operation that it makes possible, since it can always be later, or never; and of two
configurations that differ only in the unknown operations they have used up, one that used fewer can
do all that the other can. Source: Lowe 2017; Knossos' linear.

`refuting` lets an unknown operation happen again and again. That is more than is true, so that it
never proves that there is an order; but nothing is used up, there is far less to remember, and it
proves violations soon. An open operation can often be taken at once there. Let unknown operations
lead to a state in which it is possible, and from the state after it back again: then nothing is
lost by taking it now, if an unknown one that asks for the same can stand in for it later. Where
repetition leads to ever new states (appends, sums), it gives up.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from jepsen_like.checkers.models import ILLEGAL, Model
from jepsen_like.checkers.operations import NEVER, Operation
from jepsen_like.checkers.search_depth import TURN, Answer, Search, asked, same_before
from jepsen_like.checkers.verdict import Outcome

__all__ = ["events_of", "frontier", "refuting"]

_UNKNOWN_A_LOOK = 8  # trying so many takes as long as looking at a configuration
_COMPARED_MAX = 4_000  # configurations: to hold more against each other takes longer than a turn

_Config = tuple[Hashable, int, int]  # state, bits of the open ones that are taken, of the unknown


@dataclass(slots=True)
class Frontier:
    model: Model
    unknown: Sequence[Operation]
    same_before: Sequence[int]
    changing: dict[int, Operation] = field(default_factory=dict)  # open, by its bit
    reading: dict[int, Operation] = field(default_factory=dict)
    free_in: dict[Hashable, int] = field(default_factory=dict)  # of a state: what is taken at once
    called: int = 0  # how many of the unknown ones
    configs: list[_Config] = field(default_factory=list)
    looked: int = 0
    yielded: int = 0

    def run(self, events: Sequence[tuple[int, Operation]]) -> Search:
        self.configs = [(self.model.initial, 0, 0)]
        bits: dict[int, int] = {}
        for position, operation in events:
            if operation.ret == NEVER:
                self._called()
            elif position == operation.call:
                bits[id(operation)] = self._opened(operation)
            else:
                yield from self._returned(bits.pop(id(operation)))
                if self._is_given_up():
                    return Answer(outcome=Outcome.UNDECIDED, reason="what is unknown has no end")
                if not self.configs:
                    return Answer(outcome=Outcome.VIOLATED, blocked=operation)
        return Answer(outcome=Outcome.VALID)

    def _called(self) -> None:
        """One more of the unknown ones may be taken."""
        self.called += 1

    def _opened(self, operation: Operation) -> int:
        bit = 1
        while bit in self.changing or bit in self.reading:
            bit <<= 1
        is_read = self.model.is_read(operation)
        (self.reading if is_read else self.changing)[bit] = operation
        if self._may_be_free(operation):
            self.free_in.clear()
            self.configs = [self._with_free(*config) for config in self.configs]
        return bit

    def _closed(self, bit: int) -> None:
        operation = self.reading.pop(bit, None) or self.changing.pop(bit)
        if self._may_be_free(operation):
            self.free_in.clear()

    def _may_be_free(self, operation: Operation) -> bool:
        return self.model.is_read(operation)

    def _with_free(self, state: Hashable, taken: int, used: int) -> _Config:
        """Take all open operations that cost nothing to take now."""
        free = self.free_in.get(state)
        if free is None:
            free = self.free_in[state] = self._free(state)
        return state, taken | free, used

    def _free(self, state: Hashable) -> int:
        """Bits of the reads that are right in this state."""
        step = self.model.step
        return sum(bit for bit, read in self.reading.items() if step(state, read) is not ILLEGAL)

    def _is_given_up(self) -> bool:
        return False

    def _returned(self, bit: int) -> Search:
        """Leaves the configurations that have taken it, and forgets its bit."""
        kept: set[_Config] = set()
        seen, owing = set(self.configs), set[_Config]()
        waiting: list[tuple[_Config, _Owed | None]] = [(config, None) for config in self.configs]
        while waiting and not self._is_given_up():
            config, owed = waiting.pop()
            self.looked += 1
            if owed is None and config[1] & bit:
                kept.add((config[0], config[1] & ~bit, config[2]))
            else:
                for following in self._following(config, owed):
                    if following not in seen:
                        seen.add(following)
                        waiting.append((following, None))
                for following, why in self._prepared(config):
                    if following not in owing:
                        owing.add(following)
                        waiting.append((following, why))
            if self.looked - self.yielded >= TURN:
                self.yielded = self.looked
                yield len(seen) + len(owing) + len(kept)
        self._closed(bit)
        self.configs = _undominated(kept) if self.called else list(kept)
        return Answer(outcome=Outcome.UNDECIDED)  # of this event; nobody asks

    def _following(self, config: _Config, owed: "_Owed | None") -> Iterator[_Config]:
        """Take one more open operation; after an unknown one, only an operation that needs it."""
        state, taken, used = config
        for bit, operation in self.changing.items():
            if not taken & bit:
                after = self.model.step(state, operation)
                if after is not ILLEGAL and (owed is None or self._needs(owed, operation, after)):
                    yield self._with_free(after, taken | bit, used)
        if owed is not None:
            with_free = self._with_free(*config)
            if with_free != config:
                yield with_free

    def _prepared(self, config: _Config) -> "Iterator[tuple[_Config, _Owed]]":
        """Take one more unknown operation."""
        state, taken, used = config
        self.looked += self.called // _UNKNOWN_A_LOOK
        for at in range(self.called):
            before = self.same_before[at]
            if not used >> at & 1 and used & before == before:
                after = self.model.step(state, self.unknown[at])
                if after is not ILLEGAL and after != state:
                    yield (after, taken, self._used_up(used, at)), _Owed(state, self.unknown[at])

    def _used_up(self, used: int, at: int) -> int:
        return used | 1 << at

    def _needs(self, owed: "_Owed", operation: Operation, after: Hashable) -> bool:
        """Would it be impossible, or another thing, without the unknown one or before it?"""
        earlier = self.model.step(owed.before, operation)
        if earlier is ILLEGAL:
            return True
        return after not in (earlier, self.model.step(earlier, owed.unknown))


class _Owed(NamedTuple):
    """An unknown operation was taken, and nothing yet that needs it."""

    before: Hashable
    unknown: Operation


def _undominated(configs: set[_Config]) -> list[_Config]:
    """Without those that have used more unknown operations than another one like them."""
    alike: dict[tuple[Hashable, int], list[int]] = {}
    for state, taken, used in configs:
        alike.setdefault((state, taken), []).append(used)
    return [
        (state, taken, used) for (state, taken), uses in alike.items() for used in _minimal(uses)
    ]


def _minimal(uses: list[int]) -> list[int]:
    if len(uses) > _COMPARED_MAX:
        return uses
    minimal: list[int] = []
    for used in sorted(uses, key=int.bit_count):
        if all(fewer & used != fewer for fewer in minimal):
            minimal.append(used)
    return minimal


def frontier(operations: Sequence[Operation], model: Model) -> Search:
    unknown = [each for each in operations if each.ret == NEVER]
    return Frontier(model, unknown, same_before(unknown)).run(events_of(operations))


def events_of(operations: Sequence[Operation]) -> list[tuple[int, Operation]]:
    events = [(each.call, each) for each in operations]
    events += [(each.ret, each) for each in operations if each.ret != NEVER]
    events.sort(key=lambda event: event[0])
    return events


_FEW = 64  # states, to look for ways back to each of them


def refuting(operations: Sequence[Operation], model: Model) -> Search:
    """Violated, or else undecided."""
    unknown = [each for each in operations if each.ret == NEVER]
    first = [each for each, same in zip(unknown, same_before(unknown), strict=True) if not same]
    kept = {each.index for each in first}
    events = [
        (position, each)
        for position, each in events_of(operations)
        if each.ret != NEVER or each.index in kept
    ]
    search = _Refuting(model, first, [0] * len(first), states_max=len(operations))
    answer = yield from search.run(events)
    if answer.outcome is Outcome.VALID:
        return Answer(outcome=Outcome.UNDECIDED, reason="an order may use some operations twice")
    return answer


@dataclass(slots=True)
class _Refuting(Frontier):
    states_max: int = 0
    reached: dict[Hashable, frozenset[Hashable]] = field(default_factory=dict)
    states: set[Hashable] = field(default_factory=set)
    available: set[str] = field(default_factory=set)  # what unknown ones ask for

    def _called(self) -> None:
        self.available.add(asked(self.unknown[self.called]))
        self.called += 1
        self.reached.clear()
        self.free_in.clear()
        self.configs = [self._with_free(*config) for config in self.configs]

    def _used_up(self, used: int, at: int) -> int:
        return used

    def _is_given_up(self) -> bool:
        return len(self.states) > self.states_max

    def _may_be_free(self, operation: Operation) -> bool:
        return True

    def _free(self, state: Hashable) -> int:
        states = self._reached_from(state)
        if len(states) > _FEW:
            return Frontier._free(self, state)
        replaceable = {**self.reading, **dict(self._replaceable())}
        return sum(
            bit
            for bit, operation in replaceable.items()
            if any(self._leads_back(state, each, operation) for each in states)
        )

    def _replaceable(self) -> Iterator[tuple[int, Operation]]:
        for bit, operation in self.changing.items():
            if asked(operation) in self.available:
                yield bit, operation

    def _leads_back(self, state: Hashable, at: Hashable, operation: Operation) -> bool:
        after = self.model.step(at, operation)
        return after is not ILLEGAL and state in self._reached_from(after)

    def _reached_from(self, state: Hashable) -> frozenset[Hashable]:
        """The states that unknown operations alone lead to; more than a few are not told apart."""
        if state not in self.reached:
            found, waiting = {state}, [state]
            while waiting and len(found) <= _FEW:
                before = waiting.pop()
                for unknown in self.unknown[: self.called]:
                    after = self.model.step(before, unknown)
                    if after is not ILLEGAL and after not in found:
                        found.add(after)
                        waiting.append(after)
            self.states |= found
            self.reached[state] = frozenset(found)
        return self.reached[state]
