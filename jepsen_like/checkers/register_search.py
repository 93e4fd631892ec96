"""The frontier of a register: as in `search_frontier`, but what is open is told apart far less.

The general search takes each open write at every moment at which it may have happened. Of a
register more is known, and no answer is lost by any of it:

- Operations that ask for the same are interchangeable. The one that must return first goes first:
  if an order has a later one in its place, the two can change places.
- A write that is open when another one takes effect may have happened right before it, and nobody
  saw it; so may a write of the value that is there already. It is then *covered*: it need not
  happen any more, and it still may until it returns. So a write is taken only where its value
  matters to a read or a compare-and-set right behind it, or where it returns, or another one that
  must be covered.
- Of two configurations with one value, one does for both if it has taken fewer writes, has seen as
  many reads, and leaves no write uncovered that the other has covered or taken.

Where many reads are open too, there still are thousands of ways to have used up the writes. So two
searches look at a few configurations only. One leaves out the others, those that have used up the
most: what it finds is an order. The other joins some into one that has used up what all of them
have, and can do whatever any of them can: if even these come to an end, there is no order. They
take turns with ever more configurations, until one of them decides, or nothing is left out.
"""

from bisect import insort
from collections.abc import Generator, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import count
from typing import Any, NamedTuple

from jepsen_like.checkers.operations import NEVER, Operation
from jepsen_like.checkers.search_depth import TURN, Answer, Search
from jepsen_like.checkers.search_frontier import events_of
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories.history import Kind

__all__ = ["Reached", "register_continued", "register_frontier"]

_NARROW = 8  # configurations with one value, at first
_ANY_WIDTH = 1 << 60  # nothing is left out
_COMPARED_MAX = 2_000  # configurations with one value: to compare more takes longer than a turn


class _Config(NamedTuple):
    """Bits of open operations. A write that is covered may still be taken."""

    value: Hashable
    taken: int
    covered: int

    def without(self, bit: int) -> "_Config":
        return _Config(self.value, self.taken & ~bit, self.covered & ~bit)


class Reached(NamedTuple):
    """Values that may be there once all has returned, each with the calls of the unknown
    operations that led to it; none: `blocked` has no place in any order."""

    states: frozenset[tuple[Hashable, frozenset[int]]]
    blocked: Operation | None


class _Cost(NamedTuple):
    """Bits of what a configuration has used up, or has not seen; and of writes it must yet do."""

    spent: int
    uncovered: int
    of: _Config

    def size(self) -> int:
        return (self.spent | self.uncovered).bit_count()


@dataclass(slots=True)
class _Register:
    width: int  # configurations with one value, at most
    joins: bool
    is_narrowed: bool = False
    reads: dict[int, Operation] = field(default_factory=dict)  # open; they change nothing
    alike: dict[tuple[str, Any], list[tuple[int, int]]] = field(default_factory=dict)
    writes: int = 0  # bits of open ones that will return
    writes_of: dict[Hashable, int] = field(default_factory=dict)
    unknown: dict[int, int] = field(default_factory=dict)  # calls of those that never return
    must: int = 0  # bits of open compare-and-sets that will return
    right_at: dict[Hashable, int] = field(default_factory=dict)  # reads, by values
    configs: list[_Config] = field(default_factory=lambda: [_Config(None, 0, 0)])
    looked: int = 0
    yielded: int = 0

    def run(self, operations: Sequence[Operation]) -> Search:
        bits: dict[int, int] = {}
        free: list[int] = []
        fresh = 1
        for position, operation in events_of(operations):
            if position == operation.call:
                if not free:
                    free.append(fresh)
                    fresh <<= 1
                bit = free.pop()
                bits[id(operation)] = bit
                self._opened(operation, bit)
            else:
                bit = bits.pop(id(operation))
                yield from self._returned(bit)
                self._closed(operation, bit)
                free.append(bit)
                if not self.configs:
                    return Answer(outcome=Outcome.VIOLATED, blocked=operation)
        return Answer(outcome=Outcome.VALID)

    def _opened(self, operation: Operation, bit: int) -> None:
        if _changes_nothing(operation):
            self.reads[bit] = operation
            self.right_at.clear()
            self.configs = [
                each._replace(taken=each.taken | self._right(each.value)) for each in self.configs
            ]
            return
        insort(self.alike.setdefault(_asked(operation), []), (operation.ret, bit))
        if operation.ret == NEVER:
            self.unknown[bit] = operation.call
            return
        if operation.f == "cas":
            self.must |= bit
            return
        value = operation.argument
        self.writes |= bit
        self.writes_of[value] = self.writes_of.get(value, 0) | bit
        self.configs = [
            each._replace(covered=each.covered | bit) if each.value == value else each
            for each in self.configs
        ]

    def _closed(self, operation: Operation, bit: int) -> None:
        if self.reads.pop(bit, None) is not None:
            self.right_at.clear()
            return
        self.alike[_asked(operation)].remove((operation.ret, bit))
        self.must &= ~bit
        if operation.f == "write":
            self.writes &= ~bit
            self.writes_of[operation.argument] &= ~bit

    def _right(self, value: Hashable) -> int:
        """Bits of the open reads that may see this value."""
        if value not in self.right_at:
            right = (bit for bit, read in self.reads.items() if _sees(read, value))
            self.right_at[value] = sum(right)
        return self.right_at[value]

    def _returned(self, bit: int) -> Search:
        """Leaves the configurations that have taken it, or covered; without its bit.

        What is covered can be taken for the last time now.
        """
        kept: set[_Config] = set()
        waiting = [(config, False) for config in self.configs]
        seen = set(waiting)
        kept.update(each.without(bit) for each in self.configs if each.covered & bit)
        while waiting:
            config, owes = waiting.pop()
            self.looked += 1
            if config.taken & bit:
                kept.add(config.without(bit))
            else:
                for following in self._following(config, owes=owes):
                    if following[0].covered & bit and not config.covered & bit:
                        kept.add(following[0].without(bit))
                    if following not in seen:
                        seen.add(following)
                        waiting.append(following)
            if self.looked - self.yielded >= TURN:
                self.yielded = self.looked
                yield len(seen) + len(kept)
        self.configs = self._undominated(kept)
        return Answer(outcome=Outcome.UNDECIDED)  # of this event; nobody asks

    def _following(self, config: _Config, *, owes: bool) -> Iterator[tuple[_Config, bool]]:
        """One more change; whether its value has mattered to nobody yet, as in `config` if `owes`.

        Then only a compare-and-set may follow: another write would have covered it. To write what
        is there already does no more than to cover others.
        """
        is_all_covered = not self.writes & ~(config.taken | config.covered)
        for (f, argument), line in self.alike.items():
            bit = next((bit for _, bit in line if not config.taken & bit), 0)
            if not bit:
                continue
            if f == "write":
                if owes or (is_all_covered and argument == config.value):
                    continue
                value, covered = argument, self.writes
            elif argument[0] == config.value:
                value = argument[1]
                covered = config.covered | self.writes_of.get(value, 0)
            else:
                continue
            taken = config.taken | bit
            right = self._right(value)
            matters = bool(right & ~taken or bit & self.must)
            taken |= right
            yield _Config(value, taken, covered & ~taken), not matters

    def _undominated(self, kept: set[_Config]) -> list[_Config]:
        reads = sum(self.reads)
        alike: dict[tuple[Hashable, int], list[_Cost]] = {}
        for each in kept:
            spent = each.taken ^ reads
            cost = _Cost(spent, self.writes & ~(each.taken | each.covered), each)
            alike.setdefault((each.value, each.taken & self.must), []).append(cost)
        best = [_best(costs) for costs in alike.values()]
        return [cost.of for group in best for cost in self._narrowed(group)]

    def _narrowed(self, costs: list[_Cost]) -> list[_Cost]:
        """No more than there may be."""
        if len(costs) <= self.width:
            return costs
        self.is_narrowed = True
        if not self.joins:
            return costs[: self.width]
        joined = [reduce(self._joined, costs[at :: self.width]) for at in range(self.width)]
        return _best(joined)

    def _joined(self, one: _Cost, other: _Cost) -> _Cost:
        """What can do all that either of them can, and perhaps more."""
        spent, uncovered = one.spent & other.spent, one.uncovered & other.uncovered
        taken = spent ^ sum(self.reads)
        covered = self.writes & ~(taken | uncovered)
        return _Cost(spent, uncovered, _Config(one.of.value, taken, covered))


def _best(costs: list[_Cost]) -> list[_Cost]:
    cheapest = sorted(costs, key=_Cost.size)
    if len(costs) > _COMPARED_MAX:
        return cheapest
    best: list[_Cost] = []
    for cost in cheapest:
        if all(less.spent & ~cost.spent or less.uncovered & ~cost.uncovered for less in best):
            best.append(cost)
    return best


def _changes_nothing(operation: Operation) -> bool:
    if operation.f != "cas":
        return operation.f == "read"
    expected, new = operation.argument
    return operation.kind is Kind.FAIL or bool(expected == new)


def _sees(read: Operation, value: Hashable) -> bool:
    if read.f == "read":
        return bool(read.result == value)
    is_expected = bool(read.argument[0] == value)
    return is_expected is not (read.kind is Kind.FAIL)


def _asked(operation: Operation) -> tuple[str, Any]:
    argument = operation.argument
    return operation.f, tuple(argument) if operation.f == "cas" else argument


def register_frontier(operations: Sequence[Operation]) -> Search:
    """`operations` as `REGISTER` takes them, in the order of their calls."""
    for width in (_NARROW << 3 * wider for wider in count()):
        for joins in (False, True):
            register = _Register(width, joins)
            answer = yield from register.run(operations)
            proves = Outcome.VIOLATED if joins else Outcome.VALID
            if answer.outcome is proves or not register.is_narrowed:
                return answer
    raise AssertionError("no end")


def register_continued(
    operations: Sequence[Operation], values: Iterable[Hashable]
) -> Generator[int, None, Reached]:
    """All states in which a register may be after these operations, if it held one of the values.

    All that can follow from any state follows from one of those that are told: an unknown operation
    is used up only where another one needed it, since it may as well take effect later.
    """
    register = _Register(_ANY_WIDTH, joins=False, configs=[_Config(each, 0, 0) for each in values])
    answer = yield from register.run(operations)
    used = {
        each: frozenset(call for bit, call in register.unknown.items() if each.taken & bit)
        for each in register.configs
    }
    return Reached(frozenset((each.value, of) for each, of in used.items()), answer.blocked)
