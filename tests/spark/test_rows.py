"""The rows of columns are those of one operation after the other, of whatever histories."""

from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from itertools import islice
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from jepsen_like.histories.history import (
    Header,
    History,
    Kind,
    Lines,
    MalformedHistory,
    Op,
    encode_header,
    encode_op,
)
from jepsen_like.histories.interchange import READERS, edn_lines, jsonl_lines
from spark.operation_rows import table_of_rows
from spark.rows import tables
from tests.agreement.agreeing import history_of
from tests.agreement.models import MODELS
from tests.jepsen_like.play import Play
from tests.spark.histories import random_history
from tests.spark.row_by_row import rows

SEEDS = 9
UNUSUAL: list[Any] = [
    *(None, True, 1.0, 1.5, 1 << 63, -(1 << 63), "", "1", 'a "b" [c, ', "é\n", b"x", [], {}),
    *([1], ["k", None], ["k", 1], [1, 2], ["k", [1, 2]], [None, 7], ["k", 1, 2], [True, 1]),
    *({"k": [[0, 1]]}, [["poll"]], [["poll", {}]], [["poll", {"chaos-0": []}]], [{}, 5]),
    *([["poll", {"chaos-0": [[0, "a"], [1, None]], "chaos-1": [[0, 1.5]]}]], [["send", "k", 1]]),
    *([["send", "k", [3, 1]]], [["send", "k", [None, 1]]], [["send", "k", [-1, 1]]]),
    *(
        [["send", 5, [3, 1]]],
        [["send", "k", 1], ["send", "k", 2]],
        [["poll", {"k": [[1 << 40, 0]]}]],
    ),
]
WRONG = [[["poll", {"k": [[True, 1]]}]], [["send", "k", [0, [1]]]], [["poll", 5]], 5, "text"]
EXTRAS = [{"caught_up": True}, {"ends": {"chaos-0": 3}}, {"node": 1}, {"seek": "end"}, {"a": {}}]


def spoilt(history: History, random: Random) -> History:
    """As clients crash, and as recorders get it wrong."""
    ops = list(history.ops)
    for _ in range(random.randrange(5)):
        at = random.randrange(len(ops))
        changes: list[dict[str, Any]] = [
            {"process": random.choice([0, 1, "1", "nemesis", 1 << 62])},
            {"kind": random.choice(list(Kind))},
            {"extra": random.choice(EXTRAS)},
            {"error": random.choice(["timed out", "no", ""])},
            {"time_ns": random.randrange(1000)},
            {"f": random.choice(["read", "add", "poll", "observe", "cas"])},
            {"value": random.choice(WRONG if random.random() < 0.1 else UNUSUAL)},
            {"index": -1 - at},
        ]
        lines = [[], [ops[at]] * 2, *([replace(ops[at], **change)] for change in changes)]
        ops[at : at + 1] = random.choice(lines) or ops[at : at + (len(ops) == 1)]
    return replace(history, ops=ops)


def histories(seed: int) -> Iterator[History]:
    random = Random(seed)
    yield random_history(seed)
    for name in MODELS:
        yield history_of(name, MODELS[name], seed)
    for _ in range(3):
        yield spoilt(random_history(random.randrange(1 << 30)), random)
    name = random.choice(list(MODELS))
    yield spoilt(history_of(name, MODELS[name], random.randrange(1 << 30)), random)


def blocks_of(ops: list[Op], random: Random) -> Iterator[Lines]:
    left = iter(ops)
    while block := list(islice(left, random.choice([1, 3, 10, 100]))):
        yield Lines.of(block)


def sorted_rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def told(workload: str, blocks: Any) -> list[str] | str:
    try:
        return sorted_rows(pa.concat_tables(tables(Header(workload=workload, seed=0), blocks)))
    except MalformedHistory:
        return "malformed"


@pytest.mark.parametrize("start", range(0, SEEDS, 3))
def test_rows_are_those_of_one_operation_after_the_other(start: int) -> None:
    for seed in range(start, start + 3):
        for history in histories(seed):
            workload = history.header.workload
            expected: list[str] | str
            try:
                expected = sorted_rows(table_of_rows(list(rows(workload, history.ops))))
            except MalformedHistory:
                expected = "malformed"
            found = told(workload, blocks_of(list(history.ops), Random(seed)))
            assert found == expected, f"seed {seed}, {workload}"


def test_files_are_read_as_their_values_are_one_by_one() -> None:
    for seed in range(SEEDS):
        for history in histories(seed):
            header, ops = history.header, history.ops
            framed = encode_header(header) + b"".join(map(encode_op, ops))
            torn = framed + encode_op(ops[-1])[:-1]
            assert lines(torn, ".msgpack") == list(map(repr, ops)), f"seed {seed}"
            if any(op.value == b"x" for op in ops):
                continue  # which no text can say
            for form, suffix in ((jsonl_lines, ".jsonl"), (edn_lines, ".edn")):
                text = "\n".join(form(history)).encode()
                assert lines(text, suffix) == list(map(repr, ops)), f"seed {seed}, {suffix}"


def lines(content: bytes, suffix: str) -> list[str]:
    _, blocks = READERS[suffix](BytesIO(content))
    return [repr(op) for block in blocks for op in block.ops()]


@pytest.mark.parametrize("f", ["assign", "subscribe"])
def test_reader_that_sought_another_place_says_so_in_every_poll(f: str) -> None:
    play = Play()
    play.poll(0, {"k": [[0, "a"]]})
    play.invoke(0, f, ["k"], seek="end" if f == "assign" else None)
    play.ok(0)
    for offset in (5, 6, 7):
        play.poll(0, {"k": [[offset, offset]]})
    expected = sorted_rows(table_of_rows(list(rows("log", play.ops))))
    assert told("log", blocks_of(list(play.ops), Random(0))) == expected


ODD_POLLS = [
    {"k": [[5, 6], b"\x07\x08"]},
    {"k": [{5: 1, 6: 2}]},
    {"k": [(9, [])]},
    {"k": [[1 << 40, 1]]},
]


@pytest.mark.parametrize("odd", ODD_POLLS)
def test_an_odd_poll_reads_in_the_session_of_its_moment(odd: Any) -> None:
    """And so do the usual ones beside it, whatever comes after them in their block."""
    for end in ("assign", "crash", "subscribe"):
        play = Play()
        for seek in ("beginning", None, "beginning"):
            play.invoke(0, "assign", ["k"], seek=seek)
            play.ok(0)
            play.poll(0, {"k": [[0, "a"], [1, "b"]]})
            play.poll(0, odd)
            play.invoke(0, end, ["k"])
            play.ok(0)
            play.poll(0, {"k": [[0, "a"]]})
        expected = rows_one_by_one(play.ops)
        assert told("log", [Lines.of(play.ops)]) == expected


@pytest.mark.parametrize(
    ("f", "asked", "did"),
    [
        ("send", [["send", "k", "y"]], [["send", "k", "xy"]]),
        ("send", [["send", "k", "y"]], [["poll", {"k": [[0, "y"]]}]]),
        ("send", [["poll"]], [["send", "k", [0, "y"]]]),
        ("poll", [["poll"]], [["send", "k", [0, "y"]]]),
        ("read", {"k": 1, None: 2}, ["k", ["send", "k", 1]]),
    ],
)
def test_who_did_another_thing_than_asked_is_told(f: str, asked: Any, did: Any) -> None:
    play = Play()
    play.invoke(0, f, asked)
    play.ok(0, did)
    workload = "log" if f != "read" else "register"
    expected = rows_one_by_one(play.ops, workload)
    assert told(workload, [Lines.of(play.ops)]) == expected
    assert any("lint" in row for row in expected)


def test_what_never_ended_is_in_the_order_in_which_it_began() -> None:
    play = Play()
    for process in (0, 1, 0):
        play.invoke(process, "assign", ["k"])
    for size in (1, 3):
        blocks = [Lines.of(play.ops[at : at + size]) for at in range(0, 3, size)]
        table = pa.concat_tables(tables(Header(workload="log", seed=0), blocks))
        rows_of_all = table.to_pylist()
        assert [row["call"] for row in rows_of_all if row["what"] == "operation"] == [0, 1, 2]


def rows_one_by_one(ops: Any, workload: str = "log") -> list[str] | str:
    try:
        return sorted_rows(table_of_rows(list(rows(workload, ops))))
    except MalformedHistory:
        return "malformed"


@pytest.mark.parametrize("kind", list(Kind)[1:])
def test_a_step_that_is_a_mapping_is_refused(kind: Kind) -> None:
    """Even if its names are those of a send."""
    play = Play()
    for value in ({"send": 0, "k": 1, "v": 2}, {"send": 0, "k": 1, "v": [0, 2]}):
        play.line(Kind.INVOKE, 0, "send", [value])
        play.line(kind, 0, "send", [value])
        with pytest.raises(MalformedHistory):
            list(rows("log", play.ops))
        assert told("log", [Lines.of(play.ops)]) == "malformed"


def test_a_record_that_is_a_mapping_is_refused() -> None:
    play = Play()
    play.poll(0, {"k": [{3: 1, "x": 2}]})
    assert told("log", [Lines.of(play.ops)]) == "malformed"
