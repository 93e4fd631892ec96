"""Objects for `free`: what clients may ask of them, what comes of it, and any answer at all.

A state is of all keys or elements at once. Values are told apart by their texts.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from random import Random
from typing import Any

from examples.bank_account import ACCOUNT
from jepsen_like.checkers.models import ILLEGAL, Model
from jepsen_like.checkers.operations import Operation
from jepsen_like.histories.history import Value

__all__ = ["ALIKE", "FAILED", "FREE_OBJECTS", "Free", "State", "told"]

KEYS = ("a", "b")
ALIKE: tuple[Value, ...] = (1, "1", True, 1.0)
FAILED: Any = object()
State = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Free:
    """`ask`: what a client may ask for. `do`: the state after an operation, and what it is told;
    None if that is no news. `lie`: any answer at all. `model`: one of somebody's own."""

    workload: str
    initial: Hashable
    ask: Callable[[Random], tuple[str, Value]]
    do: Callable[[State, str, Value], tuple[State, Value]]
    lie: Callable[[Random, str, Value], Value]
    model: Model | None = None


def told(value: Value) -> str:
    """1, 1.0, True and '1' are four values."""
    return repr(value)


VALUES = {told(value): value for value in (None, 2, *ALIKE)}


def _with(state: tuple[State, ...], key: str, of_key: State) -> tuple[State, ...]:
    at = KEYS.index(key)
    return (*state[:at], of_key, *state[at + 1 :])


# --- sets ---------------------------------------------------------------------------------------


def _ask_set(random: Random) -> tuple[str, Value]:
    f = random.choice(["read", "read", "read-stale", "add", "add", "remove"])
    return f, None if f.startswith("read") else random.choice(ALIKE[: random.choice([2, 4])])


def _do_set(state: frozenset[str], f: str, argument: Value) -> tuple[State, Value]:
    if f.startswith("read"):
        return state, [VALUES[each] for each in sorted(state)]
    return (state | {told(argument)} if f == "add" else state - {told(argument)}), None


def _lie_of_set(random: Random, f: str, _: Value) -> Value:
    return random.choices(ALIKE, k=random.randrange(4)) if f.startswith("read") else None


# --- registers ----------------------------------------------------------------------------------


def _ask_register(random: Random) -> tuple[str, Value]:
    f = random.choice(["read", "read", "read-stale", "write", "cas"])
    old, new = random.choice([*VALUES.values()]), random.choice([*VALUES.values()])
    return f, [random.choice(KEYS), {"write": new, "cas": [old, new]}.get(f)]


def _do_register(state: tuple[str, str], f: str, argument: Value) -> tuple[State, Value]:
    key, asked = argument
    value = state[KEYS.index(key)]
    if f.startswith("read"):
        return state, [key, VALUES[value]]
    if f == "write":
        return _with(state, key, told(asked)), None
    if value != told(asked[0]):
        return state, FAILED
    return _with(state, key, told(asked[1])), None


def _lie_of_register(random: Random, f: str, argument: Value) -> Value:
    if f == "cas":
        return random.choice([None, FAILED])
    if f.startswith("read"):
        return [argument[0], random.choice([*VALUES.values()])]
    return None


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


# --- models of one's own ------------------------------------------------------------------------


def _ask_account(random: Random) -> tuple[str, Value]:
    f = random.choice(["balance", "deposit", "withdraw"])
    return f, [random.choice(KEYS), None if f == "balance" else random.choice([1, 2])]


def _do_account(state: tuple[int, int], f: str, argument: Value) -> tuple[State, Value]:
    key, amount = argument
    balance = state[KEYS.index(key)]
    if f == "balance":
        return state, [key, balance]
    if f == "deposit":
        return _with(state, key, balance + amount), None
    return (_with(state, key, balance - amount), None) if amount <= balance else (state, FAILED)


def _lie_of_account(random: Random, f: str, argument: Value) -> Value:
    return [argument[0], random.randrange(4)] if f == "balance" else None


def _ask_counter(random: Random) -> tuple[str, Value]:
    f = random.choice(["read", "add"])
    return f, random.choice([1, -1, 2]) if f == "add" else None


def _do_counter(state: int, f: str, argument: Value) -> tuple[State, Value]:
    return (state, state) if f == "read" else (state + argument, None)


def _lie_of_counter(random: Random, f: str, _: Value) -> Value:
    return random.randrange(-1, 4) if f == "read" else None


def _counter(state: int, operation: Operation) -> Any:
    """As in the handbook."""
    if operation.f == "add":
        return state + operation.argument
    return state if operation.result == state else ILLEGAL


_NIL = told(None)
FREE_OBJECTS = {
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
    "a model of one's own, accounts": Free(
        workload="account",
        initial=(0, 0),
        ask=_ask_account,
        do=_do_account,
        lie=_lie_of_account,
        model=ACCOUNT,
    ),
    "a model of one's own, a counter": Free(
        workload="count",
        initial=0,
        ask=_ask_counter,
        do=_do_counter,
        lie=_lie_of_counter,
        model=Model(initial=0, step=_counter, reads=frozenset({"read"})),
    ),
}
