"""No guess accuses a system that is right: a history that does not tell what it is of says so."""

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories.history import MalformedHistory, Value
from jepsen_like.histories.interchange import jsonl_lines, read_as
from tests.jepsen_like.play import Play
from tests.jepsen_like.test_interchange import did

Did = tuple[str, Value, Value]
State = Any
Step = Callable[[State, Random, Value], Did]  # changes the state, and says what was done
PAIRS: list[Value] = [[1, 2], [1, 3], [[1, 2], [1, 3]], ["x", 1], ["x", None], ["y", 1]]
VALUES: list[list[Value]] = [[1, 2, 3], PAIRS, [1, [1, 2], None, []], ["a", "b"], [[], [1]]]


def untold(*operations: Did, model: str | None = None) -> None:
    history = read_as(did(*operations), ".jsonl", model)
    assert history.header.workload == ""
    verdict = judge(history)
    assert verdict.outcome is Outcome.UNDECIDED
    assert "--model" in verdict.reason


@pytest.mark.parametrize(
    "operations",
    [
        [("write", [1, 2], [1, 2]), ("read", None, [1, 2])],
        [("write", [1, 2], None), ("cas", [[1, 2], [1, 3]], None)],
        [("write", 1, 1), ("read", ["x", None], ["x", 1])],
        [("write", 1, 1), ("read", {"x": None}, {"x": 1})],
        [("write", ["x", 1], None), ("read", "x", 1)],
        [("read", None, [1])],
        [("read", ["x", None], ["x", [1]])],
        [("read", None, {"x": 1})],
        [("enqueue", [1, 2], [1, 2]), ("dequeue", None, [1, 2])],
        [("dequeue", None, 1)],
        [("drain", None, [1])],
        [("txn", [["r", "x", None]], [["r", "x", 1]])],
        [("txn", [["w", "x", 1], ["append", "y", 1]], None)],
        [("txn", [], [])],
        [("txn", ["x", [["r", 1, None]]], ["x", [["r", 1, 1]]])],
        [("add", 1, 1), ("read", None, None)],
        [("add", 1, 1)],
        [("add", ["x", 1], None), ("read", ["x", None], ["x", [1]])],
        [("write", 1, 1), ("commit", None, None)],
        [("send", [["send", "x", 1]], [["send", "x", [0, 1]]]), ("truncate", "x", None)],
        [("append", ["x", 1], None), ("get", ["x", None], ["x", [1]])],
    ],
)
def test_what_cannot_be_told_is_not_guessed(operations: list[Did]) -> None:
    untold(*operations)


def test_reader_who_names_the_model_has_values_that_are_pairs_judged() -> None:
    for model, change, ask in (("register", "write", "read"), ("queue", "enqueue", "dequeue")):
        for read, outcome in (([1, 2], Outcome.VALID), ([1, 3], Outcome.VIOLATED)):
            content = did((change, [1, 2], [1, 2]), (ask, None, read))
            assert judge(read_as(content, ".jsonl", model)).outcome is outcome


def test_what_was_not_answered_does_not_tell_whether_there_are_keys() -> None:
    """Some say in an info's value what went wrong."""
    lost = json.dumps({"type": "info", "process": 1, "f": "write", "value": "timed-out"}).encode()
    begun = json.dumps({"type": "invoke", "process": 1, "f": "write", "value": ["x", 9]}).encode()
    written = ("write", ["x", 1], ["x", 1]), ("write", ["y", 2], ["y", 2])
    content = did(*written, ("read", ["x", None], ["x", 1]))
    history = read_as(b"\n".join([begun, content, lost]), ".jsonl")
    assert judge(history).objects == {"x": Outcome.VALID, "y": Outcome.VALID}


@pytest.mark.parametrize("asked", [[], [("read", ["x", None], 1)]])
def test_named_register_of_which_the_keys_are_not_told_is_refused(asked: list[Did]) -> None:
    content = did(("write", [1, 2], None), ("cas", [[1, 2], [1, 3]], None), *asked)
    with pytest.raises(MalformedHistory, match="do not tell whether the values of a register"):
        read_as(content, ".jsonl", "register")


def test_history_of_ours_has_keys_though_nothing_is_read() -> None:
    play = Play(workload="cas-register")
    play.did(0, "write", ["x", 1], ["x", 1])
    play.did(0, "cas", ["x", [1, 2]], ["x", [1, 2]])
    text = "\n".join(jsonl_lines(play.history))
    assert read_as(text.encode(), ".jsonl") == play.history


def test_samples_do_not_tell_what_a_history_is_of() -> None:
    sample = json.dumps({"type": "ok", "process": 9, "f": "observe", "value": {}}).encode()
    content = did(("write", 1, 1), ("read", None, 1)) + b"\n"
    assert read_as(content + sample, ".jsonl").header.workload == "register"
    assert read_as(sample, ".jsonl").header.workload == "observe"


def register(state: State, random: Random, value: Value) -> Did:
    match random.randrange(3):
        case 0:
            return "read", None, state.get("value")
        case 1 if "value" in state and random.random() < 0.5:
            return "cas", [state.pop("value"), state.setdefault("value", value)], None
        case _:
            state["value"] = value
            return "write", value, random.choice([None, value])


def queue(state: State, random: Random, value: Value) -> Did:
    if value is not None and random.random() < 0.6:
        state.setdefault("values", []).append(value)
        return "enqueue", value, value
    return "dequeue", None, state["values"].pop(0) if state.get("values") else None


def drained(state: State, random: Random, value: Value) -> Did:
    if random.random() < 0.2:
        return "drain", None, state.pop("values", [])
    return queue(state, random, value)


def added(state: State, random: Random, value: Value) -> Did:
    values = state.setdefault("values", [])
    match random.randrange(3):
        case 0:
            return "read", None, list(values) if random.random() < 0.9 else None
        case 1 if value in values:
            values.remove(value)
            return "remove", value, value
        case _:
            values += [value] if value not in values else []
            return "add", value, value


def counter(state: State, random: Random, value: Value) -> Did:
    if random.random() < 0.4:
        return "read", None, state.get("sum", 0) if random.random() < 0.9 else None
    state["sum"] = state.get("sum", 0) + 2
    return "add", 2, random.choice([None, 2])


def texts(state: State, random: Random, value: Value) -> Did:
    match random.randrange(3):
        case 0:
            return "get", None, state.get("text", "")
        case 1:
            state["text"] = state.get("text", "") + "a"
            return "append", "a", None
        case _:
            state["text"] = "b"
            return "put", "b", None


def lists(state: State, random: Random, value: Value) -> Did:
    if random.random() < 0.5:
        return "get", None, list(state.get("values", []))
    state.setdefault("values", []).append(value)
    return "append", value, None


def transaction(state: State, random: Random, value: Value) -> Did:
    f = state.setdefault("f", random.choice(["w", "append"]))
    asked, done = [], []
    for _ in range(random.randrange(3)):
        key = random.choice("xy")
        if random.random() < 0.6:
            asked.append(["r", key, None])
            seen = state.get(key)
            done.append(["r", key, list(seen) if isinstance(seen, list) else seen])
            continue
        written = state["next"] = state.get("next", 0) + 1
        state[key] = written if f == "w" else [*state.get(key, []), written]
        asked.append([f, key, written])
        done.append([f, key, written])
    return "txn", asked, done


OBJECTS: list[Step] = [
    *(register, queue, drained, added, counter, texts, lists, transaction),
]


def played(step: Step, random: Random) -> Iterator[dict[str, Value]]:
    """What a system that is right does, one operation after the other, as others write it down."""
    is_keyed = random.random() < 0.4
    states: dict[str, State] = {"x": {}, "y": {}}
    values = random.choice(VALUES)
    unseen = random.choice([(), ("read", "get")])
    for process in range(random.randrange(1, 9)):
        key = random.choice(list(states)) if is_keyed else "x"
        f, asked, answer = step(states[key], random, random.choice(values))
        if f in unseen:
            continue
        if is_keyed:
            asked = [key, asked]
            is_told = isinstance(answer, list) or random.random() < 0.9
            answer = [key, answer] if is_told else answer
        kind = random.choice(["ok", "ok", "ok", "info"])
        if kind == "info":
            answer = random.choice([asked, None, "timed-out"])
        yield {"type": "invoke", "process": process, "f": f, "value": asked}
        yield {"type": kind, "process": process, "f": f, "value": answer}


def accused(seed: int) -> str:
    """What a system that is right is accused of, and its history; or nothing."""
    random = Random(seed)
    lines = list(played(random.choice(OBJECTS), random))
    text = "\n".join(map(json.dumps, lines))
    try:
        verdict = judge(read_as(text.encode(), ".jsonl"))
    except MalformedHistory:
        return ""
    is_wrong = verdict.outcome is Outcome.VIOLATED
    return f"seed {seed}: {verdict.findings}\n{text}" if is_wrong else ""


def test_system_that_is_right_is_never_accused_by_a_guess() -> None:
    assert not [told for seed in range(200) if (told := accused(seed))]
