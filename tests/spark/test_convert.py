"""The table: what of a history it keeps, in which order, and how much memory that takes."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path
from typing import Any

import msgpack
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.judges import LINT_SHOWN
from jepsen_like.checkers.operations import OBSERVE, operations
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories.history import NEMESIS, Header, Kind, Lines, MalformedHistory, Op
from spark.judging import Limits, judged
from spark.parquet import Sizes, is_current, write_parquet
from spark.rows import tables
from spark.schema import SCHEMA, VERSION, Row
from spark.verdicts import named
from tests.jepsen_like.play import Play
from tests.spark.agreement import same
from tests.spark.histories import random_history
from tests.spark.told import told as told_of

KEY = "chaos-0"
BLOCK = 7  # lines
ANY = Limits(mb=4096)

# Where each field of a history's `Op` is kept: a new field there needs a new VERSION of the table.
COLUMNS_OF = {
    "index": ("invoked", "completed"),
    "time_ns": ("call_ns", "ret_ns"),
    "kind": ("kind",),
    "process": ("process",),
    "f": ("f",),
    "value": ("argument", "result", "number", "value", "offset"),
    "error": ("error",),
    "extra": ("extra", "session", "start", "assigned"),
}


def test_every_field_of_an_operation_has_its_columns() -> None:
    """A field that is added to `Op` needs columns, and the table a new VERSION."""
    assert set(COLUMNS_OF) == {field.name for field in fields(Op)}
    assert {name for columns in COLUMNS_OF.values() for name in columns} <= set(SCHEMA.names)


def test_columns_are_those_of_the_version() -> None:
    """Whoever changes a column changes VERSION, and this test: old files are then not read."""
    names = (
        "run workload options object what process f kind step call ret call_ns ret_ns invoked "
        "completed number value offset session start assigned argument result error extra"
    )
    assert (VERSION, " ".join(SCHEMA.names)) == (4, names)


def convert(header: Header, ops: Iterable[Op], path: Path, **more: Any) -> None:
    """Of some lines at once, as a long history would be."""
    write_parquet(header, blocks_of(ops), path, run="run", **more)


def blocks_of(ops: Iterable[Op]) -> Iterator[Lines]:
    left = iter(ops)
    while block := list(islice(left, BLOCK)):
        yield Lines.of(block)


def rows(workload: str, ops: Iterable[Op]) -> list[Row]:
    found = pa.concat_tables(tables(Header(workload=workload, seed=0), blocks_of(ops))).to_pylist()
    return [Row(**row) for row in sorted(found, key=lambda row: (row["call"], row["step"]))]


def converted(play: Play, path: Path, sizes: Sizes | None = None) -> pa.Table:
    history = play.history
    convert(history.header, history.ops, path, sizes=sizes)
    return pq.read_table(path)


def test_polls_are_exploded_to_a_row_a_record(tmp_path: Path) -> None:
    play = Play()
    play.send(0, KEY, 7, 0)
    play.poll(1, {KEY: [[0, 7], [1, "eight"]], "chaos-1": [[5, 9]]})
    rows = converted(play, tmp_path / "table").to_pylist()
    told = [(row["object"], row["what"], row["step"], row["offset"], row["number"]) for row in rows]
    assert told == [
        (KEY, "send", 0, 0, 7),
        (KEY, "read", 0, 0, 7),
        (KEY, "read", 1, 1, None),
        ("chaos-1", "read", 2, 5, 9),
    ]
    assert [row["value"] for row in rows] == [None, None, b"\xa5eight", None]


def test_operation_whose_end_nobody_knows_has_none(tmp_path: Path) -> None:
    play = Play()
    play.invoke(0, "send", [["send", KEY, 7]])
    play.info(0)
    play.invoke(1, "send", [["send", KEY, 8]])
    first, second = converted(play, tmp_path / "table").to_pylist()
    assert (first["kind"], first["ret"], first["completed"]) == ("info", None, 1)
    assert (second["kind"], second["ret"], second["completed"]) == ("info", None, None)


def test_groups_of_rows_end_where_objects_end(tmp_path: Path) -> None:
    play = Play()
    for value in range(60):
        play.send(value % 3, f"chaos-{value % 6}", value, value // 6)
    converted(play, tmp_path / "table", Sizes(chunk=7, group=20))
    file = pq.ParquetFile(tmp_path / "table")
    groups = [
        set(file.read_row_group(group, ["object"])["object"].to_pylist())
        for group in range(file.num_row_groups)
    ]
    assert groups == [{"chaos-0", "chaos-1"}, {"chaos-2", "chaos-3"}, {"chaos-4", "chaos-5"}]


@pytest.mark.parametrize("sizes", [Sizes(chunk=5, group=4), Sizes(chunk=50, group=1000)])
def test_rows_are_sorted_whatever_was_open_for_how_long(tmp_path: Path, sizes: Sizes) -> None:
    for seed in range(10):
        history = random_history(seed)
        path = tmp_path / f"table-{seed}"
        convert(history.header, history.ops, path, sizes=sizes)
        table = pq.read_table(path)
        order = table.select(["object", "call", "step"]).to_pylist()
        keys = [tuple(row.values()) for row in order]
        assert keys == sorted(keys), f"seed {seed}"


def test_history_is_read_only_as_fast_as_it_is_written(tmp_path: Path) -> None:
    """Chunks reach the disk before the history is read on."""
    asked = 0

    def ops() -> Iterator[Op]:
        nonlocal asked
        for index in range(100):
            play.send(0, KEY, index, index)
            yield from play.ops[2 * index :]
            asked = index + 1

    play = Play()
    progress = []
    header = Header(workload="log", seed=0)
    convert(
        header,
        ops(),
        tmp_path / "table",
        sizes=Sizes(chunk=10),
        progress=lambda rows: progress.append((rows, asked)),
    )
    assert all(asked <= rows + BLOCK for rows, asked in progress)
    assert progress[-1][0] == 100
    assert [path.name for path in tmp_path.iterdir()] == ["table"]


def test_table_is_current_for_its_source_only(tmp_path: Path) -> None:
    path = tmp_path / "table"
    assert not is_current(path, "a")
    convert(Header(workload="log", seed=0), [], path, source="a")
    assert is_current(path, "a")
    assert not is_current(path, "b")
    path.write_bytes(b"no table")
    assert not is_current(path, "a")


def test_table_is_judged_as_the_history(tmp_path: Path) -> None:
    for seed in range(100):
        history = random_history(seed)
        path = tmp_path / "table"
        convert(history.header, history.ops, path, sizes=Sizes(chunk=30))
        verdict = told_of(pq.read_table(path))
        assert same(verdict) == same(judge(history)), f"seed {seed}"


def test_lines_with_one_index_are_converted_and_disbelieved(tmp_path: Path) -> None:
    play = Play()
    play.send(0, "k-0", 1, 0)
    ops = [replace(op, index=0) for op in play.ops]
    convert(play.history.header, ops, tmp_path / "table")
    assert judged(pq.read_table(tmp_path / "table"), ANY).outcome is Outcome.UNDECIDED


@pytest.mark.parametrize("value", [1 << 70, "\ud800"])
def test_value_that_no_table_can_hold_is_told(value: object, tmp_path: Path) -> None:
    play = Play(workload="register")
    play.did(0, "write", ["x", value], None)
    with pytest.raises(MalformedHistory, match="no table can hold it"):
        convert(play.history.header, play.ops, tmp_path / "table")


def test_log_without_a_name_is_judged(tmp_path: Path) -> None:
    play = Play()
    play.send(0, "", 1, 0)
    play.read_all(1, {"": [[0, 2]]})
    convert(play.history.header, play.ops, tmp_path / "table")
    verdict = told_of(pq.read_table(tmp_path / "table"))
    assert verdict.outcome is Outcome.VIOLATED
    assert same(verdict) == same(judge(play.history))


def test_as_many_wrong_lines_are_shown_as_of_a_history() -> None:
    play = Play()
    for process in range(LINT_SHOWN + 2):
        play.line(Kind.OK, process, "send", [["send", KEY, [process, process]]])
    shown = [finding.detail for finding in judge(play.history).findings]
    (told,) = [row for row in rows("log", play.ops) if row.what == "lint"]
    assert told.argument is not None
    count, findings = msgpack.unpackb(told.argument)
    assert count == LINT_SHOWN + 2
    assert [detail for _rule, _object, detail, _lines in findings] == shown
    assert len(shown) == LINT_SHOWN


@pytest.mark.parametrize(
    ("f", "asked", "what"),
    [
        ("write", ["k", 7], "access"),
        ("read", ["k", None], "access"),
        ("write", ["k", None], "operation"),  # an access that brings nothing
        ("cas", ["k", None], "operation"),
    ],
)
def test_access_of_unknown_end_says_no_more_than_a_value(
    f: str, asked: list[object], what: str
) -> None:
    play = Play(workload="cas-register")
    play.invoke(0, f, asked)
    play.info(0)
    (told,) = rows("cas-register", play.ops)
    assert told.what == what


def test_read_that_was_answered_otherwise_is_kept_whole() -> None:
    play = Play(workload="register")
    play.did(0, "read", ["k", None], "k is 7")
    (told,) = rows("register", play.ops)
    assert (told.what, told.result) == ("operation", msgpack.packb("k is 7"))


@pytest.mark.parametrize(
    ("value", "number"), [((1 << 63) - 1, (1 << 63) - 1), (1 << 63, None), (True, None)]
)
def test_int_that_no_column_holds_is_kept_otherwise(value: int, number: int | None) -> None:
    play = Play(workload="register")
    play.did(0, "write", ["k", value], None)
    (told,) = rows("register", play.ops)
    kept = msgpack.packb(value) if number is None else None
    assert (told.number, told.value) == (number, kept)


def test_one_row_of_each_operation_and_of_each_line_is_its_first() -> None:
    """The plan counts operations by it."""
    for seed in range(30):
        history = random_history(seed)
        found = [row for row in rows(history.header.workload, history.ops) if row.what != "lint"]
        firsts = Counter(row.invoked for row in found if not row.step)
        lines = [op.index for op in history.ops if op.f == OBSERVE]
        assert firsts == Counter(each.index for each in operations(history.ops)) + Counter(lines)


def test_line_that_is_no_operation_is_one_row_whatever_follows() -> None:
    play = Play()
    play.line(Kind.INFO, NEMESIS, "kill", "node-1")
    play.send(0, KEY, 1, 0)
    play.line(Kind.OK, "node-1", "observe", {KEY: [1, 1, 1, [1]]})
    play.send(0, KEY, 2, 1)
    play.send(0, KEY, 3, 2)
    assert [row.what for row in rows("log", play.ops)] == ["line", "send", "line", "send", "send"]


@pytest.mark.parametrize("names", [["a"], ["a", "b"], ["a", "b", "c"]])
def test_objects_that_need_too_much_memory_are_doubted_one_by_one(
    names: list[str], tmp_path: Path
) -> None:
    play = Play(workload="register")
    for name in names:
        play.did(0, "write", [name, 1], None)
    verdict = judged(converted(play, tmp_path / "table"), Limits(mb=0))
    assert verdict.objects == {named("run", name): Outcome.UNDECIDED for name in names}


def test_table_without_rows_needs_no_memory() -> None:
    assert judged(SCHEMA.empty_table(), Limits(mb=0)).outcome is Outcome.VALID


def test_registers_that_are_surely_right_are_judged_by_zones_alone(tmp_path: Path) -> None:
    play = Play(workload="register")
    play.did(0, "write", ["x", 1], None)
    play.did(0, "read", ["x", None], ["x", 1])
    verdict = judged(converted(play, tmp_path / "table"), ANY)
    assert verdict.counts == {"registers": 1, "by zones": 1}
