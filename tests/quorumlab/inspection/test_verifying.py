"""Logs of Apache Kafka are whole and true; a damaged one is found out."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from quorumlab.inspection.target import Target, find_target
from quorumlab.inspection.verifying import Verified, verify

GOLDEN = Path(__file__).parents[2] / "golden"
LOGS = (
    *("kraft3/node-1", "kraft3/node-2", "kraft3/node-3", "killed/node-1"),
    *("versions/node-1", "dynamic/node-1", "dynamic/node-2", "data/node-1"),
)


def target_of(path: Path) -> Target:
    target = find_target(str(path))
    assert isinstance(target, Target)
    return target


def rules(target: Target) -> list[str]:
    return [violation.rule for violation in verify(target, Verified())]


@pytest.mark.parametrize("name", [*LOGS, "standalone/after-restart"])
def test_kafkas_log_violates_nothing(name: str) -> None:
    seen = Verified()
    assert list(verify(target_of(GOLDEN / name), seen)) == []
    assert seen.records > 10


def test_kafkas_snapshots_are_what_its_log_says() -> None:
    seen = Verified()
    assert list(verify(target_of(GOLDEN / "kraft3/node-3"), seen)) == []
    assert seen.snapshots_compared == 2


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    shutil.copytree(GOLDEN / "kraft3/node-1", tmp_path / "node")
    return tmp_path / "node"


def test_a_flipped_bit_is_a_wrong_checksum(copied: Path) -> None:
    segment = target_of(copied).segments[0]
    content = bytearray(segment.read_bytes())
    content[2000] ^= 1
    segment.write_bytes(content)
    assert rules(target_of(copied))[0] == "L-CRC"


def test_a_lost_segment_is_a_gap(copied: Path) -> None:
    target = target_of(copied)
    assert "L-START" in rules(replace(target, segments=target.segments[1:], snapshots=()))


def test_a_snapshot_of_another_log_is_found_out(copied: Path) -> None:
    target = target_of(copied)
    for segment in target.segments:  # the snapshot of this node, the log of another cluster
        segment.unlink()
    for segment in target_of(GOLDEN / "killed/node-1").segments:
        shutil.copy(segment, target.segments[0].parent)
    snapshot = target.snapshots[0]
    snapshot.rename(snapshot.with_name("00000000000000000015-0000000001.checkpoint"))
    assert "S-IMAGE" in rules(target_of(copied))


def test_a_snapshot_without_its_end_is_not_whole(copied: Path) -> None:
    snapshot = target_of(copied).snapshots[0]
    snapshot.write_bytes(snapshot.read_bytes()[:-5])
    assert "S-WHOLE" in rules(target_of(copied))
