"""Storage effects on real files: order, group commit, failures, and the end of a process."""

import errno
import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path
from threading import Event as Signal
from threading import current_thread, main_thread
from typing import Any
from uuid import UUID

import pytest

from jepsen_like.sim.disks.world_workers import QueuedWorkers
from quorum.core.effects import (
    Append,
    DeleteLog,
    Durability,
    EpochStart,
    FindTimestamp,
    Opened,
    OpenLog,
    Read,
    ReadDone,
    SaveElection,
    SaveHighWatermarks,
    StorageFailed,
    Stored,
    TimestampFound,
    Token,
    Trim,
    Truncate,
)
from quorum.core.storage import METADATA_LOG, StorageError, StorageEvent
from quorum.core.types import ElectionState, ReplicaKey
from quorum.log.files.checkpoint_writes import CheckpointWrites
from quorum.log.files.checkpoints import (
    CLEAN_SHUTDOWN,
    EPOCHS,
    HIGH_WATERMARKS,
    RECOVERY_POINTS,
    CorruptFile,
)
from quorum.log.files.disk import Disk
from quorum.log.files.file_storage import FileStorage
from quorum.log.files.jobs import Jobs
from quorum.log.files.log_queue import LogQueue
from quorum.log.files.offset_checkpoint import OffsetCheckpoint
from quorum.log.files.recovery import CorruptLog
from quorum.log.files.sync_pace import SyncPace
from tests.quorum.log_files import FailingSystem, batch
from tests.quorum.storages import LOG, SETTINGS, TOPIC, Storage
from wire.primitives import METADATA_TOPIC, METADATA_TOPIC_ID


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    storage = Storage(tmp_path)
    storage.files.load(METADATA_LOG, METADATA_TOPIC_ID)
    return storage


# --- the metadata log -----------------------------------------------------------------------


def test_one_sync_serves_all_appends_that_were_written_together(storage: Storage) -> None:
    appends = [storage.append(offset) for offset in range(20)]
    assert storage.do(*appends) == [Stored(log=METADATA_LOG, token=appends[-1].token)]
    assert (storage.files.syncs.count, storage.files.syncs.tokens) == (1, 20)


def test_appends_during_a_sync_share_the_next_one(tmp_path: Path) -> None:
    """Group commit: however many come while one sync runs, there is one more."""
    system = FailingSystem()
    storage = Storage(tmp_path, system=system)
    storage.files.load(METADATA_LOG, METADATA_TOPIC_ID)
    entered, leave = Signal(), Signal()

    def fails(name: str, arguments: tuple[Any, ...]) -> None:
        if name == "fdatasync":
            entered.set()
            assert leave.wait(10)

    system.fails = fails
    first = storage.append(0)
    storage.files.perform(first)
    assert storage.files.take_events() == []
    assert entered.wait(10)
    later = [storage.append(offset) for offset in range(1, 30)]
    for each in later:
        storage.files.perform(each)
        assert storage.files.take_events() == []
    leave.set()
    tokens = [event.token for event in storage.settle() if isinstance(event, Stored)]
    assert tokens == [first.token, later[-1].token]
    assert (storage.files.syncs.count, storage.files.syncs.tokens) == (2, 30)


def test_written_append_is_readable_and_gets_no_stored(storage: Storage) -> None:
    assert storage.do(storage.append(0, synced=False)) == []
    assert storage.read() == batch(0)
    assert storage.files.syncs.count == 0


def read(storage: Storage, end_offset: int) -> Read:
    token = storage.token()
    return Read(
        log=METADATA_LOG, token=token, start_offset=0, end_offset=end_offset, bytes_max=1 << 20
    )


def test_followers_that_wait_for_the_same_records_get_the_same_bytes(storage: Storage) -> None:
    append = storage.append(0, synced=False)
    reads = [read(storage, 1) for _ in range(30)]
    done = storage.do(append, *reads)
    assert [event.token for event in done] == [each.token for each in reads]
    assert [event.records for event in done if isinstance(event, ReadDone)] == [batch(0)] * 30
    assert len({id(event.records) for event in done if isinstance(event, ReadDone)}) == 1


def test_what_was_read_is_read_again_after_anything_else(storage: Storage) -> None:
    first, second = storage.append(0, synced=False), storage.append(1, synced=False)
    effects = (first, read(storage, 9), second, read(storage, 9), read(storage, 1))
    done = [event.records for event in storage.do(*effects) if isinstance(event, ReadDone)]
    assert done == [batch(0), batch(0) + batch(1), batch(0)]


def test_election_is_read_back(storage: Storage, tmp_path: Path) -> None:
    election = ElectionState(epoch=7, leader_id=2, voted=ReplicaKey(2, UUID(int=5)))
    effect = SaveElection(log=METADATA_LOG, token=storage.token(), election=election)
    assert storage.do(effect) == [Stored(log=METADATA_LOG, token=effect.token)]
    storage.close()
    again = Storage(tmp_path)
    assert again.files.load(METADATA_LOG, METADATA_TOPIC_ID).election == election
    again.close()


def test_effects_behind_an_election_wait_for_it(tmp_path: Path) -> None:
    """A crash never leaves the append without the election that came before it."""
    system = FailingSystem()
    storage = Storage(tmp_path, system=system)
    storage.files.load(METADATA_LOG, METADATA_TOPIC_ID)
    entered, leave = Signal(), Signal()

    def fails(name: str, arguments: tuple[Any, ...]) -> None:
        if name == "fsync":
            entered.set()
            assert leave.wait(10)

    system.fails = fails
    before = storage.append(0)
    election = SaveElection(
        log=METADATA_LOG, token=storage.token(), election=ElectionState(epoch=2)
    )
    after = storage.append(1)
    for effect in (before, election, after):
        storage.files.perform(effect)
    storage.files.take_events()
    assert entered.wait(10)
    first = Path(tmp_path, METADATA_LOG, f"{0:020d}.log")
    assert first.read_bytes().rstrip(b"\0").count(b"x" * 10) == 1
    leave.set()
    tokens = [event.token for event in storage.settle() if isinstance(event, Stored)]
    assert tokens[-2:] == [election.token, after.token]
    assert first.read_bytes().count(b"x" * 10) == 2


def test_cut_off_segments_go_after_a_sync_although_an_election_is_saved_at_once(
    tmp_path: Path,
) -> None:
    """The epochs go to the medium before the records, and so does the name of a new segment."""
    system = FailingSystem()
    storage = Storage(tmp_path, system=system)
    storage.files.load(METADATA_LOG, METADATA_TOPIC_ID)
    storage.do(*(storage.append(offset) for offset in range(3)))
    gone = storage.log_path() / f"{0:020}.log"
    epochs: list[str] = []

    def watch(name: str, arguments: tuple[Any, ...]) -> None:
        if name == "unlink" and arguments == (str(gone),):
            epochs.append((storage.log_path() / EPOCHS).read_text())

    system.fails = watch
    trim = Trim(log=METADATA_LOG, token=storage.token(), start_offset=3)
    save = SaveElection(log=METADATA_LOG, token=storage.token(), election=ElectionState(epoch=2))
    assert Stored(log=METADATA_LOG, token=save.token) in storage.do(trim, save)
    assert epochs == ["0\n1\n1 3\n"]


def test_truncation_is_stored_and_lowers_the_recovery_point(
    storage: Storage, tmp_path: Path
) -> None:
    storage.do(*[storage.append(offset) for offset in range(5)])
    mark = Path(tmp_path, METADATA_LOG, RECOVERY_POINTS)
    assert mark.read_text().split()[-1] == f"{5:019d}"
    effect = Truncate(
        log=METADATA_LOG, token=storage.token(), end_offset=2, durability=Durability.SYNCED
    )
    assert storage.do(effect) == [Stored(log=METADATA_LOG, token=effect.token)]
    assert mark.read_text().split()[-1] == f"{2:019d}"
    assert storage.read() == batch(0) + batch(1)
    storage.do(storage.append(2, epoch=9))
    storage.close()
    again = Storage(tmp_path)
    state = again.files.load(METADATA_LOG, METADATA_TOPIC_ID).state
    assert (state.end_offset, state.last_epoch) == (3, 9)
    assert state.epochs == (EpochStart(1, 0), EpochStart(9, 2))
    again.close()


@pytest.mark.parametrize(
    ("durability", "epochs"),
    [(Durability.SYNCED, "0\n1\n1 0\n"), (Durability.WRITTEN, "0\n2\n1 0\n2 3\n")],
)
def test_truncation_is_on_the_medium_and_its_epochs_if_somebody_waits_for_it(
    tmp_path: Path, durability: Durability, epochs: str
) -> None:
    system = FailingSystem()
    storage = Storage(tmp_path, system=system)
    storage.files.load(METADATA_LOG, METADATA_TOPIC_ID)
    storage.do(*(storage.append(offset, epoch=1 + offset // 3) for offset in range(5)))
    system.calls.clear()
    token = storage.token()
    storage.do(Truncate(log=METADATA_LOG, token=token, end_offset=2, durability=durability))
    after = system.calls[system.calls.index("ftruncate") :]
    assert {"fdatasync", "fsync"} <= set(after), "the segment and its directory"
    assert (storage.log_path() / EPOCHS).read_text() == epochs


def test_slow_recoveries_delay_no_truncation_that_is_waited_for(tmp_path: Path) -> None:
    """A replica fetches, and saves its vote, only after its truncation: it must not queue behind
    the recovery of a thousand partitions."""
    killed = Storage(tmp_path)
    for partition in range(10):
        killed.open(f"slow-{partition}")
    system = FailingSystem()
    storage = Storage(tmp_path, system=system)
    storage.files.load(METADATA_LOG, METADATA_TOPIC_ID)
    storage.do(*[storage.append(offset) for offset in range(5)])
    leave = Signal()

    def fails(name: str, arguments: tuple[Any, ...]) -> None:
        if name == "fsync" and "slow-" in os.readlink(f"/proc/self/fd/{arguments[0]}"):
            assert leave.wait(10)

    system.fails = fails
    for partition in range(10):
        storage.files.perform(
            OpenLog(log=f"slow-{partition}", token=storage.token(), topic_id=TOPIC)
        )
    effect = Truncate(
        log=METADATA_LOG, token=storage.token(), end_offset=2, durability=Durability.SYNCED
    )
    storage.files.perform(effect)
    events = storage.files.take_events()
    while not events and storage.ready.wait(5):
        storage.ready.clear()
        events = storage.files.take_events()
    leave.set()
    assert events == [Stored(log=METADATA_LOG, token=effect.token)]
    assert len(storage.settle()) == 10


def test_new_logs_are_made_a_few_at_a_time_and_without_a_sync(tmp_path: Path) -> None:
    """A topic may have thousands of partitions, and the node has other things to do."""
    storage = Storage(tmp_path)
    storage.settle()  # what threads still do is not to be counted
    seconds = iter(range(1000))
    storage.files._workers.seconds = lambda: next(seconds) / 1000  # type: ignore[method-assign]
    for partition in range(10):
        effect = OpenLog(log=f"new-{partition}", token=storage.token(), topic_id=TOPIC)
        storage.files.perform(effect)
    assert storage.ready.is_set()
    made = []
    while storage.files.is_busy:
        storage.ready.clear()
        made.append(len(storage.files.take_events()))
        assert storage.ready.is_set() == storage.files.is_busy
    assert sum(made) == 10
    assert max(made) < 10
    assert storage.files.fsyncs == 0


def test_append_before_a_written_truncation_is_still_acknowledged(storage: Storage) -> None:
    append = storage.append(0)
    truncate = Truncate(log=METADATA_LOG, token=storage.token(), end_offset=0)
    assert storage.do(append, truncate) == [Stored(log=METADATA_LOG, token=append.token)]
    assert storage.read() == b""


def test_epochs_are_on_disk_with_the_sync(storage: Storage, tmp_path: Path) -> None:
    storage.do(storage.append(0, epoch=3))
    assert Path(tmp_path, METADATA_LOG, EPOCHS).read_bytes() == b"0\n1\n3 0\n"


def test_metadata_log_is_preallocated_and_trimmed_at_the_end(
    storage: Storage, tmp_path: Path
) -> None:
    first = Path(tmp_path, METADATA_LOG, f"{0:020d}.log")
    storage.do(storage.append(0))
    assert first.stat().st_size == 4096 + len(batch(0))
    storage.close()
    assert first.read_bytes() == batch(0)


def test_unclean_end_leaves_zeros_that_recovery_takes_for_the_end(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    storage.files.load(METADATA_LOG, METADATA_TOPIC_ID)
    storage.do(storage.append(0))
    again = Storage(tmp_path)  # the first is abandoned, as by kill -9
    assert again.files.load(METADATA_LOG, METADATA_TOPIC_ID).state.end_offset == 1
    assert again.said == []
    assert again.read() == batch(0)
    again.close()


def test_damaged_synced_records_are_refused(storage: Storage, tmp_path: Path) -> None:
    storage.do(*[storage.append(offset) for offset in range(3)])
    storage.close()
    first = Path(tmp_path, METADATA_LOG, f"{0:020d}.log")
    content = bytearray(first.read_bytes())
    content[len(batch(0)) + 65] ^= 1
    first.write_bytes(content)
    again = Storage(tmp_path)
    with pytest.raises(CorruptLog, match=f"damaged at byte {len(batch(0))}"):
        again.files.load(METADATA_LOG, METADATA_TOPIC_ID)
    again.files.close(broker_epoch=None)


def test_mark_without_the_line_of_its_log_is_refused(storage: Storage, tmp_path: Path) -> None:
    storage.close()
    (storage.log_path() / RECOVERY_POINTS).write_bytes(b"0\n1\nt 0 5\n")
    again = Storage(tmp_path)
    with pytest.raises(CorruptFile, match=f"line 3: a line for {METADATA_TOPIC}"):
        again.files.load(METADATA_LOG, METADATA_TOPIC_ID)
    again.files.close(broker_epoch=None)


# --- partition logs -------------------------------------------------------------------------


def test_log_is_opened_in_the_background_and_effects_wait_for_it(storage: Storage) -> None:
    opening = OpenLog(log=LOG, token=storage.token(), topic_id=TOPIC)
    append = storage.append(0, LOG, synced=False)
    find, late = (
        FindTimestamp(log=LOG, token=storage.token(), timestamp_ms=timestamp_ms, end_offset=1)
        for timestamp_ms in (5, 1001)
    )
    events = storage.do(opening, append, find, late)
    assert isinstance(events[0], Opened)
    assert events[0].state.topic_id == TOPIC
    found = TimestampFound(token=find.token, log=LOG, offset=0, timestamp_ms=1000, leader_epoch=1)
    none = TimestampFound(token=late.token, log=LOG, offset=-1, timestamp_ms=-1, leader_epoch=-1)
    assert events[1:] == [found, none]


def test_reopened_log_says_what_is_in_it(storage: Storage, tmp_path: Path) -> None:
    storage.open()
    storage.do(*[storage.append(i, LOG, synced=False, epoch=1 + i // 4) for i in range(8)])
    storage.do(SaveHighWatermarks(entries=(("topic-with-dashes", 3, 6),)))
    storage.close()
    assert Path(tmp_path, CLEAN_SHUTDOWN).exists()
    again = Storage(tmp_path)
    state = again.open(topic_id=UUID(int=99)).state
    assert state.topic_id == TOPIC, "of the topic that the directory was made for"
    assert (state.end_offset, state.high_watermark, state.last_epoch) == (8, 6, 2)
    assert state.epochs == (EpochStart(1, 0), EpochStart(2, 4))
    assert [each.log for each in again.files.found] == [LOG]
    again.close()


def test_logs_that_nobody_writes_to_are_opened_and_closed_without_a_sync(
    storage: Storage, tmp_path: Path
) -> None:
    logs = [f"t-{index}" for index in range(20)]
    for log in logs:
        storage.open(log)
        storage.do(*[storage.append(i, log, synced=False) for i in range(3)])
    storage.close()
    again = Storage(tmp_path)
    for log in logs:
        assert again.open(log).state.end_offset == 3
    assert again.files.fsyncs == 1, "the mark of the orderly stop goes"
    again.close()
    assert again.files.fsyncs == 3, "it comes again"


def test_log_of_a_process_that_died_is_synced_with_its_directory(
    storage: Storage, tmp_path: Path
) -> None:
    """Nobody has synced that its first segment is there, though there is nothing in it."""
    storage.open("t-0")
    again = Storage(tmp_path)
    again.open("t-0")
    assert again.files.fsyncs == 4, "segment, topic id, and both directories"
    again.close()
    storage.close()


@pytest.mark.parametrize("harm", ["a tail to cut off", "no recovery point"])
def test_log_that_is_not_as_it_was_closed_is_synced(
    storage: Storage, tmp_path: Path, harm: str
) -> None:
    storage.open("t-0")
    storage.do(storage.append(0, "t-0", synced=False))
    storage.close()
    if harm == "no recovery point":
        (tmp_path / RECOVERY_POINTS).unlink()
    else:
        (segment,) = (tmp_path / "t-0").glob("*.log")
        segment.write_bytes(segment.read_bytes() + b"torn")
    again = Storage(tmp_path)
    assert again.open("t-0").state.end_offset == 1
    assert again.files.fsyncs == 3, "the mark, the segment and its directory"
    again.close()


def test_rolled_segment_is_synced_though_nobody_waits(storage: Storage, tmp_path: Path) -> None:
    storage.open()
    appends = [storage.append(i, LOG, synced=False, size=300) for i in range(5)]
    assert storage.do(*appends) == []
    points = Path(tmp_path, RECOVERY_POINTS).read_text().split("\n")
    assert points[2].startswith("topic-with-dashes 3 ")
    assert int(points[2].split()[-1]) == 4
    storage.close()


def test_a_roll_waits_for_no_sync_of_names_that_the_one_before_has_had_synced(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the first roll of a new log does: nothing of that was synced yet."""
    storage.open()
    waited: list[int] = []
    sync = Disk.sync_directory

    def synced(disk: Disk, path: str) -> None:
        if current_thread() is main_thread():
            waited.append(offset)
        sync(disk, path)

    monkeypatch.setattr(Disk, "sync_directory", synced)
    for offset in range(12):
        storage.do(storage.append(offset, LOG, synced=False, size=300))
    assert len(list(storage.log_path(LOG).glob("*.log"))) > 3
    assert waited == [2]
    storage.close()


def test_deleted_log_is_gone_and_may_begin_again_at_0(storage: Storage, tmp_path: Path) -> None:
    storage.open()
    storage.do(*[storage.append(i, LOG, synced=False, size=300) for i in range(5)])
    events = storage.do(
        DeleteLog(log=LOG, token=storage.token()),
        OpenLog(log=LOG, token=storage.token(), topic_id=UUID(int=5)),
    )
    (opened,) = events
    assert isinstance(opened, Opened)
    assert (opened.state.end_offset, opened.state.topic_id) == (0, UUID(int=5))
    assert not list(tmp_path.glob("*-delete"))
    storage.do(DeleteLog(log=LOG, token=storage.token()))
    assert Storage(storage.path).files.found == ()
    storage.close()


def test_high_watermark_of_a_deleted_log_is_not_that_of_the_next(
    storage: Storage, tmp_path: Path
) -> None:
    """The process dies before the next checkpoint, whatever was saved when (cluster 142000093)."""
    storage.open()
    storage.do(*[storage.append(i, LOG, synced=False) for i in range(5)])
    storage.do(SaveHighWatermarks(entries=(("topic-with-dashes", 3, 5),)))
    opening = OpenLog(log=LOG, token=storage.token(), topic_id=UUID(int=5))
    storage.do(DeleteLog(log=LOG, token=storage.token()), opening)
    storage.do(*[storage.append(i, LOG, synced=False) for i in range(3)])
    assert Storage(tmp_path).open(topic_id=UUID(int=5)).state.high_watermark == 0
    storage.close()


def test_forgotten_offset_leaves_the_file_though_it_has_left_the_memory_before(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / HIGH_WATERMARKS)
    checkpoint = OffsetCheckpoint(Disk(), path)
    checkpoint.set({("t", 0): 5, ("t", 1): 6})
    checkpoint.save()
    checkpoint.set({("t", 1): 2})
    checkpoint.forget("t-0")
    assert OffsetCheckpoint(Disk(), path).of("t-0") == 0
    checkpoint.set({("t", 1): 7})
    checkpoint.save()
    checkpoint.set({("t", 1): 1})
    checkpoint.lower_to("t-1", 3)
    assert OffsetCheckpoint(Disk(), path).of("t-1") == 1


def test_offset_that_a_failed_write_may_have_left_is_lowered_in_the_file(tmp_path: Path) -> None:
    disk, path = Disk(), str(tmp_path / HIGH_WATERMARKS)
    checkpoint = OffsetCheckpoint(disk, path)
    checkpoint.set({("t", 0): 5})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk, "sync_directory", broken)
        with pytest.raises(StorageError):
            checkpoint.save()
    checkpoint.set({("t", 0): 2})
    checkpoint.lower_to("t-0", 3)
    assert OffsetCheckpoint(Disk(), path).of("t-0") == 2
    syncs = disk.syncs
    checkpoint.lower_to("t-0", 3)
    assert disk.syncs == syncs, "the file says no more by now"


def broken(_path: str) -> None:
    raise StorageError("the disk is broken")


def test_checkpoint_that_has_changed_while_it_was_written_is_written_again(tmp_path: Path) -> None:
    workers = QueuedWorkers()
    jobs = Jobs(workers)
    writes = CheckpointWrites(jobs, finish=lambda outcome: outcome.result())
    checkpoint = OffsetCheckpoint(Disk(), str(tmp_path / HIGH_WATERMARKS))
    for offset in (5, 6, 7):
        checkpoint.set({("t", 0): offset})
        writes.save(checkpoint)
        workers.wait()  # the first is written, and it is not known yet
    for _ in range(2):
        jobs.settle()
        workers.wait()
    assert OffsetCheckpoint(Disk(), str(tmp_path / HIGH_WATERMARKS)).of("t-0") == 7
    assert not jobs.are_running


def test_checkpoint_on_a_disk_that_hangs_keeps_one_thread_waiting(tmp_path: Path) -> None:
    system = FailingSystem()
    storage = Storage(tmp_path, system=system)
    storage.open("t-0")
    leave = Signal()

    def hangs(name: str, arguments: tuple[Any, ...]) -> None:
        if name == "rename" and arguments[1].endswith(HIGH_WATERMARKS):
            assert leave.wait(10)

    system.fails = hangs
    for offset in range(10):
        storage.files.perform(SaveHighWatermarks(entries=(("t", 0, offset),)))
    storage.files.perform(OpenLog(log="t-1", token=storage.token(), topic_id=TOPIC))
    events = storage.files.take_events()
    while not events and storage.ready.wait(5):
        storage.ready.clear()
        events = storage.files.take_events()
    leave.set()
    assert [type(event) for event in events] == [Opened]
    storage.close()


def test_closed_storage_leaves_no_thread(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    storage = Storage(tmp_path)
    storage.settle()
    assert set(threading.enumerate()) > before
    storage.close()
    assert set(threading.enumerate()) <= before


def test_remains_of_a_deletion_are_cleared_at_the_start(tmp_path: Path) -> None:
    doomed = tmp_path / f"{LOG}.{'0a' * 16}-delete"
    doomed.mkdir()
    (doomed / "x").write_text("")
    storage = Storage(tmp_path)
    storage.settle()
    assert not doomed.exists()
    storage.close()


def test_checkpoints_asked_for_meanwhile_are_written_once(storage: Storage, tmp_path: Path) -> None:
    storage.open("t-0")
    effects = [SaveHighWatermarks(entries=(("t", 0, i),)) for i in range(50)]
    storage.do(*effects)
    assert Path(tmp_path, HIGH_WATERMARKS).read_text() == "0\n1\nt 0 49\n"


def test_thousands_of_logs_share_few_descriptors(tmp_path: Path) -> None:
    disk = Disk(descriptors_max=10)
    files = FileStorage(str(tmp_path), settings=SETTINGS, disk=disk)
    before = len(os.listdir("/proc/self/fd"))
    logs = [f"t-{i}" for i in range(300)]
    for number, log in enumerate(logs):
        files.perform(OpenLog(log=log, token=Token("t", number), topic_id=TOPIC))
        files.perform(Append(log=log, token=Token("t", 1000 + number), records=batch(0)))
    opened = 0
    while opened < len(logs):
        opened += sum(isinstance(event, Opened) for event in files.take_events())
    assert len(os.listdir("/proc/self/fd")) - before < 20
    for number, log in enumerate(logs):
        files.perform(
            Read(log=log, token=Token("t", number), start_offset=0, end_offset=1, bytes_max=99)
        )
    assert all(e.records == batch(0) for e in files.take_events() if isinstance(e, ReadDone))
    files.close(broker_epoch=3)


def test_topic_id_of_a_new_log_is_not_kept_open(tmp_path: Path) -> None:
    disk = Disk()
    files = FileStorage(str(tmp_path), settings=SETTINGS, disk=disk)
    files.perform(OpenLog(log="t-0", token=Token("t", 0), topic_id=TOPIC))
    token, synced = Token("t", 1), Durability.SYNCED
    files.perform(Append(log="t-0", token=token, records=batch(0), durability=synced))
    events: list[StorageEvent] = []
    while not any(isinstance(event, Stored) for event in events):
        events += files.take_events()
    assert disk.descriptors_open == 1, "the segment"
    files.close(broker_epoch=3)


# --- failures -------------------------------------------------------------------------------


def test_log_that_cannot_be_read_fails(tmp_path: Path) -> None:
    system = FailingSystem()
    storage = Storage(tmp_path, system=system)
    storage.open()
    storage.do(storage.append(0, LOG, synced=False))
    system.fail("pread")
    effect = Read(log=LOG, token=storage.token(), start_offset=0, end_offset=1, bytes_max=99)
    (failed,) = storage.do(effect)
    assert isinstance(failed, StorageFailed)
    assert failed.token == effect.token


def test_failed_sync_is_final_and_never_tried_again(tmp_path: Path) -> None:
    system = FailingSystem()
    storage = Storage(tmp_path, system=system)
    storage.files.load(METADATA_LOG, METADATA_TOPIC_ID)
    system.fail("fdatasync", errno.EIO)
    append = storage.append(0)
    (failed,) = storage.do(append)
    assert isinstance(failed, StorageFailed)
    assert (failed.log, failed.token) == (METADATA_LOG, append.token)
    assert "cannot sync" in failed.reason
    system.calls.clear()
    system.fails = lambda name, arguments: None  # the disk would report success now
    later = [storage.append(1), storage.append(2)]
    refused = storage.do(*later)
    assert [type(each) for each in refused] == [StorageFailed, StorageFailed]
    assert [each.token for each in refused] == [each.token for each in later]
    storage.close()
    assert "fdatasync" not in system.calls
    assert not Path(tmp_path, CLEAN_SHUTDOWN).exists()


def test_what_a_failed_sync_left_is_written_again_after_the_restart(tmp_path: Path) -> None:
    """It is read back from memory, and a mere sync would report success (fsyncgate, 2018)."""
    system = FailingSystem()
    storage = Storage(tmp_path, system=system)
    storage.files.load(METADATA_LOG, METADATA_TOPIC_ID)
    storage.do(storage.append(0), storage.append(1))
    system.fail("fdatasync")
    (failed,) = storage.do(storage.append(2), storage.append(3))
    assert isinstance(failed, StorageFailed)
    storage.close()
    done: list[bytes] = []

    def watch(name: str, arguments: tuple[Any, ...]) -> None:
        if name in ("pwrite", "fdatasync"):
            is_segment = os.readlink(f"/proc/self/fd/{arguments[0]}").endswith(f"{0:020d}.log")
            if is_segment:
                done.append(bytes(arguments[1]) if name == "pwrite" else b"synced")

    system = FailingSystem()
    system.fails = watch
    again = Storage(tmp_path, system=system)
    assert again.files.load(METADATA_LOG, METADATA_TOPIC_ID).state.end_offset == 4
    assert done == [batch(2) + batch(3), b"synced"]
    again.close()


def test_write_that_fails_during_a_sync_is_the_last_that_is_heard_of_the_log(
    tmp_path: Path,
) -> None:
    system = FailingSystem()
    storage = Storage(tmp_path, system=system)
    storage.files.load(METADATA_LOG, METADATA_TOPIC_ID)
    entered, leave = Signal(), Signal()

    def fails(name: str, arguments: tuple[Any, ...]) -> OSError | None:
        if name == "fdatasync":
            entered.set()
            assert leave.wait(10)
        is_write = name == "pwrite" and entered.is_set() and not leave.is_set()
        return OSError(errno.ENOSPC, "no space") if is_write else None

    system.fails = fails
    storage.files.perform(storage.append(0))
    assert storage.files.take_events() == []
    assert entered.wait(10)
    second = storage.append(1)
    storage.files.perform(second)
    (failed,) = storage.files.take_answers()
    assert isinstance(failed, StorageFailed)
    assert failed.token == second.token
    leave.set()
    assert storage.settle() == []


def test_what_was_written_in_the_turn_of_an_election_is_synced_with_it(tmp_path: Path) -> None:
    """`Stored` of the election says that it is durable, too."""
    system = FailingSystem()
    storage = Storage(tmp_path, system=system)
    storage.files.load(METADATA_LOG, METADATA_TOPIC_ID)
    system.calls.clear()
    token = storage.token()
    save = SaveElection(log=METADATA_LOG, token=token, election=ElectionState(epoch=2))
    assert Stored(log=METADATA_LOG, token=token) in storage.do(storage.append(0), save)
    assert "fdatasync" in system.calls


def test_election_is_not_saved_beside_a_sync_of_what_came_before_it() -> None:
    """That it is stored says that they are, too."""
    queue = LogQueue(log=METADATA_LOG, pace=SyncPace(0.0), is_syncing=True)
    token = Token("raft", 1)
    save = SaveElection(log=METADATA_LOG, token=token, election=ElectionState(epoch=2))
    queue.waiting.append(save)
    assert queue.next_effect() is None
    queue.is_syncing = False
    assert queue.next_effect() is save


@pytest.mark.parametrize("alone", [True, False])
def test_no_sync_begins_beside_what_has_the_log_for_itself(alone: bool) -> None:
    token = Token("raft", 1)
    truncate = Truncate(log=METADATA_LOG, token=token, end_offset=3)
    queue = LogQueue(log=METADATA_LOG, pace=SyncPace(0.0), alone=truncate if alone else None)
    queue.want_sync(token)
    assert queue.may_sync() is not alone


def test_failed_election_is_not_acknowledged(tmp_path: Path) -> None:
    system = FailingSystem()
    storage = Storage(tmp_path, system=system)
    storage.files.load(METADATA_LOG, METADATA_TOPIC_ID)
    system.fail("fsync")
    effect = SaveElection(log=METADATA_LOG, token=storage.token(), election=ElectionState(epoch=4))
    (failed,) = storage.do(effect)
    assert isinstance(failed, StorageFailed)
    storage.files.close(broker_epoch=None)
    system.fails = lambda name, arguments: None
    again = Storage(tmp_path)
    assert again.files.load(METADATA_LOG, METADATA_TOPIC_ID).election == ElectionState()
    again.close()


@pytest.mark.parametrize("call", ["fdatasync", "ftruncate", "fsync"])
def test_failure_while_closing_is_told_and_leaves_no_mark(tmp_path: Path, call: str) -> None:
    system = FailingSystem()
    storage = Storage(tmp_path, system=system)
    storage.files.load(METADATA_LOG, METADATA_TOPIC_ID)
    storage.do(storage.append(0))
    system.fail(call, errno.ENOSPC)
    storage.close()
    assert any("No space left on device" in line for line in storage.said)
    assert not Path(tmp_path, CLEAN_SHUTDOWN).exists()


def test_unreadable_log_fails_to_open(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    (tmp_path / LOG).write_text("no directory")
    opening = OpenLog(log=LOG, token=storage.token(), topic_id=TOPIC)
    (failed,) = storage.do(opening)
    assert isinstance(failed, StorageFailed)
    assert str(tmp_path / LOG) in failed.reason
    storage.close()


def test_full_disk_leaves_whole_batches_only(tmp_path: Path) -> None:
    """A real limit of the system, in a process of its own: the write stops in the middle."""
    program = f"""
import resource
from tests.quorum.storage.test_files import *
storage = Storage(Path({str(tmp_path)!r}))
storage.files.load(METADATA_LOG, METADATA_TOPIC_ID)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
for offset in range(100):
    for event in storage.do(storage.append(offset)):
        if isinstance(event, StorageFailed):
            print(offset, event.reason, flush=True)
            os._exit(0)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    offset, _, reason = done.stdout.partition(" ")
    assert "File too large; raise the file size limit" in reason
    again = Storage(tmp_path)
    assert again.files.load(METADATA_LOG, METADATA_TOPIC_ID).state.end_offset == int(offset)
    again.close()
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1000


def test_everything_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    program = f"""
from tests.quorum.storage.test_files import *
storage = Storage(Path({str(tmp_path)!r}))
storage.files.load(METADATA_LOG, METADATA_TOPIC_ID)
storage.open()
for offset in range(10**6):
    events = storage.do(storage.append(offset, size=50), storage.append(offset, LOG, size=90))
    assert len(events) == 2, events
    print(offset, flush=True)
"""
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    with child:
        assert child.stdout is not None
        for line in child.stdout:
            if int(line) >= 60:
                break
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().split("\n")
    acknowledged = max(int(line) for line in [*rest[:-1], "60"] if line)
    again = Storage(tmp_path)
    state = again.files.load(METADATA_LOG, METADATA_TOPIC_ID).state
    assert state.end_offset > acknowledged
    assert again.open().state.end_offset > acknowledged
    expected = b"".join(batch(offset, size=50) for offset in range(state.end_offset))
    assert again.read() == expected
    again.close()


def test_metadata_directory_may_be_another(tmp_path: Path) -> None:
    for name in ("data", "metadata"):
        (tmp_path / name).mkdir()
    files = FileStorage(str(tmp_path / "data"), metadata_directory=str(tmp_path / "metadata"))
    files.load(METADATA_LOG, METADATA_TOPIC_ID)
    assert (tmp_path / "metadata" / METADATA_LOG).is_dir()
    files.close(broker_epoch=-1)


def test_missing_directory_is_a_sentence(tmp_path: Path) -> None:
    files = FileStorage(str(tmp_path), metadata_directory=str(tmp_path / "gone"))
    with pytest.raises(StorageError, match=r"cannot create .*gone"):
        files.load(METADATA_LOG, METADATA_TOPIC_ID)
    files.close(broker_epoch=None)
