"""Several data directories: where logs lie, what fails together, what is found at a start."""

import errno
import os
from pathlib import Path
from threading import Event as Signal
from typing import Any
from uuid import UUID

import pytest

from jepsen_like.sim.disks.world_workers import QueuedWorkers
from quorum.core.effects import (
    Append,
    Configure,
    DeleteLog,
    Durability,
    FoundLog,
    OpenLog,
    Read,
    ResetLog,
    Retain,
    SaveElection,
    SaveHighWatermarks,
    StorageFailed,
    Stored,
    Token,
    Trim,
    Trimmed,
    Truncate,
)
from quorum.core.log_settings import LogSettings
from quorum.core.storage import METADATA_LOG, StorageError
from quorum.core.types import ElectionState, OffsetAndEpoch
from quorum.log.files.checkpoints import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    parse_clean_shutdown,
)
from quorum.log.files.disk import Disk
from quorum.log.files.file_storage import FileStorage
from quorum.log.files.jobs import Pool
from quorum.log.files.log_queue import Alone, LogQueue, pool_of
from quorum.log.files.sync_pace import SyncPace
from tests.quorum.log_files import FailingSystem, batch
from tests.quorum.storages import TOPIC, Storage
from wire.primitives import METADATA_TOPIC_ID, ZERO_UUID

A, B = UUID(int=0xA), UUID(int=0xB)
SMALL = LogSettings(segment_bytes=400, index_interval_bytes=100)


def started(path: Path, **more: Any) -> Storage:
    """With the metadata log in a directory of its own."""
    for name in ("meta", "a", "b"):
        (path / name).mkdir(exist_ok=True)
    directories = {str(path / "a"): A, str(path / "b"): B}
    storage = Storage(path / "meta", directories=directories, **more)
    storage.files.load(METADATA_LOG, METADATA_TOPIC_ID)
    return storage


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return started(tmp_path)


def fill(storage: Storage, log: str, count: int, *, first: int = 0, **more: Any) -> None:
    storage.do(
        *(storage.append(n, log, synced=False, size=100, **more) for n in range(first, count))
    )


def base_offsets(path: Path) -> list[int]:
    return sorted(int(each.stem) for each in path.glob("*.log"))


# --- places ---------------------------------------------------------------------------------


def test_log_is_created_where_it_is_wanted_and_found_there(
    storage: Storage, tmp_path: Path
) -> None:
    assert storage.open("t-0", directory_id=B).state.directory_id == B
    assert storage.open("t-1", directory_id=A).state.directory_id == A
    assert (tmp_path / "b" / "t-0").is_dir()
    storage.close()
    again = started(tmp_path)
    assert set(again.files.found) == {
        FoundLog(log="t-0", topic_id=TOPIC, directory_id=B),
        FoundLog(log="t-1", topic_id=TOPIC, directory_id=A),
    }
    assert again.open("t-0", directory_id=A).state.directory_id == B, "it stays where it lies"


def test_log_is_not_created_in_a_directory_that_is_not_there(storage: Storage) -> None:
    effect = OpenLog(log="t-0", token=storage.token(), topic_id=TOPIC, directory_id=UUID(int=0xC))
    (failed,) = storage.do(effect)
    assert isinstance(failed, StorageFailed)
    assert (failed.token, failed.directory_id) == (effect.token, UUID(int=0xC))


def test_of_two_copies_the_wanted_one_is_opened_and_the_other_set_aside(
    storage: Storage, tmp_path: Path
) -> None:
    storage.open("t-0", directory_id=A)
    fill(storage, "t-0", 2)
    storage.close()
    (tmp_path / "b" / "t-0").mkdir()
    again = started(tmp_path)
    assert again.open("t-0", directory_id=A).state.end_offset == 2
    assert [each.name for each in (tmp_path / "a").glob("t-*")] == ["t-0"]
    (aside,) = (tmp_path / "b").glob("t-*")
    assert aside.name.startswith("t-0.")
    assert aside.name.endswith("-stray")
    assert again.said == [
        f"{tmp_path}/b/t-0 is a copy of the one in {tmp_path}/a: set aside",
    ]


def test_copy_in_a_directory_that_has_failed_stays_where_it_is(
    storage: Storage, tmp_path: Path
) -> None:
    storage.open("t-0", directory_id=A)
    storage.open("t-1", directory_id=B)
    storage.close()
    (tmp_path / "b" / "t-0").mkdir()
    system = FailingSystem()
    again = started(tmp_path, system=system)
    again.open("t-1")
    system.fail("pwrite")
    again.do(again.append(0, "t-1"))
    system.fails = lambda name, arguments: None
    again.open("t-0", directory_id=A)
    assert (tmp_path / "b" / "t-0").is_dir()


def test_checkpoints_hold_the_logs_of_their_directory(storage: Storage, tmp_path: Path) -> None:
    storage.open("t-0", directory_id=A)
    storage.open("t-1", directory_id=B)
    entries = (("t", 0, 5), ("t", 1, 6), ("t", 2, 7))
    storage.do(SaveHighWatermarks(entries=entries))
    storage.close()
    for name, line in (("a", "t 0 5"), ("b", "t 1 6")):
        assert (tmp_path / name / HIGH_WATERMARKS).read_text() == f"0\n1\n{line}\n"
        assert (tmp_path / name / CLEAN_SHUTDOWN).exists()


@pytest.mark.parametrize(
    ("broker_epoch", "named"), [(None, 7), (-1, 7), (8, 8)], ids=["killed", "unregistered", "new"]
)
def test_mark_of_an_orderly_stop_outlives_a_process_that_opened_no_log(
    storage: Storage, tmp_path: Path, broker_epoch: int | None, named: int
) -> None:
    storage.open("t-0", directory_id=A)
    storage.files.close(broker_epoch=7)
    started(tmp_path).files.close(broker_epoch=broker_epoch)
    for directory in ("a", "b"):
        mark = (tmp_path / directory / CLEAN_SHUTDOWN).read_bytes()
        assert parse_clean_shutdown(mark) == named


def test_mark_of_an_orderly_stop_goes_before_a_log_of_its_directory_is_touched(
    storage: Storage, tmp_path: Path
) -> None:
    storage.open("t-0", directory_id=A)
    storage.open("t-1", directory_id=B)
    storage.files.close(broker_epoch=7)
    again = started(tmp_path)
    marks = [tmp_path / name / CLEAN_SHUTDOWN for name in ("a", "b")]
    again.open("t-0", directory_id=A)
    assert [mark.exists() for mark in marks] == [False, True]
    again.do(DeleteLog(log="t-1", token=again.token()))
    assert [mark.exists() for mark in marks] == [False, False]
    again.files.close(broker_epoch=None)


def test_stray_log_is_set_aside_with_its_records(storage: Storage, tmp_path: Path) -> None:
    name = "t" * 249 + "-0"
    storage.open(name, directory_id=A)
    fill(storage, name, 1)
    storage.close()
    again = started(tmp_path)
    again.do(DeleteLog(log=name, token=again.token(), is_stray=True))
    (aside,) = (tmp_path / "a").glob("t*")
    assert aside.name.endswith("-stray")
    assert len(aside.name) == 255, "topics have long names, and files must not have longer ones"
    assert (aside / f"{0:020d}.log").stat().st_size == len(batch(0, size=100))
    assert f"{name.removesuffix('-0')} " not in (tmp_path / "a" / RECOVERY_POINTS).read_text()
    assert again.open(name).state.end_offset == 0
    again.close()
    assert [each.log for each in started(tmp_path).files.found] == [name]


def test_where_a_deleted_log_was_is_forgotten(storage: Storage) -> None:
    storage.open("t-0", directory_id=A)
    storage.do(DeleteLog(log="t-0", token=storage.token()))
    with pytest.raises(KeyError):
        storage.files._directories.home("t-0")


# --- failures -------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EACCES])
def test_failed_write_takes_its_directory_and_no_other(tmp_path: Path, number: int) -> None:
    system = FailingSystem()
    storage = started(tmp_path, system=system)
    for log, directory_id in (("t-0", A), ("t-1", A), ("t-2", B)):
        storage.open(log, directory_id=directory_id)
    system.fail("pwrite", number)
    append = storage.append(0, "t-0")
    failed, other = storage.do(append)
    assert isinstance(failed, StorageFailed)
    assert isinstance(other, StorageFailed)
    assert (failed.log, failed.token, failed.directory_id) == ("t-0", append.token, A)
    assert (other.log, other.directory_id) == ("t-1", A)
    assert os.strerror(number) in failed.reason
    system.fails = lambda name, arguments: None
    good = [storage.append(0), storage.append(0, "t-2"), storage.append(0, "t-1")]
    stored = storage.do(*good)
    assert {each.log for each in stored if isinstance(each, Stored)} == {METADATA_LOG, "t-2"}
    storage.close()
    assert not (tmp_path / "a" / CLEAN_SHUTDOWN).exists()
    assert (tmp_path / "b" / CLEAN_SHUTDOWN).exists()


@pytest.mark.parametrize("call", ["unlink", "rename"], ids=["its mark", "its name"])
@pytest.mark.parametrize("is_opened", [True, False], ids=["set aside", "deleted"])
def test_copy_that_cannot_be_moved_fails_with_its_directory_and_no_other(
    tmp_path: Path, call: str, is_opened: bool
) -> None:
    """Nobody has opened it, so that nobody has said yet where it lies."""
    storage = started(tmp_path)
    storage.open("t-0", directory_id=B)
    storage.files.close(broker_epoch=7)
    if is_opened:
        (tmp_path / "a" / "t-0").mkdir()
    system = FailingSystem()
    again = started(tmp_path, system=system)
    again.open("t-1", directory_id=A)
    system.fails = lambda called, arguments: (
        OSError(errno.EIO, "EIO")
        if called == call and str(arguments[0]).startswith(f"{tmp_path}/b/")
        else None
    )
    effect = (
        OpenLog(log="t-0", token=again.token(), topic_id=TOPIC, directory_id=A)
        if is_opened
        else DeleteLog(log="t-0", token=again.token())
    )
    failed = again.do(effect)
    assert {each.directory_id for each in failed if isinstance(each, StorageFailed)} == {B}
    system.fails = lambda name, arguments: None
    again.files.close(broker_epoch=8)
    assert parse_clean_shutdown((tmp_path / "a" / CLEAN_SHUTDOWN).read_bytes()) == 8
    mark = tmp_path / "b" / CLEAN_SHUTDOWN
    assert not mark.exists() or parse_clean_shutdown(mark.read_bytes()) == 7


def test_what_waits_for_an_answer_of_a_failed_directory_gets_one(tmp_path: Path) -> None:
    system = FailingSystem()
    storage = started(tmp_path, system=system)
    storage.open("t-0", directory_id=A)
    system.fail("pwrite")
    read = Read(log="t-0", token=storage.token(), start_offset=0, end_offset=1, bytes_max=1 << 20)
    _, refused = storage.do(storage.append(0, "t-0"), read)
    assert isinstance(refused, StorageFailed)
    assert refused.token == read.token


def test_what_is_written_to_a_directory_that_has_failed_fails_at_once(tmp_path: Path) -> None:
    """The broker may not know it yet, and no message that rests on the write may leave."""
    system = FailingSystem()
    storage = started(tmp_path, system=system)
    storage.open("t-0", directory_id=A)
    storage.open("t-1", directory_id=A)
    system.fail("pwrite")
    storage.do(storage.append(0, "t-0"))
    append = storage.append(0, "t-1")
    storage.files.perform(append)
    (refused,) = storage.files.take_answers()
    assert isinstance(refused, StorageFailed)
    assert (refused.token, refused.log) == (append.token, "t-1")


def test_what_waits_for_a_log_to_be_opened_is_answered_if_its_directory_fails(
    tmp_path: Path,
) -> None:
    earlier = started(tmp_path)
    earlier.open("t-1", directory_id=A)
    earlier.close()
    system = FailingSystem()
    storage = started(tmp_path, system=system)
    storage.open("t-0", directory_id=A)
    entered, leave = Signal(), Signal()

    def fails(name: str, arguments: tuple[Any, ...]) -> OSError | None:
        if name == "mkdir":
            entered.set()
            assert leave.wait(10)
        return OSError(errno.EIO, "EIO") if name == "pwrite" and not leave.is_set() else None

    system.fails = fails
    opening = OpenLog(log="t-1", token=storage.token(), topic_id=TOPIC, directory_id=A)
    read = Read(log="t-1", token=storage.token(), start_offset=0, end_offset=1, bytes_max=1 << 20)
    append = storage.append(0, "t-0")
    storage.files.perform(opening)
    storage.files.perform(read)
    assert entered.wait(10)
    storage.files.perform(append)
    failed = [each for each in storage.files.take_answers() if isinstance(each, StorageFailed)]
    leave.set()
    assert storage.settle() == []
    told = [(each.log, each.token) for each in failed]
    assert told[0] == ("t-0", append.token)
    assert told[2:] == [("t-1", opening.token), ("t-1", read.token)], "after the log itself"


def test_log_is_not_made_if_its_directory_fails_before(tmp_path: Path) -> None:
    system = FailingSystem()
    storage = started(tmp_path, system=system)
    storage.open("t-0", directory_id=A)
    opening = OpenLog(log="t-1", token=storage.token(), topic_id=TOPIC, directory_id=A)
    append = storage.append(0, "t-0")
    storage.files.perform(opening)
    system.fails = lambda name, _: OSError(errno.EIO, "EIO") if name == "pwrite" else None
    told = [(e.log, e.token) for e in storage.do(append) if isinstance(e, StorageFailed)]
    assert told[0] == ("t-0", append.token)
    assert told[-1] == ("t-1", opening.token)
    assert not list(tmp_path.rglob("t-1"))
    system.fails = lambda name, _: None
    assert storage.open("t-1", directory_id=B).state.directory_id == B
    storage.close()


def test_metadata_log_fails_with_its_directory(tmp_path: Path) -> None:
    system = FailingSystem()
    storage = Storage(tmp_path, system=system)
    storage.files.load(METADATA_LOG, METADATA_TOPIC_ID)
    storage.open("t-0")
    system.fail("pwrite")
    events = storage.do(storage.append(0, "t-0"))
    assert [each.log for each in events if isinstance(each, StorageFailed)] == ["t-0", METADATA_LOG]


def test_log_of_a_failed_directory_begins_again_in_another(tmp_path: Path) -> None:
    system = FailingSystem()
    storage = started(tmp_path, system=system)
    storage.open("t-0", directory_id=A)
    system.fail("pwrite")
    storage.do(storage.append(0, "t-0"))
    system.fails = lambda name, arguments: None
    state = storage.open("t-0", directory_id=B).state
    assert (state.directory_id, state.end_offset) == (B, 0)
    append = storage.append(0, "t-0")
    assert storage.do(append) == [Stored(log="t-0", token=append.token)]


def test_directory_that_cannot_be_read_is_offline_from_the_start(tmp_path: Path) -> None:
    storage = started(tmp_path)
    storage.open("t-0", directory_id=A)
    storage.open("t-1", directory_id=B)
    storage.close()
    (tmp_path / "a" / "t-0" / "partition.metadata").unlink()
    (tmp_path / "a" / "t-0" / "partition.metadata").mkdir()  # no file: reading it fails
    again = started(tmp_path)
    assert again.files.offline == (A,)
    assert [each.log for each in again.files.found] == ["t-1"]
    assert any("directory offline" in line for line in again.said)


def test_only_directory_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    storage.files.load(METADATA_LOG, METADATA_TOPIC_ID)
    storage.open("t-0")
    storage.close()
    (tmp_path / RECOVERY_POINTS).unlink(missing_ok=True)
    (tmp_path / RECOVERY_POINTS).mkdir()
    with pytest.raises(StorageError, match=RECOVERY_POINTS):
        Storage(tmp_path)


# --- retention ------------------------------------------------------------------------------


def retain(storage: Storage, **limits: Any) -> Trimmed:
    effect = Retain(
        log="t-0",
        token=storage.token(),
        **{"end_offset": 1 << 40, "since_ms": None, "bytes_max": None, **limits},
    )
    (event,) = storage.do(effect)
    assert isinstance(event, Trimmed)
    assert event.token == effect.token
    return event


@pytest.fixture
def aged(storage: Storage) -> Storage:
    """Two batches a segment, each as old as its offset says: t-0 with segments 0, 2, 4, 6, 8."""
    storage.open("t-0", directory_id=A, settings=SMALL)
    for offset in range(10):
        storage.do(
            storage.append(offset, "t-0", synced=False, size=100, timestamp_ms=1000 * offset)
        )
    assert base_offsets(storage.path.parent / "a" / "t-0") == [0, 2, 4, 6, 8]
    return storage


def test_retention_keeps_what_no_limit_forbids(aged: Storage) -> None:
    assert retain(aged).start_offset == 0


@pytest.mark.parametrize(
    ("since_ms", "start_offset"), [(1000, 0), (1001, 2), (4999, 4), (5001, 6), (9000, 8)]
)
def test_old_segments_go_from_the_oldest_on(
    aged: Storage, tmp_path: Path, since_ms: int, start_offset: int
) -> None:
    event = retain(aged, since_ms=since_ms)
    assert event.start_offset == start_offset
    assert base_offsets(tmp_path / "a" / "t-0") == list(range(start_offset, 10, 2))
    assert event.size_bytes == (10 - start_offset) * len(batch(0, size=100))


def test_segments_go_that_a_limited_log_can_do_without(aged: Storage) -> None:
    segment = 2 * len(batch(0, size=100))
    assert retain(aged, bytes_max=4 * segment + 1).start_offset == 0
    assert retain(aged, bytes_max=4 * segment).start_offset == 2
    assert retain(aged, bytes_max=2 * segment - 1).start_offset == 6, "never less than the limit"


def test_nothing_above_the_high_watermark_goes(aged: Storage) -> None:
    assert retain(aged, since_ms=10**9, end_offset=5).start_offset == 4


def test_all_old_records_go_and_the_log_goes_on(aged: Storage, tmp_path: Path) -> None:
    event = retain(aged, since_ms=10**9)
    assert (event.start_offset, event.size_bytes) == (10, 0)
    assert base_offsets(tmp_path / "a" / "t-0") == [10]
    fill(aged, "t-0", 11, first=10)
    aged.close()
    again = started(tmp_path).open("t-0").state
    assert (again.start_offset, again.end_offset) == (10, 11)


def test_records_without_a_timestamp_are_as_old_as_their_file(
    storage: Storage, tmp_path: Path
) -> None:
    storage.open("t-0", directory_id=A)
    fill(storage, "t-0", 1, timestamp_ms=-1)
    os.utime(tmp_path / "a" / "t-0" / f"{0:020d}.log", (5, 5))
    assert retain(storage, since_ms=5000).start_offset == 0
    assert retain(storage, since_ms=5001).start_offset == 1


def test_start_inside_a_segment_outlives_the_process(aged: Storage, tmp_path: Path) -> None:
    aged.do(Trim(log="t-0", token=aged.token(), start_offset=5))
    assert (tmp_path / "a" / LOG_STARTS).read_text() == "0\n1\nt 0 5\n"
    aged.close()
    again = started(tmp_path)
    assert again.open("t-0").state.start_offset == 5
    assert again.read("t-0", start_offset=4) == b""


def test_start_that_waits_to_be_noted_is_noted_whatever_follows(
    aged: Storage, tmp_path: Path
) -> None:
    """Nothing is too old: the log starts where it did, and that has not been noted yet."""
    aged.do(
        Trim(log="t-0", token=aged.token(), start_offset=5),
        Retain(log="t-0", token=aged.token(), end_offset=10, since_ms=0, bytes_max=None),
    )
    assert (tmp_path / "a" / LOG_STARTS).read_text() == "0\n1\nt 0 5\n"


def test_log_is_not_deleted_while_its_start_waits_to_be_noted() -> None:
    """Noted after that, it would be the start of the next log of this name."""
    queue = LogQueue(log="t-0", pace=SyncPace(0.0), has_new_start=True)
    queue.waiting.append(DeleteLog(log="t-0", token=Token("broker", 1)))
    assert queue.next_effect() is None
    queue.take_doomed()
    assert isinstance(queue.next_effect(), DeleteLog)


@pytest.mark.parametrize(
    "effect",
    [
        Truncate(log="t-0", token=Token("broker", 1), end_offset=3),
        ResetLog(log="t-0", token=Token("broker", 1), start=OffsetAndEpoch(3, -1)),
    ],
)
def test_log_is_not_begun_anew_while_files_of_its_old_start_are_being_removed(
    effect: Truncate | ResetLog,
) -> None:
    """One of them may have the name of the new segment, whose file would go instead."""
    queue = LogQueue(log="t-0", pace=SyncPace(0.0), is_removing=True)
    queue.waiting.append(effect)
    assert queue.next_effect() is None
    queue.is_removing = False
    assert queue.next_effect() is effect


def test_start_of_a_deleted_log_is_forgotten(aged: Storage, tmp_path: Path) -> None:
    """A topic of the same name starts at 0."""
    aged.do(Trim(log="t-0", token=aged.token(), start_offset=5))
    aged.do(DeleteLog(log="t-0", token=aged.token()))
    aged.open("t-0", directory_id=A)
    fill(aged, "t-0", 7)
    aged.close()
    assert started(tmp_path).open("t-0").state.start_offset == 0


def test_reset_partition_starts_where_it_is_told(aged: Storage, tmp_path: Path) -> None:
    aged.do(Trim(log="t-0", token=aged.token(), start_offset=5))
    effect = ResetLog(log="t-0", token=aged.token(), start=OffsetAndEpoch(3, -1))
    assert aged.do(effect) == [Stored(log="t-0", token=effect.token)]
    fill(aged, "t-0", 5, first=3)
    aged.close()
    state = started(tmp_path).open("t-0").state
    assert (state.start_offset, state.end_offset) == (3, 5)


# --- settings -------------------------------------------------------------------------------


def test_changed_settings_hold_from_the_next_record_on(storage: Storage, tmp_path: Path) -> None:
    storage.open("t-0", directory_id=A)
    fill(storage, "t-0", 4)
    storage.do(Configure(log="t-0", token=storage.token(), settings=SMALL))
    fill(storage, "t-0", 8, first=4)
    assert base_offsets(tmp_path / "a" / "t-0") == [0, 4, 6]


def test_full_index_ends_a_segment(storage: Storage, tmp_path: Path) -> None:
    settings = LogSettings(index_interval_bytes=0, index_bytes_max=24)
    storage.open("t-0", directory_id=A, settings=settings)
    records: list[Append] = [storage.append(n, "t-0", synced=False) for n in range(12)]
    storage.do(*records)
    assert base_offsets(tmp_path / "a" / "t-0") == [0, 4, 8]


def test_placing_leaves_the_choice_to_the_storage(storage: Storage) -> None:
    assert storage.open("t-0", directory_id=ZERO_UUID).state.directory_id == A


def test_log_may_fail_while_one_that_was_never_opened_is_deleted(tmp_path: Path) -> None:
    """What is only found was not placed in a directory, and does not fail with one."""
    storage = Storage(tmp_path)
    storage.open("t-0")
    storage.close()
    system = FailingSystem()
    files = FileStorage(str(tmp_path), disk=Disk(system=system), workers=QueuedWorkers())
    files.perform(DeleteLog(log="t-0", token=storage.token()))
    files.perform(OpenLog(log="t-1", token=storage.token(), topic_id=TOPIC))
    system.fail("pwrite")
    (failed,) = files.take_events()
    assert isinstance(failed, StorageFailed)
    assert failed.log == "t-1"


def test_rewrite_is_told_when_what_waited_for_it_is_written_too(tmp_path: Path) -> None:
    """A follower tells its leader of the end then: a batch that fails must not be in that."""
    system = FailingSystem()
    storage = started(tmp_path, system=system)
    storage.open("t-0", directory_id=A)
    reset = ResetLog(log="t-0", token=storage.token(), start=OffsetAndEpoch(5, -1))
    append = storage.append(5, "t-0", synced=False)

    def fails(name: str, arguments: tuple[Any, ...]) -> OSError | None:
        is_append = name == "pwrite" and bytes(arguments[1]) == append.records
        return OSError(errno.EIO, os.strerror(errno.EIO)) if is_append else None

    system.fails = fails
    told = storage.do(reset, append)
    assert [type(each) for each in told] == [StorageFailed]
    system.fails = lambda name, arguments: None
    (tmp_path / "again").mkdir()
    again = started(tmp_path / "again")
    again.open("t-0", directory_id=A)
    told = again.do(
        ResetLog(log="t-0", token=again.token(), start=reset.start),
        again.append(5, "t-0", synced=False),
    )
    assert [type(each) for each in told] == [Stored]


def test_rewrites_of_partitions_hold_up_no_quorum() -> None:
    """After an election there may be thousands, each with a few syncs."""
    effects: list[Alone] = [
        SaveElection(log=METADATA_LOG, token=Token("", 1), election=ElectionState()),
        Truncate(log="t-0", token=Token("", 2), end_offset=0, durability=Durability.SYNCED),
        ResetLog(log="t-0", token=Token("", 3), start=OffsetAndEpoch(0, -1)),
        DeleteLog(log="t-0", token=Token("", 4)),
    ]
    pools = [pool_of(effect) for effect in effects]
    assert pools == [Pool.SYNC, Pool.REWRITE, Pool.REWRITE, Pool.BACKGROUND]
