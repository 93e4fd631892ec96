"""One answer of a history changed: what an honest system did, and one thing that it did not."""

from dataclasses import replace
from random import Random
from typing import Any

from jepsen_like.histories.history import History, Kind, Op, Value

__all__ = ["changed"]

_POOL: tuple[Value, ...] = (None, 1, "1", True, 1.0, 2, "", "2")
_CHANGES = {"write", "add", "remove", "enqueue", "put", "append", "cas", "deposit", "withdraw"}


def changed(history: History, random: Random) -> History:
    """The same history, where nothing in it can be changed."""
    is_set = history.header.workload == "set"
    others = [
        (at, other) for at, op in enumerate(history.ops) if (other := _other(op, is_set, random))
    ]
    if not others:
        return history
    at, other = random.choice(others)
    return replace(history, ops=[*history.ops[:at], other, *history.ops[at + 1 :]])


def _other(op: Op, is_set: bool, random: Random) -> Op | None:
    if op.kind is not Kind.OK:
        return None
    if op.f in _CHANGES:
        return replace(op, kind=Kind.FAIL)
    value = _answer(op.f, op.value, is_set, random)
    return None if value is None else replace(op, value=value)


def _answer(f: str, value: Value, is_set: bool, random: Random) -> Value:
    """Another answer to a question of this kind; None: there is none."""
    told: Any = value
    match f, told:
        case "send" | "poll" | "txn", [*steps]:
            at = random.randrange(len(steps))
            return [*steps[:at], _step(steps[at], random), *steps[at + 1 :]]
        case "committed" | "committed-stale", {}:
            return {**told, random.choice(sorted(told)): random.choice([None, 0, 1, 2, 3])}
        case "observe", {}:
            key = random.choice(sorted(told))
            return {**told, key: _state(told[key], random)}
        case "read" | "read-stale", [*elements] if is_set:
            return _elements(elements, random)
        case "read" | "read-stale" | "dequeue", [key, _]:
            return [key, random.choice(_POOL)]
        case "get", [key, _]:
            return [key, random.choice(["", "1", "2", "12"])]
        case "balance", [key, balance]:
            return [key, balance + random.choice([-1, 1])]
        case "read", int(count):
            return count + random.choice([-1, 1])
        case _:
            return None


def _step(step: Any, random: Random) -> Value:
    match step:
        case ["send", key, [offset, value]]:
            return ["send", key, [abs((offset or 0) + random.choice([-1, 1])), value]]
        case ["poll", polled]:
            able = sorted(key for key, records in polled.items() if records)
            if not able:
                return step
            key = random.choice(able)
            return ["poll", {**polled, key: _records(polled[key], random)}]
        case _:
            return step


def _records(records: list[Any], random: Random) -> list[Any]:
    at = random.randrange(len(records))
    offset, value = records[at]
    before, behind = records[:at], records[at + 1 :]
    return random.choice(
        [
            [*before, *behind],
            [*before, records[at], records[at], *behind],
            [*behind, *before, records[at]],
            [*before, [offset + 1, value], *behind],
            [*before, [offset, random.choice(_POOL)], *behind],
        ]
    )


def _elements(elements: list[Value], random: Random) -> list[Value]:
    if elements and random.random() < 0.5:
        at = random.randrange(len(elements))
        return [*elements[:at], *elements[at + 1 :]]
    return [*elements, random.choice([1, "1", True, 1.0])]


def _state(state: list[Any], random: Random) -> list[Any]:
    """Leader, its epoch, the partition epoch: another one of one of them."""
    at = random.randrange(3)
    return [*state[:at], max(0, state[at] + random.choice([-1, 1])), *state[at + 1 :]]
