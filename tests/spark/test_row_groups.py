"""Workers are told which groups of rows to read, and read all that is theirs to judge."""

from pathlib import Path

import pyarrow as pa
import pytest

from jepsen_like.histories.history import Lines
from spark.judging import Judging, Limits, TooLarge, whole_objects
from spark.parquet import Sizes, write_parquet
from spark.table_files import Stretch, read, shared_out, stretches
from spark.verdicts import named
from tests.jepsen_like.play import Play

SMALL = Sizes(chunk=10, group=10)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Keys of 4, 30 and 4 sends: the second is in several groups."""
    play = Play()
    for key, count in (("a", 4), ("b", 30), ("c", 4)):
        for value in range(count):
            play.send(0, key, value, value)
    path = tmp_path / "table"
    write_parquet(play.history.header, [Lines.of(play.ops)], path, run="run", sizes=SMALL)
    return path


def keys(batches: list[pa.RecordBatch]) -> list[str]:
    names = [name for batch in batches for name in batch.column("object").to_pylist()]
    return sorted(set(names))


def test_all_rows_are_read_where_no_object_is_large(table: Path) -> None:
    batches = list(read(stretches([table], []), []))
    assert sum(map(len, batches)) == 38
    assert keys(batches) == ["a", "b", "c"]


def test_groups_of_nothing_but_a_large_object_are_not_read(table: Path) -> None:
    large = [named("run", "b")]
    found = stretches([table], large)
    assert groups(found) < groups(stretches([table], []))
    assert keys(list(read(found, large))) == ["a", "c"]


def groups(found: list[Stretch]) -> int:
    return sum(len(stretch.groups) for stretch in found)


def test_groups_that_share_an_object_are_read_by_one_worker(table: Path) -> None:
    for stretch in (found := stretches([table], [])):
        others = [each for each in found if each is not stretch]
        assert not set(keys(list(read([stretch], [])))) & set(keys(list(read(others, []))))
    assert groups(found) > len(found) > 1


@pytest.mark.parametrize("rows", [1, 5, 1000])
def test_batches_are_cut_between_objects_only(table: Path, rows: int) -> None:
    batches = [
        piece
        for batch in read(stretches([table], []), [])
        for piece in pa.Table.from_batches([batch]).to_batches(max_chunksize=3)
    ]
    tables = tables_of(batches, rows)
    names = [set(each.column("object").to_pylist()) for each in tables]
    assert sum(map(len, tables)) == 38
    assert sum(map(len, names)) == 3


def test_each_table_but_the_last_has_as_many_rows_as_are_wanted() -> None:
    """Objects of two rows each, three rows wanted."""
    batches = [pa.RecordBatch.from_pylist([{"run": "run", "object": name}] * 2) for name in "abcde"]
    assert [len(each) for each in tables_of(batches, 3)] == [4, 4, 2]


def test_table_ends_at_the_first_border_behind_enough_rows() -> None:
    batches = [
        pa.RecordBatch.from_pylist([{"run": "run", "object": name} for name in names])
        for names in ("aa", "ab", "b")
    ]
    assert [len(each) for each in tables_of(batches, 3)] == [3, 2]


def tables_of(batches: list[pa.RecordBatch], rows: int) -> list[pa.Table]:
    return list(whole_objects(batches, Limits(rows=rows)))


def test_groups_of_several_files_are_judged_in_one_pass(tmp_path: Path) -> None:
    """Each file has encoded its names in its own way."""
    for run in ("a", "b"):
        play = Play()
        play.send(0, f"key-{run}", 1, 0)
        play.read_all(1, {f"key-{run}": [[0, 1]]})
        lines = [Lines.of(play.ops)]
        write_parquet(play.history.header, lines, tmp_path / run, run=run, sizes=SMALL)
    found = stretches([tmp_path / "a", tmp_path / "b"], [])
    assert shared_out(found, 1) == [found]
    told = Judging(limits=Limits()).told(read(found, []))
    rows = [row for batch in told for row in batch.to_pylist()]
    assert {(row["run"], row["object"]) for row in rows if row["outcome"] and row["object"]} == {
        ("a", "key-a"),
        ("b", "key-b"),
    }


def test_tasks_have_about_as_many_rows_and_the_largest_is_first() -> None:
    found = [Stretch(path=f"{rows}", groups=[0], rows=rows) for rows in (1, 2, 9, 3, 4)]
    shares = shared_out(found, 2)
    assert [sum(each.rows for each in share) for share in shares] == [10, 9]
    assert len(shared_out(found, 50)) == len(found)


def test_object_of_which_no_worker_holds_all_rows_leaves_the_others_alone() -> None:
    """It is the middle one; in batches that hold several objects, and in others of its own."""

    def batch(names: str) -> pa.RecordBatch:
        rows = [{"run": "run", "object": name, "workload": "log"} for name in names]
        return pa.RecordBatch.from_pylist(rows)

    large = "b" * 60_000
    batches = [batch("aa" + large), batch(large), batch(large + "ccd"), batch("d")]
    found = list(whole_objects(batches, Limits(mb=1, rows=1)))
    told = [each for each in found if isinstance(each, TooLarge)]
    assert told == [TooLarge(run="run", object="b", model="log", rows=180_000)]
    tables = [each for each in found if isinstance(each, pa.Table)]
    others = [each.column("object").to_pylist() for each in tables]
    assert [name for names in others for name in names] == list("aaccdd")
