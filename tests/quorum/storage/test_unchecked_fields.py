"""The offset and the epoch of a batch lie outside its checksum; the metadata log looks at them."""

from pathlib import Path

import pytest

from quorum.core.effects import EpochStart
from quorum.core.log_settings import LogSettings
from quorum.core.storage import METADATA_LOG
from quorum.log.files.checkpoints import EPOCHS
from quorum.log.files.file_storage import FileStorage
from quorum.log.files.recovery import CorruptLog
from tests.quorum.log_files import batch, opened
from tests.quorum.storages import SETTINGS, Storage
from wire.batch import headers
from wire.primitives import METADATA_TOPIC_ID

OFFSET, EPOCH = 5, 15  # a byte of each, in a header


def flip(segment: Path, *, batch: int, byte: int) -> None:
    content = bytearray(segment.read_bytes())
    position = [position for position, _ in headers(bytes(content))][batch]
    content[position + byte] ^= 1
    segment.write_bytes(content)


def damaged(path: Path, *, batch: int, byte: int) -> FileStorage:
    """Three synced batches, then a bit flips in one of them."""
    storage = Storage(path)
    storage.files.load(METADATA_LOG, METADATA_TOPIC_ID)
    storage.do(*(storage.append(offset, epoch=4) for offset in range(3)))
    storage.close()
    (segment,) = storage.log_path().glob("*.log")
    flip(segment, batch=batch, byte=byte)
    return FileStorage(str(path), settings=SETTINGS)


@pytest.mark.parametrize("byte", [OFFSET, EPOCH], ids=["offset", "epoch"])
@pytest.mark.parametrize("batch", range(3))
def test_flipped_bit_is_refused_wherever_it_is(batch: int, byte: int, tmp_path: Path) -> None:
    with pytest.raises(CorruptLog):
        damaged(tmp_path, batch=batch, byte=byte).load(METADATA_LOG, METADATA_TOPIC_ID)


def written(path: Path, *, segment_bytes: int) -> LogSettings:
    settings = LogSettings(segment_bytes=segment_bytes)
    log = opened(str(path), settings)
    for offset in range(4):
        log.append(batch(offset))
    log.finish()
    return settings


def test_partition_log_takes_a_batch_for_wrong_before_it_drops_those_behind(
    tmp_path: Path,
) -> None:
    """Offset 1 has become 65537: what follows is lower, though it is the first that is wrong."""
    settings = written(tmp_path / "log", segment_bytes=1000)
    (segment,) = (tmp_path / "log").glob("*.log")
    flip(segment, batch=1, byte=OFFSET)
    with pytest.raises(CorruptLog, match="ends at offset 1"):
        opened(str(tmp_path / "log"), settings, recovery_point=4)


@pytest.mark.parametrize(
    ("offsets", "end_offset"),
    [
        *(((0, 5, refused), 1) for refused in (1, 4, 5)),
        *(((0, 1, refused), 2) for refused in (0, 1)),
    ],
)
def test_batch_is_taken_for_wrong_if_it_leaves_out_what_follows(
    offsets: tuple[int, ...], end_offset: int, tmp_path: Path
) -> None:
    """Else the one that follows is wrong."""
    (tmp_path / "log").mkdir()
    segment = tmp_path / "log" / f"{0:020d}.log"
    segment.write_bytes(b"".join(map(batch, offsets)))
    with pytest.raises(CorruptLog, match=f"ends at offset {end_offset}, "):
        opened(str(tmp_path / "log"), recovery_point=end_offset + 1)


def test_epochs_behind_the_recovery_point_may_be_of_records_that_are_gone(tmp_path: Path) -> None:
    """A truncation lowers the recovery point; the epochs follow with the next sync."""
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / f"{0:020d}.log").write_bytes(batch(0, epoch=1) + batch(1, epoch=3))
    (tmp_path / "log" / EPOCHS).write_bytes(b"0\n2\n1 0\n2 1\n")
    log = opened(str(tmp_path / "log"), recovery_point=1, reads_all=True)
    assert (log.end_offset, log.epochs.entries) == (2, (EpochStart(1, 0), EpochStart(3, 1)))


def test_the_same_at_the_end_of_a_segment(tmp_path: Path) -> None:
    settings = written(tmp_path / "log", segment_bytes=200)
    segments = sorted((tmp_path / "log").glob("*.log"))
    assert len(segments) == 2
    flip(segments[0], batch=1, byte=OFFSET)
    with pytest.raises(CorruptLog, match="ends at offset 1"):
        opened(str(tmp_path / "log"), settings, recovery_point=4)


def test_what_was_never_synced_is_cut_off_all_the_same(tmp_path: Path) -> None:
    settings = written(tmp_path / "log", segment_bytes=1000)
    (segment,) = (tmp_path / "log").glob("*.log")
    flip(segment, batch=2, byte=OFFSET)
    assert opened(str(tmp_path / "log"), settings, recovery_point=1).end_offset > 2


@pytest.mark.parametrize("reads_all", [False, True])
def test_unsynced_batch_without_its_first_bytes_is_cut_off(reads_all: bool, tmp_path: Path) -> None:
    """A sector that is lost may end in a header, and take nothing that the checksum covers."""
    settings = written(tmp_path / "log", segment_bytes=1000)
    (segment,) = (tmp_path / "log").glob("*.log")
    content = bytearray(segment.read_bytes())
    position = [position for position, _ in headers(bytes(content))][3]
    content[position : position + 8] = bytes(8)
    segment.write_bytes(content)
    log = opened(str(tmp_path / "log"), settings, recovery_point=3, reads_all=reads_all)
    assert log.end_offset == 3
