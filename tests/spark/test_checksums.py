"""A table is read only as it was written: every byte of it is summed up."""

import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from jepsen_like.histories.history import MalformedHistory
from spark import table_files
from spark.table_files import is_intact, seal, summed_up
from tests.spark.histories import random_history
from tests.spark.tables import table_of, write_table

SEED, PLACES = 15, 600


def is_damaged(path: Path) -> bool:
    try:
        return not all(map(is_intact, summed_up(path)))
    except MalformedHistory:
        return True


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write_table({"run": random_history(1)}, tmp_path / "table")
    return tmp_path / "table"


def test_one_flipped_bit_anywhere_is_noticed(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At random places, and at every one of the last, where sums and their own sum are."""
    monkeypatch.setattr(table_files, "STRETCH_BYTES", 1000)
    again = table.with_name("again")
    pq.write_table(pq.read_table(table), again)
    seal(again)
    content = again.read_bytes()
    assert not is_damaged(again)
    chosen = random.Random(SEED)
    footer = content.rindex(b"QLSUMS1\n")
    places = {*chosen.sample(range(len(content)), PLACES), *range(footer - 40, footer + 40)}
    places |= set(range(len(content) - 40, len(content)))
    for place in sorted(places):
        flipped = bytearray(content)
        flipped[place] ^= 1 << chosen.randrange(8)
        again.write_bytes(flipped)
        assert is_damaged(again), f"byte {place}, seed {SEED}"


@pytest.mark.parametrize("kept", [0, 3, 11, 5000])
def test_what_is_cut_off_is_noticed(table: Path, kept: int) -> None:
    table.write_bytes(table.read_bytes()[:kept])
    assert is_damaged(table)


def test_readers_of_parquet_read_a_table_with_sums(table: Path) -> None:
    assert pq.read_table(table).equals(table_of(random_history(1), "run"))
