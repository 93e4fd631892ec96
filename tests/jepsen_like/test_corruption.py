"""Damage to files of a log: half a batch behind its end, one wrong bit inside."""

from pathlib import Path
from typing import Any

import pytest

from jepsen_like.faults.fault import Fault
from jepsen_like.real.injection.corruption import (
    CORRUPT,
    CUT_OFF,
    damage,
    flip,
    segments_of,
    tear,
)
from jepsen_like.real.layout import NodeLayout
from quorum.core.log_settings import LogSettings
from quorum.log.files.disk import Disk
from quorum.log.files.recovery import CorruptLog, open_log
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


def node_with(directory: Path, *logs: str) -> NodeLayout:
    """The later of the logs are the larger."""
    for count, log in enumerate(logs, 1):
        path = directory / "data" / log
        path.mkdir(parents=True)
        (path / f"{0:020d}.log").write_bytes(bytes(100 * count))
        (path / f"{500:020d}.log").write_bytes(b"")
    return NodeLayout(
        id=1,
        roles=("broker",),
        host="127.0.0.1",
        port=1,
        controller_port=None,
        http_port=2,
        dir=str(directory),
    )


@pytest.mark.parametrize(
    ("logs", "parameters", "damaged"),
    [
        (("orders-0", "__cluster_metadata-0"), {}, "__cluster_metadata-0"),
        (("orders-0", "__cluster_metadata-0"), {"log": "metadata"}, "__cluster_metadata-0"),
        (("__cluster_metadata-0",), {"log": "partition"}, "__cluster_metadata-0"),
        (("a-0", "b-1", "__cluster_metadata-0"), {"log": "partition"}, "b-1"),
        (("a-0", "b-1.0f-delete", "c-0-stray"), {"log": "partition"}, "a-0"),
    ],
)
def test_log_that_is_struck_is_the_largest_of_the_wanted_ones(
    tmp_path: Path, logs: tuple[str, ...], parameters: dict[str, Any], damaged: str
) -> None:
    node = node_with(tmp_path, *logs)
    segments = segments_of(node, Fault(kind="bit-flip", parameters=parameters))
    assert [path.parent.name for path in segments] == [damaged, damaged]
    assert segments[0].name < segments[1].name


@pytest.mark.parametrize(
    ("log", "damaged"), [("__cluster_metadata-0", "oldest"), ("orders-0", "newest with records")]
)
def test_damaged_bit_is_one_that_the_node_reads_when_it_starts(
    tmp_path: Path, log: str, damaged: str
) -> None:
    directory = tmp_path / log
    directory.mkdir()
    oldest = segment_in(directory)
    newest = oldest.rename(directory / f"{3:020d}.log")
    oldest = segment_in(directory)
    (directory / f"{6:020d}.log").write_bytes(b"")
    before = oldest.read_bytes()
    restore = damage(sorted(directory.glob("*.log")))
    changed = {path for path in (oldest, newest) if path.read_bytes() != before}
    assert changed == {oldest if damaged == "oldest" else newest}
    restore()
    assert oldest.read_bytes() == newest.read_bytes() == before


def test_batch_that_has_been_written_again_is_not_restored(tmp_path: Path) -> None:
    path = segment_in(tmp_path)
    before = path.read_bytes()
    restore = damage([path])
    path.write_bytes(before)
    restore()
    assert path.read_bytes() == before


def test_what_is_torn_is_cut_off_aloud_when_the_log_is_opened(tmp_path: Path) -> None:
    path = segment_in(tmp_path)
    tear(path)
    said: list[str] = []
    recovered = open_log(Disk(), str(tmp_path), LogSettings(), recovery_point=3, say=said.append)
    assert recovered.log.end_offset == 3
    assert [word in said[0] for word in (*CUT_OFF, str(tmp_path))] == [True, True]


def test_what_is_damaged_is_refused_when_the_log_is_opened(tmp_path: Path) -> None:
    restore = damage([segment_in(tmp_path)])
    with pytest.raises(CorruptLog) as refused:
        open_log(Disk(), str(tmp_path), LogSettings(), recovery_point=3)
    assert any(word in str(refused.value) for word in CORRUPT)
    restore()
    recovered = open_log(Disk(), str(tmp_path), LogSettings(), recovery_point=3)
    assert recovered.log.end_offset == 3
