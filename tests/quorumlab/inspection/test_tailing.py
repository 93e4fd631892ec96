"""Following files that grow, roll and are removed."""

from pathlib import Path

import pytest

from jepsen_like.real.layout import ClusterError
from quorumlab.inspection.batches import Batch, Damage
from quorumlab.inspection.entries import TopicNames
from quorumlab.inspection.tailing import follow
from tests.quorumlab.inspection.logs import SEGMENT, TOPIC, cluster, content
from wire.batch import assign, headers
from wire.metadata_records import NoOpRecord
from wire.primitives import uuid_text

CONTENT = content(cluster(), *([(NoOpRecord(),)] * 8))
PLACES = [position for position, _ in headers(CONTENT)]


def offset(found: Batch | Damage) -> int:
    assert isinstance(found, Batch), found
    return found.header.base_offset


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A directory whose log has three batches so far, and half of a fourth."""
    directory = tmp_path / "__cluster_metadata-0"
    directory.mkdir()
    (directory / SEGMENT).write_bytes(CONTENT[: PLACES[3] + 20])
    return directory


def grow(log: Path, batches: int) -> None:
    (log / SEGMENT).write_bytes(CONTENT[: PLACES[batches]])


def test_what_is_written_later_is_told_from_the_end_on(log: Path) -> None:
    names = TopicNames()
    found = follow(str(log), names, starts_at=None)
    grow(log, 5)
    assert [offset(next(found)) for _ in range(2)] == [8, 9]
    assert names.name_of(uuid_text(TOPIC)) == "orders", "of what came before"


def test_it_starts_where_it_is_told_to(log: Path) -> None:
    found = follow(str(log), TopicNames(), starts_at=1)
    assert [offset(next(found)) for _ in range(2)] == [1, 7]


def test_a_new_segment_is_followed_and_the_old_one_may_go(log: Path) -> None:
    found = follow(str(log), TopicNames(), starts_at=7)
    assert offset(next(found)) == 7
    grow(log, 4)
    assert offset(next(found)) == 8
    (log / SEGMENT.replace("00.log", "09.log")).write_bytes(CONTENT[PLACES[4] : PLACES[6]])
    assert [offset(next(found)) for _ in range(2)] == [9, 10]
    (log / SEGMENT).unlink()
    (log / SEGMENT.replace("00.log", "11.log")).write_bytes(CONTENT[PLACES[6] :])
    assert [offset(next(found)) for _ in range(3)] == [11, 12, 13]


def test_a_truncated_log_is_told_and_followed_again(log: Path) -> None:
    """What a follower does when another leader has something else in that place."""
    found = follow(str(log), TopicNames(), starts_at=8)
    grow(log, 6)
    assert [offset(next(found)) for _ in range(3)] == [8, 9, 10]
    other = assign(CONTENT[PLACES[4] : PLACES[6]], base_offset=9, leader_epoch=2)
    (log / SEGMENT).write_bytes(CONTENT[: PLACES[4]] + other)
    damage = next(found)
    assert isinstance(damage, Damage)
    assert (damage.position, damage.offset) == (PLACES[4], 9)
    assert "truncated" in str(damage)
    again = [next(found) for _ in range(2)]
    assert [offset(each) for each in again] == [9, 10]
    assert {each.header.leader_epoch for each in again if isinstance(each, Batch)} == {2}


def test_a_truncation_may_take_whole_segments(log: Path) -> None:
    found = follow(str(log), TopicNames(), starts_at=8)
    grow(log, 4)
    second = log / SEGMENT.replace("00.log", "09.log")
    second.write_bytes(CONTENT[PLACES[4] : PLACES[6]])
    assert [offset(next(found)) for _ in range(3)] == [8, 9, 10]
    second.unlink()
    other = assign(CONTENT[PLACES[3] : PLACES[4]], base_offset=8, leader_epoch=2)
    (log / SEGMENT).write_bytes(CONTENT[: PLACES[3]] + other)
    assert "truncated" in str(next(found))
    assert offset(next(found)) == 8


def test_a_log_that_goes_on_from_a_snapshot_tells_the_gap(log: Path) -> None:
    found = follow(str(log), TopicNames(), starts_at=7)
    assert offset(next(found)) == 7
    (log / "00000000000000000011-0000000001.checkpoint").touch()
    (log / SEGMENT.replace("00.log", "11.log")).write_bytes(CONTENT[PLACES[6] :])
    (log / SEGMENT).unlink()
    assert "the log goes on with offset 11: a snapshot has the rest" in str(next(found))
    assert offset(next(found)) == 11


def test_a_log_that_is_gone_ends_it(log: Path) -> None:
    found = follow(str(log), TopicNames(), starts_at=7)
    assert offset(next(found)) == 7
    (log / SEGMENT).unlink()
    with pytest.raises(ClusterError, match="no log in it any longer"):
        next(found)


def test_a_snapshot_alone_is_refused() -> None:
    golden = Path(__file__).parents[2] / "golden/standalone/after-format/bootstrap.checkpoint"
    with pytest.raises(ClusterError, match="never grows"):
        follow(str(golden), TopicNames(), starts_at=None)
