"""Histories of clients that do whatever their protocol allows, judged as a user would judge them.

The objects of `objects` make what a sensible client would do with one of them. Here a history has
two objects or more; values are numbers and texts that look alike; elements are added again and
removed where they are not; an operation takes effect at any moment while it is open; clients crash
at any event, and some of what they asked for happens later. Half of the histories are honest; in a
part of these one answer is then changed; in the others any answer may be anything.

The truth is found by trying all orders of all operations on all objects at once. It knows nothing
of keys, elements and checkers: a state is whatever a row of FREE makes of it.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from jepsen_like.checkers import judge
from jepsen_like.checkers.operations import NEVER, Operation, operations
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories.history import History, Kind, Value
from tests.agreement.agreeing import Tally
from tests.jepsen_like.play import Play

__all__ = ["FREE", "Free", "freely_compared", "freely_played", "is_possible"]

KEYS = ("a", "b")
ALIKE: tuple[Value, ...] = (1, "1", True, 1.0)
DOUBTS = ("no operation that is judged was ok", "not decided after")
_FAILED: Any = object()
State = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Free:
    """`ask`: what a client may ask for. `do`: the state after an operation, and what it is told;
    None if that is no news. `lie`: any answer at all."""

    workload: str
    initial: Hashable
    ask: Callable[[Random], tuple[str, Value]]
    do: Callable[[State, str, Value], tuple[State, Value]]
    lie: Callable[[Random, str, Value], Value]


def told(value: Value) -> str:
    """1, 1.0, True and '1' are four values."""
    return repr(value)


VALUES = {told(value): value for value in (None, 2, *ALIKE)}


def _with(state: tuple[State, ...], key: str, of_key: State) -> tuple[State, ...]:
    at = KEYS.index(key)
    return (*state[:at], of_key, *state[at + 1 :])


# --- sets ---------------------------------------------------------------------------------------


def _ask_set(random: Random) -> tuple[str, Value]:
    f = random.choice(["read", "read", "add", "add", "remove"])
    return f, None if f == "read" else random.choice(ALIKE[: random.choice([2, 4])])


def _do_set(state: frozenset[str], f: str, argument: Value) -> tuple[State, Value]:
    if f == "read":
        return state, [VALUES[each] for each in sorted(state)]
    return (state | {told(argument)} if f == "add" else state - {told(argument)}), None


def _lie_of_set(random: Random, f: str, _: Value) -> Value:
    return random.choices(ALIKE, k=random.randrange(4)) if f == "read" else None


# --- registers ----------------------------------------------------------------------------------


def _ask_register(random: Random) -> tuple[str, Value]:
    f = random.choice(["read", "read", "write", "cas"])
    old, new = random.choice([*VALUES.values()]), random.choice([*VALUES.values()])
    return f, [random.choice(KEYS), {"read": None, "write": new, "cas": [old, new]}[f]]


def _do_register(state: tuple[str, str], f: str, argument: Value) -> tuple[State, Value]:
    key, asked = argument
    value = state[KEYS.index(key)]
    if f == "read":
        return state, [key, VALUES[value]]
    if f == "write":
        return _with(state, key, told(asked)), None
    if value != told(asked[0]):
        return state, _FAILED
    return _with(state, key, told(asked[1])), None


def _lie_of_register(random: Random, f: str, argument: Value) -> Value:
    if f == "cas":
        return random.choice([None, _FAILED])
    return [argument[0], random.choice([*VALUES.values()])] if f == "read" else None


# --- queues -------------------------------------------------------------------------------------


def _ask_queue(random: Random) -> tuple[str, Value]:
    f, key = random.choice(["enqueue", "dequeue"]), random.choice(KEYS)
    return f, [key, random.choice(ALIKE) if f == "enqueue" else None]


def _do_queue(state: tuple[tuple[str, ...], ...], f: str, argument: Value) -> tuple[State, Value]:
    key, value = argument
    mine = state[KEYS.index(key)]
    if f == "enqueue":
        return _with(state, key, (*mine, told(value))), None
    return _with(state, key, mine[1:]), [key, VALUES[mine[0]] if mine else None]


def _lie_of_queue(random: Random, f: str, argument: Value) -> Value:
    return [argument[0], random.choice([None, *ALIKE])] if f == "dequeue" else None


# --- strings ------------------------------------------------------------------------------------


def _ask_strings(random: Random) -> tuple[str, Value]:
    f = random.choice(["get", "get", "append", "put"])
    return f, [random.choice(KEYS), None if f == "get" else random.choice(["", "1", "2"])]


def _do_strings(state: tuple[str, str], f: str, argument: Value) -> tuple[State, Value]:
    key, text = argument
    mine = state[KEYS.index(key)]
    if f == "get":
        return state, [key, mine]
    return _with(state, key, text if f == "put" else mine + text), None


def _lie_of_strings(random: Random, f: str, argument: Value) -> Value:
    return [argument[0], random.choice(["", "1", "2", "12"])] if f == "get" else None


_NIL = told(None)
FREE = {
    "sets": Free(workload="set", initial=frozenset(), ask=_ask_set, do=_do_set, lie=_lie_of_set),
    "registers": Free(
        workload="cas-register",
        initial=(_NIL, _NIL),
        ask=_ask_register,
        do=_do_register,
        lie=_lie_of_register,
    ),
    "queues": Free(
        workload="queue", initial=((), ()), ask=_ask_queue, do=_do_queue, lie=_lie_of_queue
    ),
    "strings": Free(
        workload="kv", initial=("", ""), ask=_ask_strings, do=_do_strings, lie=_lie_of_strings
    ),
}


# --- how they are played, and judged ------------------------------------------------------------


@dataclass(slots=True)
class _Asked:
    f: str
    argument: Value
    is_done: bool = False
    answer: Value = None


def freely_played(free: Free, random: Random) -> History:
    play = Play(workload=free.workload)
    unknown = random.choice([0.0, 0.0, 0.15, 0.3])
    lies = random.choice([0.0, 0.0, 0.1, 0.4])
    names = list(range(random.choice([2, 3, 5])))
    pending: dict[int, _Asked] = {}
    late: list[_Asked] = []
    state = free.initial
    for _ in range(random.randint(8, 30)):
        if late and random.random() < 0.3:
            asked = late.pop()
            state, _answer = free.do(state, asked.f, asked.argument)
        place = random.randrange(len(names))
        process = names[place]
        if process not in pending:
            asked = pending[process] = _Asked(*free.ask(random))
            play.invoke(process, asked.f, asked.argument)
            continue
        asked = pending[process]
        if not asked.is_done and random.random() < 0.7:
            state, asked.answer = free.do(state, asked.f, asked.argument)
            asked.is_done = True
            continue
        if random.random() < unknown:
            late += [asked] if not asked.is_done and random.random() < 0.5 else []
            play.info(process)
            names[place] += len(names)
        elif asked.is_done:
            is_lie = random.random() < lies
            answer = free.lie(random, asked.f, asked.argument) if is_lie else asked.answer
            _completed(play, process, answer)
        elif random.random() < 0.2:
            play.fail(process)
        else:
            continue
        del pending[process]
    return play.history


def _completed(play: Play, process: int, answer: Value) -> None:
    if answer is _FAILED:
        play.fail(process, mismatch=True)
    else:
        play.ok(process, answer)


def is_possible(free: Free, history: History) -> bool:
    """By trying every order, each set of operations and state once."""
    every = [each for each in operations(history.ops) if _says_something(each)]
    hopeless: set[tuple[frozenset[int], State]] = set()

    def can_end(left: frozenset[int], state: State) -> bool:
        if all(every[at].ret == NEVER for at in left):
            return True
        first_ret = min(every[at].ret for at in left)
        if (left, state) not in hopeless:
            for at in left:
                each = every[at]
                if each.call < first_ret:
                    after, answer = free.do(state, each.f, each.argument)
                    if _fits(each, answer) and can_end(left - {at}, after):
                        return True
        hopeless.add((left, state))
        return False

    return can_end(frozenset(range(len(every))), free.initial)


def _says_something(operation: Operation) -> bool:
    return operation.kind is not Kind.FAIL or "mismatch" in operation.extra


def _fits(operation: Operation, answer: Value) -> bool:
    """A list of a set is in any order, and may name an element twice."""
    if operation.ret == NEVER:
        return True
    if answer is _FAILED or operation.kind is Kind.FAIL:
        return answer is _FAILED and operation.kind is Kind.FAIL
    if operation.f == "read" and operation.argument is None:
        return set(map(told, operation.result)) == set(map(told, answer))
    return answer is None or told(operation.result) == told(answer)


def freely_compared(name: str, free: Free, numbers: Iterable[int]) -> Tally:
    tally = Tally()
    for number in numbers:
        history = freely_played(free, Random(f"free {name} {number}"))
        truth = Outcome.VALID if is_possible(free, history) else Outcome.VIOLATED
        verdict = judge(history)
        tally.truth[truth] += 1
        tally.unknown += any(each.ret == NEVER for each in operations(history.ops))
        if verdict.outcome is Outcome.UNDECIDED:
            tally.undecided += 1
            if not any(doubt in verdict.reason for doubt in DOUBTS):
                tally.wrong.append(f"{name} {number}: undecided for {verdict.reason}")
        elif verdict.outcome is not truth:
            what = f"judge says {verdict.outcome}, truth is {truth}"
            tally.wrong.append(f"{name} {number}: {what}")
    return tally
