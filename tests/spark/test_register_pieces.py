"""A register in pieces of one value, and of one zone, is judged as the whole of it."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.verdict import Outcome, Verdict, compose
from jepsen_like.histories.history import History
from spark import register_pieces
from spark.piece_rows import HANDED_ON
from spark.pieces import Mapped
from spark.register_pieces import ACCESSES, carried_on
from spark.verdicts import decoded
from tests.agreement.agreeing import history_of
from tests.agreement.models import MODELS
from tests.jepsen_like.play import Play
from tests.spark.tables import table_of

MB = 1 << 20  # no limit
NUMBERED = pa.schema([*HANDED_ON, pa.field("piece", pa.int64())])
SEEDS = 12
Rows = list[dict[str, Any]]


def judged_in_pieces(history: History, size: int) -> Verdict:
    """`size`: of a piece, in values or zones. Rows move as in `spark.distributed_registers`."""
    rows = table_of(history, "").select(["what", *ACCESSES]).to_pylist()
    accesses = [row for row in rows if row["what"] == "access"]
    assert accesses == [row for row in rows if row["object"]], "nothing but reads and writes"
    by_value = sorted(accesses, key=lambda row: repr((row["object"], row["number"], row["value"])))
    whole = [[row for row in by_value if same(row, one)] for one in distinct(by_value)]
    handed = judged(register_pieces.by_value(MB), cut(whole, size), table_of(history, "").schema)
    zones = [{**row, "call": min(row["lower"], row["upper"])} for row in tagged(handed, "zone")]
    zones.sort(key=lambda row: (row["object"], row["call"]))
    pieces = cut([[row] for row in zones], size)
    carried = carried_on(ends_of(pieces))
    found = handed + judged(register_pieces.by_moment(carried, MB), pieces, NUMBERED)
    twice = {row["object"]: "twice" for row in tagged(handed, "twice")}
    verdicts = [decoded(row["verdict"]) for row in found if row["tag"] == "verdict"]
    return compose([Verdict.of([], doubts=twice), *verdicts])


def same(row: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(row[name] == other[name] for name in ("object", "number", "value"))


def distinct(rows: Rows) -> Rows:
    return [row for at, row in enumerate(rows) if not at or not same(row, rows[at - 1])]


def cut(groups: Sequence[Rows], size: int) -> list[Rows]:
    return [
        [row for group in groups[at : at + size] for row in group]
        for at in range(0, len(groups), size)
    ]


def judged(judge_piece: Mapped, parts: Sequence[Rows], schema: pa.Schema) -> Rows:
    names = [name for name in schema.names if name in (*ACCESSES, *NUMBERED.names)]
    found: Rows = []
    for number, part in enumerate(parts):
        rows = [{**row, "piece": number} for row in part]
        table = pa.Table.from_pylist(rows, pa.schema([schema.field(name) for name in names]))
        for batch in judge_piece(table.to_batches()):
            found += batch.to_pylist()
    return found


def tagged(rows: Rows, tag: str) -> Rows:
    return [row for row in rows if row["tag"] == tag]


def ends_of(pieces: Sequence[Rows]) -> Rows:
    ends = []
    for number, part in enumerate(pieces):
        for register in {row["object"] for row in part}:
            mine = [row for row in part if row["object"] == register]
            forward = [row for row in mine if row["lower"] < row["upper"]]
            latest = max(forward, key=lambda row: int(row["upper"]), default=None)
            ends.append({"piece": number, "run": "", "object": register, "latest": latest})
    return ends


def agrees(history: History, size: int) -> Outcome:
    expected = judge(history)
    found = judged_in_pieces(history, size)
    assert found.outcome is expected.outcome
    assert {each.object.strip() for each in found.findings} == {
        each.object for each in expected.findings
    }
    assert {each.rule for each in found.findings} <= {each.rule for each in expected.findings}
    return found.outcome


@pytest.mark.parametrize("size", [1, 3])
def test_random_registers_are_judged_as_they_are_whole(size: int) -> None:
    name = "register, written once"
    outcomes = []
    for seed in range(SEEDS):
        history = history_of(name, MODELS[name], seed)
        outcomes.append(agrees(history, size))
    assert {Outcome.VALID, Outcome.VIOLATED} <= set(outcomes)


def clashing(play: Play) -> None:
    """1, 2 and 1 again; and between the two reads of 1, in pieces of their own, much else."""
    play.did(0, "write", ["k", 1], ["k", 1])
    for value in (1, 2, 3, 1):
        if value != 1:
            play.did(0, "write", ["k", value], ["k", value])
        play.did(1, "read", ["k", None], ["k", value])


def early(play: Play) -> None:
    play.did(1, "read", ["k", None], ["k", 1])
    play.did(0, "write", ["k", 1], ["k", 1])


def back_to_nil(play: Play) -> None:
    play.did(0, "write", ["k", 1], ["k", 1])
    play.did(1, "read", ["k", None], ["k", None])


def failed(play: Play) -> None:
    play.invoke(0, "write", ["k", 1])
    play.fail(0)
    play.did(1, "read", ["k", None], ["k", 1])


def phantom(play: Play) -> None:
    play.did(1, "read", ["k", None], ["k", 7])


def overtaken(play: Play) -> None:
    """2 is read before and after the whole life of 1, whose zone is backwards."""
    for value in (2, 1):
        play.did(0, "write", ["k", value], ["k", value])
    play.did(1, "read", ["k", None], ["k", 2])


@pytest.mark.parametrize("plant", [clashing, early, back_to_nil, failed, phantom, overtaken])
def test_planted_violation_is_found_however_the_register_is_cut(plant: Any) -> None:
    for size in (1, 2):
        play = Play(workload="register")
        plant(play)
        assert agrees(play.history, size) is Outcome.VIOLATED


def test_value_that_is_written_twice_leaves_a_doubt() -> None:
    play = Play(workload="register")
    for _ in range(2):
        play.did(0, "write", ["k", 1], ["k", 1])
    assert judged_in_pieces(play.history, 1).outcome is Outcome.UNDECIDED
