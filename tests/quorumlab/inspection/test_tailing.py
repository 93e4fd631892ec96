"""Following files that grow, roll and are removed."""

from pathlib import Path

import pytest

from jepsen_like.real.layout import ClusterError
from quorumlab.inspection.batches import Batch, Damage
from quorumlab.inspection.tailing import follow
from quorumlab.inspection.telling import TopicNames
from tests.quorumlab.inspection.logs import SEGMENT, TOPIC, cluster, content
from wire.batch import headers
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


def test_a_snapshot_alone_is_refused() -> None:
    golden = Path(__file__).parents[2] / "golden/standalone/after-format/bootstrap.checkpoint"
    with pytest.raises(ClusterError, match="never grows"):
        follow(str(golden), TopicNames(), starts_at=None)
