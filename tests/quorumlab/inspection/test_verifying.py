"""Logs of Apache Kafka are whole and true; a damaged one is found out."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from quorumlab.inspection.batches import Batch, read_batches
from quorumlab.inspection.target import Target, find_target
from quorumlab.inspection.verifying import Verified, verify
from wire.batch import write_header

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


def without_batch(segment: Path, number: int) -> None:
    batches = [each for each in read_batches(segment) if isinstance(each, Batch)]
    del batches[number]
    segment.write_bytes(b"".join(batch.content for batch in batches))


def test_a_batch_that_is_missing_is_a_gap(copied: Path) -> None:
    without_batch(target_of(copied).segments[0], 5)
    assert "L-OFFSET" in rules(target_of(copied))


def test_a_segment_begins_where_its_name_says(copied: Path) -> None:
    without_batch(target_of(copied).segments[1], 0)
    assert "L-OFFSET" in rules(target_of(copied))


@pytest.mark.parametrize("epoch", [0, 7])
def test_an_epoch_that_nobody_began_is_found_out(copied: Path, epoch: int) -> None:
    segment = target_of(copied).segments[0]
    (batch, *_) = [each for each in read_batches(segment) if each.position > 3000]
    content = bytearray(segment.read_bytes())
    content[batch.position + 12 : batch.position + 16] = epoch.to_bytes(4)  # outside the checksum
    segment.write_bytes(content)
    assert "L-EPOCH" in rules(target_of(copied))


def test_an_epoch_cache_that_says_something_else_is_told(copied: Path) -> None:
    path = copied / "__cluster_metadata-0/leader-epoch-checkpoint"
    path.write_text("0\n2\n1 0\n2 98\n")
    (violation,) = verify(target_of(copied), Verified())
    assert violation.rule == "L-CACHE"
    assert "(2, 98)" in violation.detail


def test_a_torn_tail_is_no_violation_and_yet_told(copied: Path) -> None:
    segment = target_of(copied).segments[-1]
    segment.write_bytes(segment.read_bytes()[:-7])
    seen = Verified()
    assert list(verify(target_of(copied), seen)) == []
    assert f"{segment} at byte" in seen.torn_tail


def test_what_cannot_be_told_is_looked_at_again_from_the_next_snapshot(copied: Path) -> None:
    """A record of a later release, before the snapshot at 75."""
    segment = target_of(copied).segments[0]
    content = bytearray(segment.read_bytes())
    batches = [each for each in read_batches(segment) if isinstance(each, Batch)]
    early = next(each for each in batches if each.header.base_offset == 33)
    at = content.index(b"\x01\x02\x00", early.position + 61)
    content[at + 1] = 99  # the key of a TopicRecord; none is known of that number
    batch = memoryview(content)[early.position : early.position + early.header.size_bytes]
    write_header(batch, early.header)
    segment.write_bytes(content)
    seen = Verified()
    assert list(verify(target_of(copied), seen)) == []
    assert seen.unknown_from == 33
    assert seen.snapshots_compared == 0, "it was taken for true"
    segment.write_bytes(segment.read_bytes()[: batches[-1].position])
    assert "L-OFFSET" in rules(target_of(copied))


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


@pytest.mark.parametrize("number", range(1, 50))
def test_what_was_lost_accuses_nothing_behind_it(copied: Path, number: int) -> None:
    segment = target_of(copied).segments[0]
    content = bytearray(segment.read_bytes())
    batches = [each for each in read_batches(segment) if isinstance(each, Batch)]
    content[batches[number].position + 70] ^= 1
    segment.write_bytes(content)
    (violation,) = verify(target_of(copied), Verified())
    assert violation.rule == "L-CRC"
    following = batches[number + 1].header.base_offset
    assert violation.detail.endswith(f"bytes skipped, up to offset {following}")


def test_damage_before_another_segment_is_no_gap(copied: Path) -> None:
    segment = target_of(copied).segments[0]
    segment.write_bytes(segment.read_bytes() + b"junk")
    assert rules(target_of(copied)) == ["L-CRC"]
