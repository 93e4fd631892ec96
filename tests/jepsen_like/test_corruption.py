"""Damage to files of the metadata log: half a batch behind its end, one wrong bit inside."""

from pathlib import Path

from jepsen_like.real.injection.corruption import flip, tear
from wire import batch


def segment_in(directory: Path, *, zeros: int = 0) -> Path:
    first = batch.data_batch([b"a" * 40, b"b" * 40], timestamp_ms=1)
    second = batch.assign(batch.data_batch([b"c"], timestamp_ms=2), base_offset=2, leader_epoch=1)
    path = directory / "00000000000000000000.log"
    path.write_bytes(first + second + bytes(zeros))
    return path


def test_torn_batch_stands_behind_the_last_one_and_would_follow_it(tmp_path: Path) -> None:
    path = segment_in(tmp_path, zeros=1000)
    before = path.read_bytes()
    tear(path)
    after = path.read_bytes()
    end = len(before) - 1000
    assert after[:end] == before[:end]
    assert len(after) == len(before), "it lies in what was preallocated"
    torn = batch.read_header(after, end)
    assert torn.base_offset == 3
    assert not batch.is_intact(after, end, torn)


def test_torn_batch_makes_a_file_longer_that_had_ended(tmp_path: Path) -> None:
    path = segment_in(tmp_path)
    before = path.read_bytes()
    tear(path)
    assert path.read_bytes()[: len(before)] == before
    assert path.stat().st_size > len(before)


def test_segment_without_batches_is_not_torn(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000007.log"
    path.write_bytes(bytes(100))
    tear(path)
    assert path.read_bytes() == bytes(100)


def test_flipped_bit_is_one_bit_and_comes_back(tmp_path: Path) -> None:
    path = segment_in(tmp_path)
    before = path.read_bytes()
    flip(path, 70)
    changed = [place for place, byte in enumerate(path.read_bytes()) if byte != before[place]]
    assert changed == [70]
    flip(path, 70)
    assert path.read_bytes() == before
