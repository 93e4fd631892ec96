"""A frontier where an unknown operation may happen again and again: it proves violations, soon.

That is more than is true, so that it never proves that there is an order. But nothing is used up,
and there is far less to remember. And what is open can often be taken at once: where unknown
operations lead to a state in which it is possible, and from the state after it back again, nothing
is lost by taking it now, if an unknown one that asks for the same can stand in for it later.

Where repetition leads to ever new states (appends, sums), it gives up.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from jepsen_like.checkers.models import ILLEGAL, Model
from jepsen_like.checkers.operations import NEVER, Operation
from jepsen_like.checkers.search_answer import Answer, Search
from jepsen_like.checkers.search_depth import asked, same_before
from jepsen_like.checkers.search_frontier import Frontier, events_of
from jepsen_like.checkers.verdict import Outcome

__all__ = ["refuting"]

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
        """By unknown operations alone; more than a few are not told apart."""
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
