"""A log that was closed in order is opened without being read, and is the same as one that was."""

import os
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from quorum.core.effects import Opened, SaveProducers, Truncate
from quorum.core.producers import ProducerBatch, ProducerEntry
from quorum.core.storage import StorageError
from quorum.log.files import resumption
from quorum.log.files.checkpoints import EPOCHS
from quorum.log.files.disk import Disk
from quorum.log.files.file_storage import StorageSettings
from quorum.log.files.producer_snapshot import format_producers, parse_producers, producers_path
from quorum.log.files.recovery import Recovered, open_log
from quorum.log.files.segments import SegmentedLog
from tests.quorum.log_files import SMALL, batch, everything, quick_disk
from tests.quorum.storages import LOG, Storage

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


@pytest.fixture(autouse=True)
def _reads_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resumption, "_READ_BYTES", 300)


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
    log.save_producers(producers, end_offset=log.end_offset)
    log.forget()


# --- the file -----------------------------------------------------------------------------------


def test_of_each_producer_the_last_batch_is_noted() -> None:
    noted = parse_producers(format_producers(ENTRIES))
    assert noted == tuple(entry._replace(batches=entry.batches[-1:]) for entry in ENTRIES)


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
    assert parse_producers(format_producers(found)) == found
    last = [(each.producer_id, each.producer_epoch, each.batches[-1]) for each in found]
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


def test_producers_of_the_end_are_known_by_all_their_batches(directory: Path) -> None:
    """Each may have filled a segment; of those before, the last batch was noted."""
    settings = replace(LARGE, segment_bytes=100)
    log = open_log(quick_disk(), str(directory), settings, recovery_point=0).log
    for i in range(5):
        log.append(batch(i, producer=(7, 1, i)))
    for i in range(5, 8):
        log.append(batch(i, producer=(8, 0, i - 5)))
    last = ProducerBatch(4, 4, 4, 1000)
    close(log, (ProducerEntry(7, 1, (ProducerBatch(3, 3, 3, 1000), last)),))
    producers = opened(directory, 8).producers
    found = {entry.producer_id: entry.batches for entry in producers}
    assert found[7] == (last,)
    assert [each.base_sequence for each in found[8]] == [0, 1, 2]


def test_they_are_never_taken_twice(directory: Path) -> None:
    end_offset = write(directory, 1).end_offset
    noted = Path(producers_path(str(directory), end_offset))
    assert noted.exists()
    opened(directory, end_offset).log.forget()
    assert not noted.exists()


def test_nor_after_a_crash(directory: Path) -> None:
    end_offset = write(directory, 1).end_offset
    other = Path(producers_path(str(directory), 5))
    other.write_bytes(format_producers(ENTRIES))
    found = opened(directory, end_offset, was_closed=False)
    assert not other.exists()
    assert not {7, 8, 9} & {entry.producer_id for entry in found.producers}


def _flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


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


def saved(storage: Storage, end_offset: int) -> SaveProducers:
    return SaveProducers(
        log=LOG, token=storage.token(), end_offset=end_offset, producers=ENTRIES[:1]
    )


@pytest.mark.parametrize("is_large", [True, False])
def test_only_a_large_log_has_its_producers_noted(tmp_path: Path, is_large: bool) -> None:
    settings = StorageSettings(partitions=LARGE if is_large else SMALL)
    storage = Storage(tmp_path, settings=settings)
    storage.open()
    storage.do(*[storage.append(i, LOG, synced=False, size=100) for i in range(5)])
    storage.do(saved(storage, 5))
    storage.close()
    assert Path(producers_path(str(storage.log_path(LOG)), 5)).exists() == is_large
    again = Storage(tmp_path, settings=settings)
    found = again.open().state
    assert (found.end_offset, len(found.producers)) == (5, int(is_large))
    again.close()


def test_producers_of_records_that_are_gone_are_not_noted(tmp_path: Path) -> None:
    storage = Storage(tmp_path, settings=StorageSettings(partitions=LARGE))
    storage.open()
    storage.do(*[storage.append(i, LOG, synced=False, size=100) for i in range(5)])
    storage.do(Truncate(log=LOG, token=storage.token(), end_offset=3), saved(storage, 5))
    storage.close()
    assert not list(storage.log_path(LOG).glob("*.snapshot"))
    again = Storage(tmp_path, settings=StorageSettings(partitions=LARGE))
    event = again.open()
    assert isinstance(event, Opened)
    assert (event.state.end_offset, event.state.producers) == (3, ())
    again.close()
