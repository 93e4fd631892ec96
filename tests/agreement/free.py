"""Histories of clients that do whatever their protocol allows, judged as a user would judge them.

The objects of `objects` make what a sensible client would do with one of them. Here a history has
two objects or more; values are numbers and texts that look alike; elements are added again and
removed where they are not; an operation takes effect at any moment while it is open; clients crash
at any event, and some of what they asked for happens later. Half of the histories are honest; in a
part of these one answer is then changed; in the others any answer may be anything.

The truth is found by trying all orders of all operations on all objects at once. It knows nothing
of keys, elements and checkers: a state is whatever a row of FREE makes of it. A read that may be
old is one for each key or element, of any moment before its end, but of one node in order.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from random import Random

from jepsen_like.checkers import judge
from jepsen_like.checkers.operations import NEVER, Operation, operations
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories.history import History, Kind, Value
from tests.agreement.free_objects import ALIKE, FAILED, FREE_OBJECTS, Free, State, told
from tests.agreement.rows import Compared, Row
from tests.jepsen_like.play import Play

__all__ = ["FREE", "freely_played", "is_possible"]


@dataclass(slots=True)
class _Asked:
    f: str
    argument: Value
    is_done: bool = False
    answer: Value = None
    extra: dict[str, Value] = field(default_factory=dict)


@dataclass(slots=True)
class _System:
    """All states so far; a node knows one of them, and later not an earlier one."""

    free: Free
    random: Random
    states: list[State]
    known: dict[int, int] = field(default_factory=dict)

    def do(self, asked: _Asked) -> None:
        state, asked.is_done = self.states[-1], True
        if asked.f == "read-stale":
            node = self.random.choice([1, 2])
            self.known[node] = self.random.randrange(self.known.get(node, 0), len(self.states))
            state = self.states[self.known[node]]
            asked.extra = {"node": node} if self.random.random() < 0.8 else {}
        after, asked.answer = self.free.do(state, asked.f, asked.argument)
        if asked.f != "read-stale":
            self.states.append(after)


def freely_played(free: Free, random: Random, lying: float) -> History:
    play = Play(workload=free.workload)
    unknown = random.choice([0.0, 0.0, 0.15, 0.3])
    names = list(range(random.choice([2, 3, 5])))
    pending: dict[int, _Asked] = {}
    late: list[_Asked] = []
    system = _System(free, random, [free.initial])
    for _ in range(random.randint(8, 30)):
        if late and random.random() < 0.3:
            system.do(late.pop())
        place = random.randrange(len(names))
        process = names[place]
        if process not in pending:
            asked = pending[process] = _Asked(*free.ask(random))
            play.invoke(process, asked.f, asked.argument)
            continue
        asked = pending[process]
        if not asked.is_done and random.random() < 0.7:
            system.do(asked)
            continue
        if random.random() < unknown:
            late += [asked] if not asked.is_done and random.random() < 0.5 else []
            play.info(process)
            names[place] += len(names)
        elif asked.is_done:
            is_lie = random.random() < lying
            answer = free.lie(random, asked.f, asked.argument) if is_lie else asked.answer
            _completed(play, process, asked, answer)
        elif random.random() < 0.2:
            play.fail(process)
        else:
            continue
        del pending[process]
    return play.history


def _completed(play: Play, process: int, asked: _Asked, answer: Value) -> None:
    if answer is not FAILED:
        play.ok(process, answer, **asked.extra)
    elif asked.f == "cas":
        play.fail(process, mismatch=True)
    else:
        play.fail(process)


@dataclass(frozen=True, eq=False, slots=True)
class _Event:
    """`after`: the state after it; FAILED if it cannot be then. `behind`: what comes before."""

    call: int
    ret: int
    after: Callable[[State], State]
    is_read: bool
    behind: "_Event | None" = None


def is_possible(free: Free, history: History) -> bool:
    """By trying every order, each set of operations and state once."""
    hopeless: set[tuple[frozenset[_Event], State]] = set()

    def can_end(left: frozenset[_Event], state: State) -> bool:
        first_ret = min((each.ret for each in left), default=NEVER)
        if first_ret == NEVER:
            return True
        if (left, state) in hopeless:
            return False
        able = [each for each in left if each.call < first_ret and each.behind not in left]
        after = [(each, each.after(state)) for each in able]
        fitting = [(each, new) for each, new in after if new is not FAILED]
        for each, new in next(([pair] for pair in fitting if pair[0].is_read), fitting):
            if can_end(left - {each}, new):
                return True
        hopeless.add((left, state))
        return False

    return can_end(frozenset(_events(free, history)), free.initial)


def _events(free: Free, history: History) -> Iterator[_Event]:
    last: dict[Value, _Event] = {}
    for each in operations(history.ops):
        if each.f != "read-stale":
            if each.kind is not Kind.FAIL or "mismatch" in each.extra:
                is_read = each.f in ("read", "get", "balance") or each.kind is Kind.FAIL
                yield _Event(each.call, each.ret, partial(_after, free, each), is_read)
        elif each.kind is Kind.OK:
            for what, after in _looks(free, each):
                view = each.process, each.extra.get("node", f"unknown {each.index}"), what
                last[view] = _Event(-1, each.ret, after, is_read=True, behind=last.get(view))
                yield last[view]


def _after(free: Free, operation: Operation, state: State) -> State:
    after, answer = free.do(state, operation.f, operation.argument)
    return after if _fits(operation, answer) else FAILED


def _looks(free: Free, stale: Operation) -> Iterator[tuple[str, Callable[[State], State]]]:
    """At a key, or at each element by itself."""
    if free.workload != "set":
        yield stale.argument[0], partial(_after, free, stale)
        return
    listed = set(map(told, stale.result))
    for element in {*map(told, ALIKE), *listed}:
        yield element, partial(_looked_up, element, element in listed)


def _looked_up(element: str, is_listed: bool, state: State) -> State:
    return state if (element in state) == is_listed else FAILED


def _fits(operation: Operation, answer: Value) -> bool:
    """A list of a set is in any order, and may name an element twice."""
    if operation.ret == NEVER:
        return True
    if answer is FAILED or operation.kind is Kind.FAIL:
        return answer is FAILED and operation.kind is Kind.FAIL
    if operation.f == "read" and isinstance(answer, list) and operation.argument is None:
        return set(map(told, operation.result)) == set(map(told, answer))
    return answer is None or told(operation.result) == told(answer)


def _compared(free: Free, history: History) -> Compared:
    truth = Outcome.VALID if is_possible(free, history) else Outcome.VIOLATED
    verdict = judge(history, model=free.model)
    is_other = verdict.outcome not in (truth, Outcome.UNDECIDED)
    differs = [f"judge says {verdict.outcome}, truth is {truth}"] if is_other else []
    return Compared(truth, verdict, differs)


FREE = {
    name: Row(make=partial(freely_played, free), compare=partial(_compared, free))
    for name, free in FREE_OBJECTS.items()
}
