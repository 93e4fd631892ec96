"""A log that was closed in order is opened without being read, and is the same as one that was."""

import os
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from quorum.core.effects import LogState, SaveProducers, Truncate
from quorum.core.producers import ProducerBatch, ProducerEntry
from quorum.core.storage import StorageError
from quorum.log.files.checkpoints import CLEAN_SHUTDOWN, EPOCHS
from quorum.log.files.disk import Disk
from quorum.log.files.file_storage import StorageSettings
from quorum.log.files.producer_snapshot import format_producers, parse_producers, producers_path
from quorum.log.files.recovery import Recovered, open_log
from quorum.log.files.segments import SegmentedLog
from tests.quorum.log_files import SMALL, batch, everything, quick_disk
from tests.quorum.storages import LOG, Storage
from wire.batch import headers

GOLDEN = Path(__file__).parents[2] / "golden"
LARGE = replace(SMALL, reread_bytes=0)
ENTRIES = (
    ProducerEntry(7, 2, (ProducerBatch(0, 4, 104, 1_000), ProducerBatch(5, 5, 110, 1_001))),
    ProducerEntry(8, 0, (ProducerBatch(2**31 - 2, 1, 109, 999),)),
    ProducerEntry(9, 1, ()),
)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "t-0"


def opened(directory: Path, end_offset: int, *, was_closed: bool = True) -> Recovered:
    return open_log(
        quick_disk(), str(directory), LARGE, recovery_point=end_offset, was_closed=was_closed
    )


def write(directory: Path, seed: int) -> SegmentedLog:
    """A log of some segments, closed in order; with the epochs and producers that `seed` draws."""
    random = Random(seed)
    log = opened(directory, 0).log
    epoch, sequences = 1, [0, 0, 0]
    for _ in range(random.randrange(1, 40)):
        epoch += random.random() < 0.1
        producer, records = random.randrange(4), random.randrange(1, 4)
        named = (-1, -1, -1) if producer == 3 else (producer, 0, sequences[producer])
        if producer < 3:
            sequences[producer] += records
        size, time_ms = random.randrange(100), random.randrange(1_000, 2_000)
        log.append(
            batch(
                log.end_offset,
                records=records,
                epoch=epoch,
                size=size,
                timestamp_ms=time_ms,
                producer=named,
            )
        )
    close(log)
    return log


def close(log: SegmentedLog, producers: tuple[ProducerEntry, ...] = ()) -> None:
    log.finish()
    epochs = [f"{entry.epoch} {entry.start_offset}" for entry in log.epochs.entries]
    lines = ["0", str(len(epochs)), *epochs, ""]
    Path(log.directory, EPOCHS).write_text("\n".join(lines))
    log.note_producers(producers, end_offset=log.end_offset)
    log.write_producers()
    log.forget()


# --- the file -----------------------------------------------------------------------------------


def test_of_each_producer_every_batch_is_noted() -> None:
    noted = parse_producers(format_producers(ENTRIES))
    assert noted == {entry.producer_id: entry for entry in ENTRIES}


def test_batches_of_an_earlier_epoch_are_not_taken_for_those_of_a_later_one() -> None:
    earlier, later = ENTRIES[0], ENTRIES[0]._replace(producer_epoch=3)
    assert parse_producers(format_producers([earlier, later])) == {7: later}


def test_every_cut_and_every_flipped_bit_is_noticed() -> None:
    content = format_producers(ENTRIES)
    for size in range(len(content)):
        assert parse_producers(content[:size]) is None, size
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 4
        assert parse_producers(bytes(damaged)) is None, at


GOLDEN_FILES = sorted((GOLDEN / "data").rglob("*.snapshot"))


@pytest.mark.parametrize("path", GOLDEN_FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_kafkas_own_file_says_what_its_tool_prints(path: Path) -> None:
    dumped = GOLDEN / "data/dump" / path.relative_to(GOLDEN / "data").with_suffix(".snapshot.txt")
    printed = []
    for line in dumped.read_text().splitlines():
        if line.startswith("producerId"):
            words = dict(pairwise(line.replace(":", "").split()))
            names = (
                "producerId",
                "producerEpoch",
                "firstSequence",
                "lastSequence",
                "lastOffset",
                "lastTimestamp",
            )
            printed.append(tuple(int(words[name]) for name in names))
    found = parse_producers(path.read_bytes())
    assert found is not None
    assert parse_producers(format_producers(found.values())) == found
    last = [(each.producer_id, each.producer_epoch, each.batches[-1]) for each in found.values()]
    assert printed == [(number, epoch, *batch) for number, epoch, batch in last]


def test_some_of_kafkas_files_name_producers() -> None:
    assert any(parse_producers(path.read_bytes()) for path in GOLDEN_FILES)


def test_file_of_no_producers_is_kafkas() -> None:
    kafkas = GOLDEN / f"kraft3/node-1/__cluster_metadata-0/{167:020d}.snapshot"
    assert format_producers(()) == kafkas.read_bytes()


# --- opening ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_log_is_the_same_as_one_that_was_read(tmp_path: Path, seed: int) -> None:
    """Also in what is done to it afterwards. Seeds are drawn by `write` and below."""
    logs = []
    for name in ("read", "resumed"):
        end_offset = write(tmp_path / name, seed).end_offset
        if name == "read":
            Path(producers_path(str(tmp_path / name), end_offset)).unlink()
        log = opened(tmp_path / name, end_offset).log
        random = Random(seed)
        told: list[object] = [everything(log), log.epochs.entries, log.size_bytes]
        for _ in range(5):
            told.append(log.find_timestamp(random.randrange(1_000, 2_000), end_offset=end_offset))
            offset = random.randrange(end_offset)
            told.append(log.read(start_offset=offset, end_offset=end_offset, bytes_max=500))
        log.truncate(random.randrange(end_offset // 2, end_offset + 1))
        for _ in range(10):
            time_ms = random.randrange(2_000, 3_000)
            log.append(batch(log.end_offset, epoch=9, timestamp_ms=time_ms, size=50))
        log.finish()
        files = {path.name: path.read_bytes() for path in Path(log.directory).iterdir()}
        logs.append((told, everything(log), log.epochs.entries, files))
    assert logs[0] == logs[1], f"seed {seed}"


def test_but_for_its_end_it_is_not_read(directory: Path) -> None:
    log = opened(directory, 0).log
    for _ in range(200):
        log.append(batch(log.end_offset, size=20))
    close(log)
    read: list[int] = []

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(os, name)

        def pread(self, fd: int, length: int, position: int) -> bytes:
            content = os.pread(fd, length, position)
            read.append(len(content))
            return content

    disk = Disk(system=Counting())
    again = open_log(disk, str(directory), LARGE, recovery_point=200, was_closed=True).log
    assert again.end_offset == 200
    assert sum(read) < 1_500 < again.size_bytes // 10


def test_producers_are_those_that_were_noted(directory: Path) -> None:
    log = opened(directory, 0).log
    for i in range(5):
        log.append(batch(i, producer=(8, 0, i)))
    close(log, ENTRIES)
    assert opened(directory, 5).producers == ENTRIES


def test_they_are_never_taken_twice(directory: Path) -> None:
    end_offset = write(directory, 1).end_offset
    noted = Path(producers_path(str(directory), end_offset))
    assert noted.exists()
    opened(directory, end_offset).log.forget()
    assert not noted.exists()


@pytest.mark.parametrize("at_end", [True, False])
def test_nor_after_a_crash_nor_at_another_end(directory: Path, at_end: bool) -> None:
    end_offset = write(directory, 1).end_offset
    Path(producers_path(str(directory), end_offset)).unlink()
    noted = Path(producers_path(str(directory), end_offset if at_end else 5))
    noted.write_bytes(format_producers(ENTRIES))
    found = opened(directory, end_offset, was_closed=not at_end)
    assert not noted.exists()
    assert not {7, 8, 9} & {entry.producer_id for entry in found.producers}


def test_a_log_is_resumed_again_though_it_starts_in_its_midst(directory: Path) -> None:
    end_offset = write(directory, 3).end_offset
    for _ in range(2):
        found = open_log(
            quick_disk(),
            str(directory),
            LARGE,
            recovery_point=end_offset,
            start_offset=end_offset - 1,
            was_closed=True,
        )
        assert found.log.start_offset == end_offset - 1
        close(found.log, ENTRIES)
    assert opened(directory, end_offset).producers == ENTRIES


def test_epoch_that_wrote_nothing_is_forgotten(directory: Path) -> None:
    """Kafka notes the epoch of a new leader at once."""
    log = write(directory, 3)
    entries = log.epochs.entries
    log.epochs.assign(77, log.end_offset)
    close(log)
    assert opened(directory, log.end_offset).log.epochs.entries == entries


def test_log_is_rolled_by_the_time_of_its_first_batch(directory: Path) -> None:
    log = opened(directory, 0).log
    log.append(batch(0, timestamp_ms=1_000))
    close(log, ENTRIES)
    settings = replace(LARGE, segment_ms=500)
    disk = quick_disk()
    again = open_log(disk, str(directory), settings, recovery_point=1, was_closed=True).log
    assert not again.append(batch(1, timestamp_ms=1_500))
    assert again.append(batch(2, timestamp_ms=1_501))


def test_active_segment_may_be_empty(directory: Path) -> None:
    log = write(directory, 3)
    for segment in log.trim(log.end_offset):
        segment.remove()
    close(log, ENTRIES)
    found = opened(directory, log.end_offset)
    assert (found.log.size_bytes, found.producers) == (0, ENTRIES)


def _flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def _before(log: Path) -> Path:
    return sorted(log.parent.glob("*.log"))[-2]


def _last_epoch(log: Path) -> int:
    return int((log.parent / EPOCHS).read_text().split()[-2])


def _last_batch(log: Path) -> bytes:
    content = log.read_bytes()
    *_, (position, _) = headers(content)
    return content[position:]


HARMS: dict[str, Callable[[Path, Path, int], object]] = {
    "no producers": lambda log, noted, end: noted.unlink(),
    "torn producers": lambda log, noted, end: noted.write_bytes(noted.read_bytes()[:-1]),
    "producers of another end": lambda log, noted, end: noted.rename(noted.with_stem("0" * 20)),
    "no epochs": lambda log, noted, end: (log.parent / EPOCHS).unlink(),
    "other epochs": lambda log, noted, end: (log.parent / EPOCHS).write_text("0\n1\n9 0\n"),
    "no index": lambda log, noted, end: log.with_suffix(".index").unlink(),
    "no time index": lambda log, noted, end: log.with_suffix(".timeindex").unlink(),
    "torn index": lambda log, noted, end: log.with_suffix(".index").write_bytes(b"123"),
    "bytes behind its end": lambda log, noted, end: log.write_bytes(log.read_bytes() + b"x"),
    "a batch behind its end": lambda log, noted, end: log.write_bytes(
        log.read_bytes() + batch(end, epoch=9)
    ),
    "a batch of its epoch behind its end": lambda log, noted, end: log.write_bytes(
        log.read_bytes() + batch(end, epoch=_last_epoch(log))
    ),
    "its last batch twice": lambda log, noted, end: log.write_bytes(
        log.read_bytes() + _last_batch(log)
    ),
    "a segment before": lambda log, noted, end: _before(log).unlink(),
    "the end of the segment before": lambda log, noted, end: _before(log).write_bytes(
        _before(log).read_bytes()[:-100]
    ),
    "the first time index": lambda log, noted, end: sorted(log.parent.glob("*.timeindex"))[
        0
    ].unlink(),
    "all times": lambda log, noted, end: log.with_suffix(".timeindex").write_bytes(b""),
    "its last byte": lambda log, noted, end: log.write_bytes(log.read_bytes()[:-1]),
    "a flipped bit at its end": lambda log, noted, end: _flip(log, -1),
    "nothing of it": lambda log, noted, end: log.write_bytes(b""),
}


@pytest.mark.parametrize("harm", HARMS)
def test_one_that_is_not_as_it_was_left_is_read(tmp_path: Path, harm: str) -> None:
    """What comes of it is the same as without the file of producers."""
    outcomes: list[tuple[object, ...]] = []
    for name in ("with", "without"):
        log = write(tmp_path / name, 11)
        noted = Path(producers_path(log.directory, log.end_offset))
        HARMS[harm](Path(log.active_path), noted, log.end_offset)
        if name == "without":
            noted.unlink(missing_ok=True)
        try:
            found = opened(tmp_path / name, log.end_offset)
        except StorageError as error:
            outcomes.append((str(error).replace(str(tmp_path / name), ""), None, None))
        else:
            outcomes.append((everything(found.log), found.log.epochs.entries, found.producers))
    assert outcomes[0] == outcomes[1]


# --- a storage ----------------------------------------------------------------------------------


def noted(storage: Storage, end_offset: int, count: int = 1) -> SaveProducers:
    return SaveProducers(
        log=LOG, token=storage.token(), end_offset=end_offset, producers=ENTRIES[:count]
    )


def five_records(tmp_path: Path, *, is_large: bool = True) -> Storage:
    storage = Storage(tmp_path, settings=StorageSettings(partitions=LARGE if is_large else SMALL))
    storage.open()
    storage.do(*[storage.append(i, LOG, synced=False, size=100) for i in range(5)])
    return storage


def opened_again(tmp_path: Path) -> LogState:
    again = Storage(tmp_path, settings=StorageSettings(partitions=LARGE))
    state = again.open().state
    again.close()
    return state


@pytest.mark.parametrize(
    ("count", "is_large", "is_noted"),
    [(1, True, True), (1, False, True), (0, True, True), (0, False, False)],
)
def test_a_small_log_without_producers_is_left_to_be_read(
    tmp_path: Path, count: int, is_large: bool, is_noted: bool
) -> None:
    storage = five_records(tmp_path, is_large=is_large)
    storage.do(noted(storage, 5, count))
    storage.close()
    assert Path(producers_path(str(storage.log_path(LOG)), 5)).exists() == is_noted
    state = opened_again(tmp_path)
    assert (state.end_offset, state.producers) == (5, ENTRIES[:count])


@pytest.mark.parametrize(("reread_bytes", "is_noted"), [(200, True), (1_000, False)])
def test_the_last_two_segments_say_whether_a_log_is_small(
    directory: Path, reread_bytes: int, is_noted: bool
) -> None:
    """The active one has just begun; together they have some 250 bytes."""
    settings = replace(SMALL, segment_bytes=150, reread_bytes=reread_bytes)
    log = open_log(quick_disk(), str(directory), settings, recovery_point=0).log
    for offset in range(2):
        log.append(batch(offset, size=50))
    close(log)
    assert 200 < log.size_bytes < 1_000
    assert log.active_offset == 1
    assert Path(producers_path(str(directory), 2)).exists() == is_noted


def test_what_is_done_after_they_were_noted_voids_them(tmp_path: Path) -> None:
    """Other records may have come to the same end."""
    storage = five_records(tmp_path)
    storage.do(noted(storage, 5), Truncate(log=LOG, token=storage.token(), end_offset=3))
    storage.do(*[storage.append(i, LOG, synced=False, size=100, epoch=2) for i in (3, 4)])
    storage.close()
    assert not list(storage.log_path(LOG).glob("*.snapshot"))
    state = opened_again(tmp_path)
    assert (state.end_offset, state.producers) == (5, ())


def test_full_disk_costs_the_note_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = five_records(tmp_path)
    storage.do(noted(storage, 5))

    def full(disk: Disk, path: str, content: bytes) -> None:
        raise StorageError(f"cannot write {path}: no space left")

    monkeypatch.setattr(Disk, "put", full)
    storage.close()
    assert any("producers" in line and "no space left" in line for line in storage.said)
    assert (tmp_path / CLEAN_SHUTDOWN).exists()
    assert opened_again(tmp_path).end_offset == 5
