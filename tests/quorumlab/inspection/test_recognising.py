"""What a file is, told from its first records."""

from pathlib import Path
from random import Random

import pytest

from jepsen_like.real.layout import ClusterError
from quorumlab.cli import main
from quorumlab.inspection.target import PREVIEW, Target, find_target, why_foreign
from tests.quorumlab.inspection.logs import SEGMENT, cluster, content, leader_change
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


FIRST = assign(leader_change(), base_offset=0, leader_epoch=1)
NO_LOGS = {
    "random": Random(8).randbytes(100_000),
    "jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF\0" + Random(1).randbytes(9000),
    "mpeg": b"\0\0\0\x18ftypmp42" + Random(2).randbytes(9000),
    "text": b"hello\n",
    "json": b'{"offset": 0}\n' * 100,
    "numbers": b"".join(number.to_bytes(8) for number in range(100)),
    "another offset": FIRST[:7] + b"\7" + FIRST[8:-1],
    "a producer": FIRST[:43] + b"\0" + FIRST[44:-1],
    "an older magic": FIRST[:16] + b"\1" + FIRST[17:-1],
    "too large": FIRST[:8] + b"\x7f" + FIRST[9:-1],
}


@pytest.mark.parametrize("name", [SEGMENT, "00000000000000000075-0000000001.checkpoint"])
@pytest.mark.parametrize("kind", NO_LOGS)
def test_what_never_was_a_log_is_not_called_one(kind: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(NO_LOGS[kind])
    if (kind, name) != ("another offset", "00000000000000000075-0000000001.checkpoint"):
        with pytest.raises(ClusterError, match="is no metadata log: no record batch is in it"):
            find_target(str(path))


def test_a_first_batch_that_is_cut_off_anywhere_is_read(tmp_path: Path) -> None:
    """A crash in the very first write leaves a prefix, with zeros behind it if preallocated."""
    path = tmp_path / SEGMENT
    first = 1 + next(at for at, byte in enumerate(FIRST) if byte)
    for size in range(first, len(FIRST)):
        for zeros in (0, 4096):
            path.write_bytes(FIRST[:size] + bytes(zeros))
            assert isinstance(find_target(str(path)), Target), (size, zeros)


@pytest.mark.parametrize("size", [0, 5000])
def test_a_log_that_was_never_written_is_called_so(size: int, tmp_path: Path) -> None:
    path = tmp_path / SEGMENT
    path.write_bytes(bytes(size))
    with pytest.raises(ClusterError, match="nothing has been written to it"):
        find_target(str(path))


def test_a_batch_that_is_whole_somewhere_makes_it_a_log(tmp_path: Path) -> None:
    path = tmp_path / SEGMENT
    path.write_bytes(NO_LOGS["random"] + content(cluster()))
    assert isinstance(find_target(str(path)), Target)


def test_random_bytes_behind_a_snapshot_are_a_violation_and_no_crash(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A last segment without a batch is torn only if it begins like one."""
    directory = GOLDEN / "kraft3/node-1/__cluster_metadata-0"
    log = tmp_path / directory.name
    log.mkdir()
    for path in directory.glob("0*75-*.checkpoint"):
        (log / path.name).write_bytes(path.read_bytes())
    last = log / "00000000000000000075.log"
    last.write_bytes(NO_LOGS["random"])
    assert main(["inspect", "verify", str(log)]) == 4
    assert "L-CRC" in capsys.readouterr().out
    last.write_bytes(assign(leader_change(), base_offset=75, leader_epoch=2)[:-1])
    assert main(["inspect", "verify", str(log)]) == 1
    assert "a write that was cut off, as by a crash" in capsys.readouterr().err
