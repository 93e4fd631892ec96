"""Workers are told which groups of rows to read, and read all that is theirs to judge."""

from pathlib import Path

import pyarrow as pa
import pytest

from spark.batches import whole_objects
from spark.convert import Sizes, convert
from spark.row_groups import read, row_groups
from spark.verdicts import named
from tests.jepsen_like.play import Play

SMALL = Sizes(chunk=50, group=10)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Keys of 4, 30 and 4 sends: the second is in several groups."""
    play = Play()
    for key, count in (("a", 4), ("b", 30), ("c", 4)):
        for value in range(count):
            play.send(0, key, value, value)
    path = tmp_path / "table"
    convert(play.history.header, play.ops, path, run="run", sizes=SMALL)
    return path


def keys(batches: list[pa.RecordBatch]) -> list[str]:
    names = [name for batch in batches for name in batch.column("object").to_pylist()]
    return sorted(set(names))


def test_all_rows_are_read_where_no_object_is_large(table: Path) -> None:
    batches = list(read(row_groups([table], []), []))
    assert sum(map(len, batches)) == 38
    assert keys(batches) == ["a", "b", "c"]


def test_groups_of_nothing_but_a_large_object_are_not_read(table: Path) -> None:
    large = [named("run", "b")]
    groups = row_groups([table], large)
    assert len(groups) < len(row_groups([table], []))
    assert keys(list(read(groups, large))) == ["a", "c"]


@pytest.mark.parametrize("rows", [1, 5, 1000])
def test_batches_are_cut_between_objects_only(table: Path, rows: int) -> None:
    batches = [
        piece
        for batch in read(row_groups([table], []), [])
        for piece in pa.Table.from_batches([batch]).to_batches(max_chunksize=3)
    ]
    tables = list(whole_objects(batches, rows))
    names = [set(each.column("object").to_pylist()) for each in tables]
    assert sum(map(len, tables)) == 38
    assert sum(map(len, names)) == 3
