"""What a file is, told from its first records."""

from pathlib import Path

import pytest

from quorumlab.inspection.recognising import PREVIEW, why_foreign
from tests.quorumlab.inspection.logs import cluster, content, leader_change
from wire.batch import Record, assign, build_batch, data_batch

GOLDEN = Path(__file__).parents[2] / "golden"
ANOTHER = "is the log of another topic, not of the metadata"


def reason(tmp_path: Path, *batches: bytes) -> str | None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(assign(b"".join(batches), base_offset=0, leader_epoch=1))
    return why_foreign(path)


@pytest.mark.parametrize(
    "path",
    [
        *GOLDEN.glob("*/node-*/__cluster_metadata-0/*.log"),
        *GOLDEN.glob("*/*/__cluster_metadata-0/*.checkpoint"),
        *GOLDEN.glob("*/*/bootstrap.checkpoint"),
    ],
    ids=lambda path: str(path.relative_to(GOLDEN)),
)
def test_kafkas_metadata_is_recognised(path: Path) -> None:
    assert why_foreign(path) is None


@pytest.mark.parametrize("name", ["t-0", "rolled-0", "__consumer_offsets-0", "stamped-0"])
def test_kafkas_other_topics_are_recognised(name: str) -> None:
    (path, *_) = sorted((GOLDEN / "data/node-1" / name).glob("*.log"))
    assert why_foreign(path) == ANOTHER


def test_records_of_a_later_release_are_metadata(tmp_path: Path) -> None:
    assert reason(tmp_path, data_batch([b"\x01\x7f\x00new"], timestamp_ms=1)) is None


def test_the_preview_of_kraft_is_called_so(tmp_path: Path) -> None:
    old = data_batch([b"\x00\x02\x00topic"], timestamp_ms=1)
    assert reason(tmp_path, leader_change(), old) == PREVIEW
    assert reason(tmp_path, old) == ANOTHER, "anybody may write zeros"


def test_keys_and_values_of_people_are_another_topic(tmp_path: Path) -> None:
    keyed = build_batch([Record(key=b"k", value=b"\x01\x02\x00")], timestamp_ms=1)
    assert reason(tmp_path, keyed) == ANOTHER
    deleted = build_batch([Record(value=None)], timestamp_ms=1)
    assert reason(tmp_path, deleted) == ANOTHER
    plain = data_batch([b'{"order": 1}'], timestamp_ms=1)
    assert reason(tmp_path, plain) == ANOTHER


def test_nothing_and_damage_tell_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(bytes(5000))
    assert why_foreign(path) is None
    broken = bytearray(content(cluster()))
    broken[-3] ^= 1
    path.write_bytes(broken)
    assert why_foreign(path) is None
