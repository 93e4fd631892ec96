"""Whatever is no [key, value] is refused, and not taken apart: its letters, or the names in it."""

from collections.abc import Sequence

import pytest

from jepsen_like.checkers import judge
from jepsen_like.histories.history import MalformedHistory, Value
from tests.jepsen_like.play import Play

NO_PAIRS: Sequence[Value] = ("xy", {"x": 1, "y": 2}, {0: 1, 1: 2}, ["x", 1, 2], b"xy", 5)
MODELS = [("kv", "get", "put"), ("queue", "dequeue", "enqueue"), ("register", "read", "write")]


@pytest.mark.parametrize("value", NO_PAIRS, ids=repr)
@pytest.mark.parametrize(("model", "ask", "change"), MODELS)
def test_no_pair_is_taken_for_one(model: str, ask: str, change: str, value: Value) -> None:
    for f, asked, answer in ((change, value, value), (ask, ["x", None], value)):
        play = Play(workload=model)
        play.did(0, f, asked, answer)
        with pytest.raises(MalformedHistory, match="operation 0"):
            judge(play.history)


@pytest.mark.parametrize("value", NO_PAIRS, ids=repr)
def test_what_a_cas_asks_for_is_a_pair(value: Value) -> None:
    play = Play(workload="cas-register")
    play.did(0, "cas", ["x", value], ["x", value])
    with pytest.raises(MalformedHistory, match="operation 0"):
        judge(play.history)


@pytest.mark.parametrize("record", [{3: 1, "y": 2}, {3: "x"}, "ab", [3]], ids=repr)
def test_a_record_is_a_pair(record: Value) -> None:
    play = Play()
    play.poll(0, {"k": [record]})
    with pytest.raises(MalformedHistory, match="operation 0"):
        judge(play.history)
