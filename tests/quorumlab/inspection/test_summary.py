"""What is said of a log at once, and after the scan."""

from dataclasses import replace
from pathlib import Path

import pytest

from quorumlab.inspection.batches import last_batch
from quorumlab.inspection.identity import Voter, identify
from quorumlab.inspection.summary import Summary, committed, notes, summarize
from quorumlab.inspection.target import Target, find_target
from tests.quorumlab.inspection.logs import SEGMENT, cluster, content, write_log
from wire.metadata_records import NoOpRecord

GOLDEN = Path(__file__).parents[2] / "golden"


def target_of(name: str) -> Target:
    target = find_target(str(GOLDEN / name))
    assert isinstance(target, Target)
    return target


def summary_of(target: Target) -> Summary:
    return summarize(target, identify(target))


def test_identity_and_ends_are_known_without_reading_the_log() -> None:
    known = identify(target_of("kraft3/node-1"))
    assert (known.node_id, known.epoch, known.leader) == (1, 2, 2)
    assert (known.start_offset, known.end_offset, known.last_epoch) == (0, 167, 2)
    assert known.epoch_starts == ((1, 0), (2, 99))
    assert [snapshot.end_offset for snapshot in known.snapshots] == [75]
    assert known.problems == []


@pytest.mark.parametrize("tail_bytes", [0, 100, 5 << 20, 20 << 20])
def test_the_last_batch_is_found_before_a_preallocated_tail(
    tmp_path: Path, tail_bytes: int
) -> None:
    path = tmp_path / SEGMENT
    path.write_bytes(content(cluster(), (NoOpRecord(),)))
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size + tail_bytes)  # zeros that take no room
    found = last_batch(path)
    assert found is not None
    assert found.header.base_offset == 7


def test_static_voters_are_those_of_quorum_state_and_leader_change() -> None:
    target = target_of("kraft3/node-1")
    assert identify(target).voters.source == "quorum-state (static voters)"
    voters = summary_of(target).voters
    assert voters.ids == (1, 2, 3)
    assert voters.source == "LeaderChange at offset 99 (static voters)"
    assert [voter.endpoints for voter in voters.voters] == [
        (f"CONTROLLER://127.0.0.1:2011{number}",) for number in (1, 2, 3)
    ]


def test_dynamic_voters_have_directories_and_endpoints() -> None:
    found = summary_of(target_of("dynamic/node-2"))
    assert found.kraft_version == 1
    assert found.voters.is_dynamic
    first, second = found.voters.voters
    assert (first.id, second.id) == (1, 2)
    assert second == Voter(
        id=2,
        directory_id=identify(target_of("dynamic/node-2")).directory_id,
        endpoints=("CONTROLLER://127.0.0.1:20112",),
    )


def test_a_bootstrap_snapshot_is_called_one() -> None:
    known = identify(target_of("standalone/after-format"))
    assert "bootstrap snapshot: only control records, no metadata" in known.what
    assert known.voters.ids == (1,)


@pytest.mark.parametrize(
    ("name", "offset", "why"),
    [
        ("kraft3/node-1", 75, "a snapshot holds nothing else"),
        ("standalone/after-restart", 18, "node 1 is the only voter"),
        ("dynamic/node-2", -1, "one log alone cannot tell"),
    ],
)
def test_what_is_known_to_be_committed(name: str, offset: int, why: str) -> None:
    target = target_of(name)
    found, reason = committed(target, identify(target), summary_of(target))
    assert found == offset
    assert reason.startswith(why)


def test_a_flood_of_no_op_records_is_explained(tmp_path: Path) -> None:
    target = write_log(tmp_path, cluster(), *([(NoOpRecord(),)] * 20))
    (note,) = notes(summary_of(target))
    assert note.startswith("20 of 27 records are NoOpRecords")
    assert "metadata.max.idle.interval.ms" in note
    assert notes(summary_of(target_of("kraft3/node-1"))) == []


def test_the_busiest_second_is_found(tmp_path: Path) -> None:
    target = write_log(tmp_path, *([(NoOpRecord(),)] * 3), [NoOpRecord()] * 9, (NoOpRecord(),))
    assert summary_of(target).busiest.records == 9


def test_problems_are_counted_beyond_those_that_are_told(tmp_path: Path) -> None:
    target = write_log(tmp_path, *([(NoOpRecord(),)] * 300))
    whole = bytearray(target.segments[0].read_bytes())
    size = len(whole) // 301
    for number in range(1, 300, 2):
        whole[number * size + 60] ^= 255
    target.segments[0].write_bytes(whole)
    found = summary_of(replace(target))
    assert found.problems.count > len(found.problems.told) == 100
