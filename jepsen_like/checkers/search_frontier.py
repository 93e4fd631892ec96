"""The frontier: all that may have happened so far, carried through the history in one pass.

At each return of an operation, every configuration must have taken it by then: those that have not
are continued with operations that are open, until they have. If none is left, there is no order.
So it looks at a history once, and says where it breaks; but it pays for every choice there is.

Three prunings keep all answers: a read that is right in the present state is taken at once; of
unknown operations that ask for the same, the earlier one is taken first; and of two configurations
that differ only in the unknown operations they have used up, one that used fewer can do all that
the other can. Source: Lowe 2017; Knossos' linear.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from jepsen_like.checkers.models import ILLEGAL, Model
from jepsen_like.checkers.operations import NEVER, Operation
from jepsen_like.checkers.search_answer import TURN, Answer, Search
from jepsen_like.checkers.search_depth import same_before
from jepsen_like.verdict import Outcome

__all__ = ["frontier"]

_Config = tuple[Hashable, int, int]  # state, bits of the open ones that are taken, of the unknown


@dataclass(slots=True)
class _Frontier:
    model: Model
    unknown: Sequence[Operation]
    same_before: Sequence[int]
    changing: dict[int, Operation] = field(default_factory=dict)  # open, by its bit
    reading: dict[int, Operation] = field(default_factory=dict)
    right: dict[Hashable, int] = field(default_factory=dict)  # of a state: the reads right in it
    called: int = 0  # how many of the unknown ones
    configs: list[_Config] = field(default_factory=list)
    looked: int = 0
    yielded: int = 0

    def run(self, events: Sequence[tuple[int, Operation]]) -> Search:
        self.configs = [(self.model.initial, 0, 0)]
        bits: dict[int, int] = {}
        for position, operation in events:
            if operation.ret == NEVER:
                self.called += 1
            elif position == operation.call:
                bits[operation.call] = self._opened(operation)
            else:
                yield from self._returned(bits.pop(operation.call))
                if not self.configs:
                    return Answer(outcome=Outcome.VIOLATED, blocked=operation)
        return Answer(outcome=Outcome.VALID)

    def _opened(self, operation: Operation) -> int:
        bit = 1
        while bit in self.changing or bit in self.reading:
            bit <<= 1
        if self.model.is_read(operation):
            self.reading[bit] = operation
            self.right.clear()
            self.configs = [self._with_reads(*config) for config in self.configs]
        else:
            self.changing[bit] = operation
        return bit

    def _closed(self, bit: int) -> None:
        if self.reading.pop(bit, None) is None:
            del self.changing[bit]
        else:
            self.right.clear()

    def _with_reads(self, state: Hashable, taken: int, used: int) -> _Config:
        """And all open reads that are right now."""
        right = self.right.get(state)
        if right is None:
            right = sum(
                bit
                for bit, read in self.reading.items()
                if self.model.step(state, read) is not ILLEGAL
            )
            self.right[state] = right
        return state, taken | right, used

    def _returned(self, bit: int) -> Search:
        """Leaves the configurations that have taken it, and forgets its bit."""
        kept: set[_Config] = set()
        seen = set(self.configs)
        waiting = list(self.configs)
        while waiting:
            config = waiting.pop()
            self.looked += 1
            if config[1] & bit:
                kept.add((config[0], config[1] & ~bit, config[2]))
            else:
                for following in self._following(config):
                    if following not in seen:
                        seen.add(following)
                        waiting.append(following)
            if self.looked - self.yielded >= TURN:
                self.yielded = self.looked
                yield len(seen) + len(kept)
        self._closed(bit)
        self.configs = _undominated(kept) if self.called else list(kept)
        return Answer(outcome=Outcome.UNDECIDED)  # of this event; nobody asks

    def _following(self, config: _Config) -> Iterator[_Config]:
        state, taken, used = config
        for bit, operation in self.changing.items():
            if not taken & bit:
                after = self.model.step(state, operation)
                if after is not ILLEGAL:
                    yield self._with_reads(after, taken | bit, used)
        for at in range(self.called):
            before = self.same_before[at]
            if not used >> at & 1 and used & before == before:
                after = self.model.step(state, self.unknown[at])
                if after is not ILLEGAL and after != state:
                    yield self._with_reads(after, taken, used | 1 << at)


def _undominated(configs: set[_Config]) -> list[_Config]:
    """Without those that have used more unknown operations than another one like them."""
    alike: dict[tuple[Hashable, int], list[int]] = {}
    for state, taken, used in configs:
        alike.setdefault((state, taken), []).append(used)
    return [
        (state, taken, used) for (state, taken), uses in alike.items() for used in _minimal(uses)
    ]


def _minimal(uses: list[int]) -> list[int]:
    minimal: list[int] = []
    for used in sorted(uses, key=int.bit_count):
        if all(fewer & used != fewer for fewer in minimal):
            minimal.append(used)
    return minimal


def frontier(operations: Sequence[Operation], model: Model) -> Search:
    unknown = [each for each in operations if each.ret == NEVER]
    events = [(each.call, each) for each in operations]
    events += [(each.ret, each) for each in operations if each.ret != NEVER]
    events.sort(key=lambda event: event[0])
    return _Frontier(model, unknown, same_before(unknown)).run(events)
