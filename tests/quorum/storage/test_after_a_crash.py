"""A process or the power fails, and another process goes on.

These tests look at what is noted beside a partition's log, and what of it is on the medium.
"""

import os
from pathlib import Path
from random import Random
from shutil import rmtree
from typing import Any
from uuid import UUID

import pytest

from jepsen_like.sim.disks.node_disk import DiskFaults
from jepsen_like.sim.disks.virtual_files import VirtualFiles
from quorum.core.effects import OpenLog, SaveHighWatermarks, StorageFailed, Trim
from quorum.core.storage import StorageError
from quorum.log.files.checkpoints import CLEAN_SHUTDOWN, PARTITION_METADATA
from tests.quorum.log_files import FailingSystem
from tests.quorum.storages import TOPIC, Storage
from wire.batch import headers

LOG = "t-0"


class Dying:
    """The system's calls. Knows which files hold what was not synced; no sync once it is dying."""

    def __init__(self) -> None:
        self.unsynced: set[str] = set()
        self.is_dying = False

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        self.unsynced.add(os.readlink(f"/proc/self/fd/{fd}"))
        return os.pwrite(fd, data, offset)

    def fdatasync(self, fd: int) -> None:
        if self.is_dying:
            raise OSError("the process dies")
        self.unsynced.discard(os.readlink(f"/proc/self/fd/{fd}"))

    fsync = fdatasync

    @property
    def unsynced_indexes(self) -> list[str]:
        return sorted(path for path in self.unsynced if path.endswith("index"))


IN_D = {"/d": UUID(int=5)}


def durable_directory(seed: int) -> VirtualFiles:
    """A file system in memory with the empty directory of `IN_D`."""
    files = VirtualFiles(Random(seed), fired=lambda fault: None)
    files.mkdir("/d")
    files.make_durable()
    return files


def fill(storage: Storage, first: int, end: int, **more: Any) -> None:
    storage.do(*(storage.append(n, LOG, synced=False, **more) for n in range(first, end)))


def lose_all_but(count: int, directory: Path) -> None:
    """Leave so many batches of the only segment, as a power failure may."""
    (segment,) = directory.glob("*.log")
    content = segment.read_bytes()
    at, header = list(headers(content))[count - 1]
    segment.write_bytes(content[: at + header.size_bytes])


def test_high_watermark_is_not_that_of_records_that_the_power_has_taken(tmp_path: Path) -> None:
    """Others have come in their place, and nobody knows yet whether they are committed."""
    storage = Storage(tmp_path)
    storage.open(LOG)
    fill(storage, 0, 8)
    storage.do(SaveHighWatermarks(entries=(("t", 0, 8),)))
    lose_all_but(3, tmp_path / LOG)
    second = Storage(tmp_path)
    assert second.open(LOG).state.high_watermark == 3
    fill(second, 3, 8, epoch=2)
    third = Storage(tmp_path)
    state = third.open(LOG).state
    assert (state.high_watermark, state.end_offset) == (3, 8)


def test_start_is_not_that_of_records_that_the_power_has_taken(tmp_path: Path) -> None:
    """Nobody has deleted what has come in their place."""
    storage = Storage(tmp_path)
    storage.open(LOG)
    fill(storage, 0, 8)
    storage.do(Trim(log=LOG, token=storage.token(), start_offset=6))
    lose_all_but(3, tmp_path / LOG)
    second = Storage(tmp_path)
    assert second.open(LOG).state.start_offset == 3
    fill(second, 3, 8, epoch=2)
    third = Storage(tmp_path)
    state = third.open(LOG).state
    assert (state.start_offset, state.end_offset) == (3, 8)


def test_log_may_begin_anew_though_two_processes_die_before_they_forget_the_old_one(
    tmp_path: Path,
) -> None:
    """One that has deleted it, and one that has made its directory again."""
    storage = Storage(tmp_path)
    storage.open(LOG)
    fill(storage, 0, 8)
    storage.do(SaveHighWatermarks(entries=(("t", 0, 8),)))
    storage.close()
    rmtree(tmp_path / LOG)
    system = FailingSystem()
    second = Storage(tmp_path, system=system)

    def dies(name: str, arguments: tuple[Any, ...]) -> OSError | None:
        return OSError("the process dies") if (tmp_path / LOG).exists() else None

    system.fails = dies
    second.do(OpenLog(log=LOG, token=second.token(), topic_id=TOPIC))
    third = Storage(tmp_path)
    assert third.open(LOG).state.end_offset == 0
    fill(third, 0, 8, epoch=2)
    assert Storage(tmp_path).open(LOG).state.high_watermark == 0


TORN_ID = b"version: 0\ntopic_id: LkIMnr2QSP-6r_C50YG"


@pytest.mark.parametrize("left", [None, b"", bytes(49), TORN_ID, bytes(40) + b"gEn"])
def test_log_that_was_never_synced_and_has_lost_its_topic_id_begins_anew(
    tmp_path: Path, left: bytes | None
) -> None:
    """Its records may be those of a topic that was deleted since: it is set aside."""
    storage = Storage(tmp_path)
    storage.open(LOG)
    fill(storage, 0, 8)
    lose_topic_id(tmp_path, left)
    again = Storage(tmp_path)
    state = again.open(LOG, TOPIC).state
    assert (state.topic_id, state.end_offset) == (TOPIC, 0)
    assert [line for line in again.said if "set aside" in line]
    (stray,) = tmp_path.glob("t-0.*-stray")
    assert next(stray.glob("*.log")).stat().st_size > 0


def test_log_that_was_synced_keeps_its_records_though_it_has_no_topic_id(tmp_path: Path) -> None:
    """Kafka had none before version 2.8."""
    storage = Storage(tmp_path)
    storage.open(LOG)
    fill(storage, 0, 8)
    storage.close()
    lose_topic_id(tmp_path, None)
    state = Storage(tmp_path).open(LOG, TOPIC).state
    assert (state.topic_id, state.end_offset) == (TOPIC, 8)


def test_damaged_topic_id_of_a_log_that_was_synced_is_refused(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    storage.open(LOG)
    fill(storage, 0, 8)
    storage.close()
    lose_topic_id(tmp_path, TORN_ID)
    with pytest.raises(StorageError, match="22 characters"):
        Storage(tmp_path)


def test_log_that_a_full_disk_has_kept_from_being_made_is_made_by_the_next_process(
    tmp_path: Path,
) -> None:
    """A nearly full disk takes a part of the topic id, and refuses the rest."""
    for seed in range(20):
        files = durable_directory(seed)
        making = Storage(tmp_path, system=files, directories=IN_D)
        files.faults = DiskFaults(write_failure=1.0)
        (failed,) = making.do(OpenLog(log=LOG, token=making.token(), topic_id=TOPIC))
        assert isinstance(failed, StorageFailed)
        files.faults = DiskFaults()
        files.crash(power_loss=False)
        storage = Storage(tmp_path, system=files, directories=IN_D)
        state = storage.open(LOG).state
        assert (state.topic_id, state.end_offset) == (TOPIC, 0)
        storage.close()


def lose_topic_id(directory: Path, left: bytes | None) -> None:
    path = directory / LOG / PARTITION_METADATA
    path.unlink()
    if left is not None:
        path.write_bytes(left)


def test_topic_id_is_on_the_medium_before_the_log_counts_as_synced(tmp_path: Path) -> None:
    """A log that was synced is never set aside."""
    system = Dying()
    storage = Storage(tmp_path, system=system)
    storage.open(LOG)
    path = str(tmp_path / LOG / PARTITION_METADATA)
    assert path in system.unsynced, "it costs no sync until then"
    storage.do(storage.append(0, LOG, synced=True))
    assert path not in system.unsynced


@pytest.mark.parametrize("was_named", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_log_that_a_killed_process_has_made_is_as_durable_as_what_is_synced_of_it(
    seed: int, was_named: bool, tmp_path: Path
) -> None:
    """The process that made it has synced nothing, and may not even have written the topic id."""
    files = durable_directory(seed)
    making = Storage(tmp_path, system=files, directories=IN_D)
    making.open(LOG)
    if was_named:
        fill(making, 0, 1)
    files.crash(power_loss=False)
    if not was_named:
        files.unlink(f"/d/{LOG}/{PARTITION_METADATA}")
    following = Storage(tmp_path, system=files, directories=IN_D)
    end_offset = following.open(LOG).state.end_offset
    following.do(following.append(end_offset, LOG, synced=True))
    files.crash(power_loss=True)
    storage = Storage(tmp_path, system=files, directories=IN_D)
    assert [each.topic_id for each in storage.files.found] == [TOPIC]
    assert storage.open(LOG).state.end_offset == end_offset + 1
    storage.close()


@pytest.mark.parametrize("seed", range(20))
def test_what_is_opened_after_a_failed_sync_lasts(seed: int, tmp_path: Path) -> None:
    """It may be read back from memory alone, where a sync has nothing to do (fsyncgate, 2018)."""
    files = durable_directory(seed)
    making = Storage(tmp_path, system=files, directories=IN_D)
    making.open(LOG)
    fill(making, 0, 4)
    files.faults = DiskFaults(fsync_failure=0.5)
    for offset in range(4, 12):  # each of its files may be the one that is not synced
        fill(making, offset, offset + 1, size=400)
    files.faults = DiskFaults()
    files.crash(power_loss=False)
    following = Storage(tmp_path, system=files, directories=IN_D)
    following.open(LOG)
    opened = following.read(LOG)
    files.crash(power_loss=True)
    storage = Storage(tmp_path, system=files, directories=IN_D)
    if opened:
        assert [each.topic_id for each in storage.files.found] == [TOPIC]
    storage.open(LOG)
    assert storage.read(LOG) == opened
    storage.close()


@pytest.mark.parametrize("seed", range(20))
def test_log_is_opened_though_the_power_fails_before_what_was_trimmed_is_removed(
    seed: int, tmp_path: Path
) -> None:
    """Recovery reads it once more, and the recovery point lies behind it."""
    files = durable_directory(seed)
    storage = Storage(tmp_path, system=files, directories=IN_D)
    storage.open(LOG)
    fill(storage, 0, 6)
    unlink = files.unlink

    def fails(path: str) -> None:
        if path.endswith(".log"):
            raise OSError("the power fails")
        unlink(path)

    files.unlink = fails  # type: ignore[method-assign]
    trimmed, failed = storage.do(Trim(log=LOG, token=storage.token(), start_offset=6))
    assert isinstance(failed, StorageFailed), trimmed
    files.crash(power_loss=True)
    files.unlink = unlink  # type: ignore[method-assign]
    again = Storage(tmp_path, system=files, directories=IN_D)
    assert again.open(LOG).state.end_offset == 6
    again.close()


def test_high_watermark_of_a_log_that_was_not_opened_yet_is_kept(tmp_path: Path) -> None:
    """In ZooKeeper mode a broker is told of its partitions one after the other."""
    storage = Storage(tmp_path)
    for log in ("t-0", "t-1"):
        storage.open(log)
        storage.do(*(storage.append(n, log, synced=False) for n in range(8)))
    storage.do(SaveHighWatermarks(entries=(("t", 0, 8), ("t", 1, 8))))
    storage.close()
    again = Storage(tmp_path)
    again.open("t-0")
    again.do(SaveHighWatermarks(entries=(("t", 0, 7),)))
    assert again.open("t-1").state.high_watermark == 8
    again.close()
    assert Storage(tmp_path).open("t-0").state.high_watermark == 7


@pytest.mark.parametrize("broker_epoch", [-1, 8], ids=["unregistered", "registered"])
def test_process_that_opens_nothing_leaves_no_mark_where_the_one_before_was_killed(
    tmp_path: Path, broker_epoch: int
) -> None:
    """With the mark, the next would not sync what the killed one had not synced."""
    Storage(tmp_path).open(LOG)
    Storage(tmp_path).files.close(broker_epoch=broker_epoch)
    assert not (tmp_path / CLEAN_SHUTDOWN).exists()
    again = Storage(tmp_path)
    again.open(LOG)
    assert again.files.fsyncs == 4, "segment, topic id, and both directories"
    again.files.close(broker_epoch=broker_epoch)
    assert (tmp_path / CLEAN_SHUTDOWN).exists()


def test_index_files_of_a_process_that_died_as_it_closed_the_log_are_synced(
    tmp_path: Path,
) -> None:
    system = Dying()
    storage = Storage(tmp_path, system=system)
    storage.open(LOG)
    fill(storage, 0, 4, size=100)
    system.is_dying = True
    storage.close()
    system.is_dying = False
    assert system.unsynced_indexes
    again = Storage(tmp_path, system=system)
    again.open(LOG)
    fill(again, 4, 8, size=900)  # a segment each
    assert not system.unsynced_indexes
    again.close()


def test_indexes_that_are_rebuilt_are_synced(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    storage.open(LOG)
    fill(storage, 0, 4, size=900)
    storage.close()
    (tmp_path / LOG / f"{0:020d}.timeindex").unlink()
    system = Dying()
    again = Storage(tmp_path, system=system)
    again.open(LOG)
    assert any("rebuilding" in line for line in again.said)
    assert not system.unsynced_indexes
    again.close()
