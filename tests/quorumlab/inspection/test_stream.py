"""A node's log as one stream of records."""

from pathlib import Path

import pytest

from jepsen_like.real.layout import ClusterError
from quorum.core.storage import METADATA_LOG
from quorumlab.inspection.stream import whole_entries
from tests.quorumlab.inspection.logs import SEGMENT, cluster, write_log
from wire.metadata_records import NoOpRecord

GOLDEN = Path(__file__).parents[2] / "golden"


def test_a_log_of_apache_kafka_is_read_whole_and_in_order() -> None:
    offsets = [entry.offset for entry in whole_entries(GOLDEN / "kraft3" / "node-2")]
    assert offsets == list(range(offsets[0], offsets[0] + len(offsets)))


def test_what_a_node_is_just_writing_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / METADATA_LOG
    log.mkdir()
    write_log(log, cluster(), (NoOpRecord(),))
    segment = log / SEGMENT
    whole = len(list(whole_entries(tmp_path)))
    segment.write_bytes(segment.read_bytes()[:-1])
    assert len(list(whole_entries(tmp_path))) == whole - 1


def test_a_directory_without_a_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ClusterError):
        whole_entries(tmp_path)
