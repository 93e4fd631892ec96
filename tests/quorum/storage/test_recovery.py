"""What is left of a log after a crash: every cut, every flipped byte, every missing file."""

from dataclasses import replace
from pathlib import Path

import pytest

from quorum.core.effects import EpochStart
from quorum.core.log_settings import LogSettings
from quorum.core.producers import ProducerBatch, ProducerEntry
from quorum.core.storage import StorageError
from quorum.log.files import recovery
from quorum.log.files.checkpoints import EPOCHS
from quorum.log.files.recovery import CorruptLog
from tests.quorum.log_files import SMALL, batch, everything, opened, producers_in

FIRST = f"{0:020d}.log"
BATCHES = [batch(0, size=20), batch(1, records=2, size=5), batch(3, size=20)]
ENDS = [len(b"".join(BATCHES[: i + 1])) for i in range(3)]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "t-0"


def write(directory: Path, content: bytes, base_offset: int = 0) -> None:
    directory.mkdir(exist_ok=True)
    Path(directory, f"{base_offset:020d}.log").write_bytes(content)


def whole_up_to(size: int) -> bytes:
    """What of BATCHES lies whole within the first `size` bytes."""
    return b"".join(BATCHES)[: max([end for end in ENDS if end <= size], default=0)]


def test_every_cut_leaves_the_whole_batches_before_it(directory: Path) -> None:
    content = b"".join(BATCHES)
    for size in range(len(content)):
        write(directory, content[:size])
        log = opened(str(directory))
        assert everything(log) == whole_up_to(size), size
        assert Path(directory, FIRST).stat().st_size == len(whole_up_to(size))
        log.append(batch(log.end_offset))
        log.forget()


def test_every_cut_before_zeros_is_the_same(directory: Path) -> None:
    """A preallocated file: a torn write is followed by zeros, not by the end of the file."""
    content = b"".join(BATCHES)
    for size in range(0, len(content), 3):
        write(directory, content[:size] + bytes(500))
        # Zeros that a write would have put there anyway do not make it torn.
        expected = [b"".join(BATCHES)[:end] for end in (0, *ENDS)]
        log = opened(str(directory))
        assert everything(log) in expected
        assert everything(log).startswith(whole_up_to(size))
        log.forget()


def test_every_flipped_byte_ends_the_log_before_its_batch(directory: Path) -> None:
    """Base offset, length and leader epoch are outside the checksum: of these the offset and the
    length are checked by what they lead to, and the epoch cannot be."""
    content = b"".join(BATCHES)
    start = ENDS[0]
    for at in range(start, ENDS[1]):
        if 12 <= at - start < 16:
            continue
        damaged = bytearray(content)
        damaged[at] ^= 0x81
        write(directory, bytes(damaged))
        log = opened(str(directory))
        found = everything(log)
        log.forget()
        Path(directory, EPOCHS).unlink(missing_ok=True)
        if at - start < 8 and found != whole_up_to(start):
            continue  # a larger base offset is a gap, as compaction leaves them
        assert found == whole_up_to(start), at - start


def test_zeros_are_cut_off_without_a_word(directory: Path) -> None:
    write(directory, b"".join(BATCHES) + bytes(1000))
    said: list[str] = []
    assert everything(opened(str(directory), said=said)) == b"".join(BATCHES)
    assert said == []


def test_torn_tail_is_cut_off_with_a_line(directory: Path) -> None:
    write(directory, b"".join(BATCHES)[:-5])
    said: list[str] = []
    opened(str(directory), said=said)
    assert len(said) == 1
    assert FIRST in said[0]
    assert f"byte {ENDS[1]}" in said[0]


def test_damage_behind_the_recovery_point_is_a_torn_tail_even_with_batches_behind_it(
    directory: Path,
) -> None:
    """A power failure may keep a later page of unsynced writes and lose an earlier one."""
    content = bytearray(b"".join(BATCHES))
    content[ENDS[0] + 70] ^= 1
    write(directory, bytes(content))
    log = opened(str(directory), recovery_point=1)
    assert everything(log) == BATCHES[0]


def test_damage_below_the_recovery_point_is_refused_and_nothing_is_changed(
    directory: Path,
) -> None:
    content = bytearray(b"".join(BATCHES))
    content[ENDS[0] + 70] ^= 1
    write(directory, bytes(content))
    with pytest.raises(CorruptLog, match=f"{FIRST} is damaged at byte {ENDS[0]}.*synced up to 3"):
        opened(str(directory), recovery_point=3)
    assert Path(directory, FIRST).read_bytes() == bytes(content)


def test_log_that_ends_before_its_recovery_point_is_refused(directory: Path) -> None:
    write(directory, b"".join(BATCHES[:2]))
    with pytest.raises(CorruptLog, match="ends at offset 3, but it was synced up to 4"):
        opened(str(directory), recovery_point=4)


def test_zeros_below_the_recovery_point_are_refused(directory: Path) -> None:
    write(directory, BATCHES[0] + bytes(500))
    with pytest.raises(CorruptLog, match="synced up to 4"):
        opened(str(directory), recovery_point=4)


def test_removed_directory_begins_anew_whatever_its_recovery_point(directory: Path) -> None:
    log = opened(str(directory), recovery_point=4)
    assert log.end_offset == 0


def test_without_recovery_point_an_intact_batch_behind_the_damage_is_refused(
    directory: Path,
) -> None:
    content = bytearray(b"".join(BATCHES))
    content[ENDS[0] + 70] ^= 1
    write(directory, bytes(content))
    with pytest.raises(CorruptLog, match=f"intact batch follows at byte {ENDS[1]}"):
        opened(str(directory), recovery_point=None)


def test_intact_batch_is_found_where_its_epoch_looks_like_the_magic(directory: Path) -> None:
    """The byte before the magic is the last of the leader epoch: 2, as the magic is."""
    content = bytearray(batch(0, epoch=2) + batch(1, epoch=2))
    content[len(content) // 2 - 1] ^= 1  # the end of the first
    write(directory, bytes(content))
    with pytest.raises(CorruptLog, match="intact batch follows"):
        opened(str(directory), recovery_point=None)


def test_without_recovery_point_a_torn_tail_is_cut_off(directory: Path) -> None:
    write(directory, b"".join(BATCHES)[:-1])
    assert everything(opened(str(directory), recovery_point=None)) == b"".join(BATCHES[:2])


def test_without_recovery_point_a_segment_behind_the_damage_is_refused(directory: Path) -> None:
    write(directory, b"".join(BATCHES)[:-1])
    write(directory, batch(4), base_offset=4)
    with pytest.raises(CorruptLog, match="goes on behind it"):
        opened(str(directory), recovery_point=None)


def test_segments_behind_the_damage_go_with_it(directory: Path) -> None:
    write(directory, b"".join(BATCHES)[:-1])
    write(directory, batch(4), base_offset=4)
    write(directory, batch(5), base_offset=5)
    log = opened(str(directory))
    assert everything(log) == b"".join(BATCHES[:2])
    assert sorted(p.name for p in directory.glob("*.log")) == [FIRST]


def test_segments_that_go_are_told_also_where_zeros_end_the_one_before(directory: Path) -> None:
    write(directory, BATCHES[0] + bytes(500))
    write(directory, batch(4), base_offset=4)
    said: list[str] = []
    opened(str(directory), said=said)
    assert len(said) == 1
    assert f"cut off {500 + len(batch(4))} bytes" in said[0]


@pytest.mark.parametrize("base_offset", [3, 5])
def test_segment_that_does_not_begin_where_the_last_one_ends_goes(
    directory: Path, base_offset: int
) -> None:
    write(directory, b"".join(BATCHES))
    write(directory, batch(base_offset), base_offset=base_offset)
    assert everything(opened(str(directory))) == b"".join(BATCHES)
    assert sorted(p.name for p in directory.glob("*.log")) == [FIRST]


def test_empty_segment_after_a_roll_is_kept(directory: Path) -> None:
    write(directory, b"".join(BATCHES))
    write(directory, b"", base_offset=4)
    log = opened(str(directory))
    assert (log.active_offset, log.end_offset) == (4, 4)


def test_epochs_are_rebuilt_from_the_batches(directory: Path) -> None:
    write(directory, batch(0, epoch=2) + batch(1, epoch=5))
    log = opened(str(directory))
    assert list(log.epochs.entries) == [EpochStart(2, 0), EpochStart(5, 1)]
    assert Path(directory, EPOCHS).read_bytes() == b"0\n2\n2 0\n5 1\n"


@pytest.mark.parametrize(
    "content", [b"0\n1\n9 9\n", b"0\n1\n9 0\n", b"garbage", b"0\n2\n2 0\n5 1\n7 2\n"]
)
def test_wrong_epoch_file_is_replaced_by_what_the_batches_say(
    directory: Path, content: bytes
) -> None:
    write(directory, batch(0, epoch=2) + batch(1, epoch=5))
    Path(directory, EPOCHS).write_bytes(content)
    log = opened(str(directory))
    assert list(log.epochs.entries) == [EpochStart(2, 0), EpochStart(5, 1)]


def test_log_that_has_lost_all_it_had_knows_no_epoch(directory: Path) -> None:
    """Nothing was synced; what its epochs say may have come to the medium before."""
    write(directory, b"")
    Path(directory, EPOCHS).write_bytes(b"0\n1\n1 0\n")
    assert opened(str(directory)).epochs.latest is None


def test_segments_below_the_recovery_point_are_taken_on_trust(directory: Path) -> None:
    log = opened(str(directory))
    for i in range(12):
        log.append(batch(i, size=300, epoch=1 + i // 5))
    log.finish()
    unsynced = log.unsynced()
    assert unsynced.epochs is not None
    Path(directory, EPOCHS).write_bytes(b"0\n3\n1 0\n2 5\n3 10\n")
    first = bytearray(Path(directory, FIRST).read_bytes())
    first[100] ^= 1
    Path(directory, FIRST).write_bytes(first)
    again = opened(str(directory), recovery_point=12)
    assert again.end_offset == 12
    assert again.epochs.entries == log.epochs.entries
    with pytest.raises(CorruptLog):
        opened(str(directory), recovery_point=12, reads_all=True)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("content", [None, b"", b"\0" * 24, b"\7" * 24, b"\0" * 7])
def test_unsound_index_of_a_trusted_segment_is_rebuilt(
    directory: Path, suffix: str, content: bytes | None
) -> None:
    log = opened(str(directory))
    for i in range(30):
        log.append(batch(i, size=60, timestamp_ms=1000 + i))
    log.finish()
    path = Path(directory, f"{0:020d}{suffix}")
    good = path.read_bytes()
    assert good
    Path(directory, EPOCHS).write_bytes(b"0\n1\n1 0\n")
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    said: list[str] = []
    opened(str(directory), recovery_point=30, said=said)
    if content == b"" and suffix == ".timeindex":
        return  # nothing is wrong with batches that have no timestamps
    assert path.read_bytes() == good
    assert any("rebuilding the indexes" in line for line in said)


def test_leftovers_of_interrupted_operations_are_removed(directory: Path) -> None:
    write(directory, BATCHES[0])
    for name in ("quorum-state.tmp", f"{5:020d}.log.deleted", "x.checkpoint.part"):
        Path(directory, name).write_bytes(b"x")
    opened(str(directory))
    assert sorted(p.name for p in directory.iterdir()) == [FIRST, EPOCHS]


def test_producers_are_rebuilt_from_the_headers(directory: Path) -> None:
    log = opened(str(directory))
    for i in range(7):
        log.append(batch(2 * i, records=2, producer=(77, 1, 2 * i), timestamp_ms=500 + i))
    log.append(batch(14, producer=(88, 0, 0)))
    log.append(batch(15, producer=(88, 1, 0), timestamp_ms=9))
    log.append(batch(16, producer=(99, 3, -1)))
    found = {
        entry.producer_id: entry._replace(earlier=()) for entry in producers_in(str(directory))
    }
    kept = tuple(ProducerBatch(2 * i, 2 * i + 1, 2 * i + 1, 500 + i) for i in range(7))
    assert found[77] == ProducerEntry(77, 1, kept)
    assert found[88] == ProducerEntry(88, 1, (ProducerBatch(0, 0, 15, 9),))
    assert found[99] == ProducerEntry(99, 3, ()), "it has no sequence"


def test_five_batches_of_a_producer_are_known_though_each_fills_a_segment(directory: Path) -> None:
    """Found by cluster seed 191002414 of the simulator: a batch that was in the log was refused as
    out of order."""
    log = opened(str(directory), replace(SMALL, segment_bytes=1))
    for i in range(7):
        log.append(batch(i, producer=(77, 1, i)))
    assert len(list(directory.glob("*.log"))) == 7
    Path(directory, EPOCHS).write_bytes(b"0\n1\n1 0\n")  # else all is read
    (found,) = producers_in(str(directory), recovery_point=7)
    assert [each.base_sequence for each in found.batches] == [0, 1, 2, 3, 4, 5, 6]


def test_a_large_segment_is_not_read_for_its_producers(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "_PRODUCERS_BYTES", 1000)
    log = opened(str(directory), replace(SMALL, segment_bytes=1))
    log.append(batch(0, producer=(77, 1, 0), size=2000))
    for i in range(1, 5):
        log.append(batch(i, producer=(88, 1, i - 1)))
    Path(directory, EPOCHS).write_bytes(b"0\n1\n1 0\n")  # else all is read
    (found,) = producers_in(str(directory), recovery_point=5)
    assert (found.producer_id, len(found.batches)) == (88, 4)


def test_log_whose_older_producers_cannot_be_read_is_opened(directory: Path) -> None:
    log = opened(str(directory), replace(SMALL, segment_bytes=1))
    for i in range(4):
        log.append(batch(i, producer=(77, 1, i)))
    first = Path(directory, FIRST)
    damaged = bytearray(first.read_bytes())
    damaged[8:12] = b"\xff" * 4  # its length
    said: list[str] = []
    opened(str(directory), recovery_point=4)  # makes the indexes sound
    first.write_bytes(damaged)
    opened(str(directory), recovery_point=4, said=said)
    assert any("producers are not known" in line for line in said)


def test_unreadable_directory_is_named(tmp_path: Path) -> None:
    file = tmp_path / "t-0"
    file.write_bytes(b"")
    with pytest.raises(StorageError, match="t-0"):
        opened(str(file))


def test_larger_batches_than_a_chunk_are_read(directory: Path) -> None:
    big = batch(0, size=3 << 20)
    write(directory, big + batch(1))
    log = opened(str(directory), LogSettings())
    assert everything(log, bytes_max=100) == big + batch(1)


def test_zeros_at_the_end_of_a_rolled_segment_are_trimmed(directory: Path) -> None:
    """Kafka with log.preallocate, or a crash before the trimming was synced."""
    write(directory, b"".join(BATCHES) + bytes(500))
    write(directory, batch(4), base_offset=4)
    log = opened(str(directory), recovery_point=5)
    assert everything(log) == b"".join(BATCHES) + batch(4)
    assert Path(directory, FIRST).stat().st_size == ENDS[-1]


def test_falling_epoch_ends_the_log(directory: Path) -> None:
    write(directory, batch(0, epoch=5) + batch(1, epoch=4))
    assert everything(opened(str(directory))) == batch(0, epoch=5)
