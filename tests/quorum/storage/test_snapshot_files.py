"""Snapshots on real files: saved, received, read, trimmed, and what a start makes of them."""

import errno
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from shutil import copytree
from threading import Event as Signal
from typing import Any

import pytest

from quorum.core.effects import (
    Append,
    EpochStart,
    LogState,
    ReadSnapshot,
    ReceiveSnapshot,
    ResetLog,
    SaveSnapshot,
    SnapshotFile,
    SnapshotRead,
    SnapshotSaved,
    StorageFailed,
    Stored,
    Trim,
    Trimmed,
)
from quorum.core.log_settings import LogSettings
from quorum.core.storage import METADATA_LOG
from quorum.core.types import OffsetAndEpoch
from quorum.log.files.checkpoints import EPOCHS, CorruptFile
from quorum.log.files.file_storage import FileStorage, StorageSettings
from quorum.log.files.recovery import CorruptLog
from quorum.log.files.snapshot_files import snapshot_name
from tests.quorum.log_files import FailingSystem, batch
from tests.quorum.storages import Storage
from wire.batch import Record, assign, build_batch
from wire.control_records import (
    ControlRecord,
    LeaderChange,
    LeaderChangeVoter,
    SnapshotFooter,
    SnapshotHeader,
    Voters,
    encode_control_batch,
)
from wire.primitives import METADATA_TOPIC_ID

GOLDEN = Path(__file__).parents[2] / "golden"
AT_50 = OffsetAndEpoch(50, 3)
SETTINGS = StorageSettings(metadata=LogSettings(segment_bytes=1000, preallocate_bytes=4096))


LONG = LeaderChange(
    leader_id=1,
    voters=tuple(LeaderChangeVoter(voter_id=voter_id) for voter_id in range(20_000)),
    granting_voters=(),
)


def pieces(*, epoch: int = 3, values: int = 3, more: tuple[ControlRecord, ...] = ()) -> list[bytes]:
    first = SnapshotHeader(last_contained_log_timestamp=7)
    header = encode_control_batch([first, *more], timestamp_ms=7)
    data = [build_batch([Record(value=b"%d" % n)], timestamp_ms=7) for n in range(values)]
    footer = encode_control_batch([SnapshotFooter()], timestamp_ms=7)
    return [
        assign(each, base_offset=offset, leader_epoch=epoch)
        for offset, each in enumerate([header, *data, footer])
    ]


def whole(**more: Any) -> bytes:
    return b"".join(pieces(**more))


def started(path: Path, **more: Any) -> tuple[Storage, LogState]:
    storage = Storage(path, settings=SETTINGS, **more)
    return storage, storage.files.load(METADATA_LOG, METADATA_TOPIC_ID).state


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return started(tmp_path)[0]


def save(storage: Storage, snapshot_id: OffsetAndEpoch = AT_50) -> SaveSnapshot:
    content = iter(pieces(epoch=snapshot_id.epoch))
    return SaveSnapshot(log=METADATA_LOG, token=storage.token(), id=snapshot_id, content=content)


def receive(
    storage: Storage,
    records: bytes,
    *,
    position: int = 0,
    is_last: bool = True,
    snapshot_id: OffsetAndEpoch = AT_50,
) -> ReceiveSnapshot:
    return ReceiveSnapshot(
        log=METADATA_LOG,
        token=storage.token(),
        id=snapshot_id,
        position=position,
        records=records,
        is_last=is_last,
    )


def read(storage: Storage, position: int = 0, bytes_max: int = 1 << 20) -> ReadSnapshot:
    return ReadSnapshot(
        log=METADATA_LOG, token=storage.token(), id=AT_50, position=position, bytes_max=bytes_max
    )


def fill(storage: Storage, end_offset: int, *, start_offset: int = 0, epoch: int = 3) -> None:
    storage.do(
        *(
            storage.append(offset, epoch=epoch, size=100)
            for offset in range(start_offset, end_offset)
        )
    )


def trim(storage: Storage, start_offset: int) -> Trim:
    return Trim(log=METADATA_LOG, token=storage.token(), start_offset=start_offset)


def names(storage: Storage) -> list[str]:
    """The names of snapshots, finished or not."""
    return sorted(path.name for path in storage.log_path().glob("0*.checkpoint*"))


def segments(storage: Storage) -> list[int]:
    return sorted(int(path.stem) for path in storage.log_path().glob("*.log"))


# --- saving and receiving -------------------------------------------------------------------


def test_saved_snapshot_is_found_at_the_next_start(storage: Storage, tmp_path: Path) -> None:
    fill(storage, 60)
    effect = save(storage)
    file = SnapshotFile(id=AT_50, size_bytes=len(whole()), head=pieces()[0])
    assert storage.do(effect) == [SnapshotSaved(token=effect.token, log=METADATA_LOG, file=file)]
    assert (storage.log_path() / snapshot_name(AT_50)).read_bytes() == whole()
    storage.close()
    _, state = started(tmp_path)
    assert state.snapshots == (file,)


def test_appends_are_stored_while_a_snapshot_is_being_saved(storage: Storage) -> None:
    drawn, go_on = Signal(), Signal()

    def content() -> Iterator[bytes]:
        first, *others = pieces()
        yield first
        drawn.set()
        assert go_on.wait(10)
        yield from others

    slow = SaveSnapshot(
        log=METADATA_LOG, token=storage.token(), id=OffsetAndEpoch(1, 3), content=content()
    )
    storage.files.perform(slow)
    assert drawn.wait(10)
    append = storage.append(0, epoch=3)
    storage.files.perform(append)
    stored: list[object] = []
    while not stored:
        stored += storage.files.take_events()
    assert stored == [Stored(log=METADATA_LOG, token=append.token)]
    go_on.set()
    assert [type(event) for event in storage.settle()] == [SnapshotSaved]


def test_received_pieces_become_a_snapshot_with_the_last(storage: Storage) -> None:
    content = whole()
    cut = len(content) // 3
    first = receive(storage, content[:cut], is_last=False)
    assert storage.do(first) == []
    assert names(storage) == ["00000000000000000050-0000000003-received.checkpoint.part"]
    last = receive(storage, content[cut:], position=cut)
    (saved,) = storage.do(last)
    assert isinstance(saved, SnapshotSaved)
    assert (saved.token, saved.file.size_bytes) == (last.token, len(content))
    assert names(storage) == [snapshot_name(AT_50)]


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"no batch at all" * 20, id="garbage"),
        pytest.param(whole()[:-1], id="cut short"),
        pytest.param(whole() + b"\0", id="something behind"),
        pytest.param(b"".join(pieces()[:-1]), id="no footer"),
        pytest.param(b"".join(pieces()[1:]), id="no header"),
        pytest.param(whole()[:100] + b"?" + whole()[101:], id="wrong checksum"),
        pytest.param(whole(more=(Voters(voters=()),)), id="no voters"),
        pytest.param(whole() + whole(), id="two of them"),
        pytest.param(b"".join(pieces()[:1] + pieces()[2:]), id="a batch is missing"),
        pytest.param(whole(more=(LONG,)), id="a first batch without end"),
    ],
)
def test_what_is_no_whole_snapshot_is_removed(storage: Storage, records: bytes) -> None:
    effect = receive(storage, records)
    gone = SnapshotRead(token=effect.token, log=METADATA_LOG, size_bytes=-1, records=b"")
    assert storage.do(effect) == [gone]
    assert names(storage) == []


def test_another_snapshot_replaces_one_half_received(storage: Storage) -> None:
    later = OffsetAndEpoch(70, 4)
    storage.do(receive(storage, whole()[:50], is_last=False))
    storage.do(receive(storage, whole(epoch=4), snapshot_id=later))
    assert names(storage) == [snapshot_name(later)]


def test_snapshot_that_is_being_checked_stays_while_another_one_begins(tmp_path: Path) -> None:
    system = FailingSystem()
    storage, _ = started(tmp_path, system=system)
    entered, leave = Signal(), Signal()

    def waits(name: str, arguments: tuple[Any, ...]) -> None:
        if name == "fdatasync":
            entered.set()
            assert leave.wait(10)

    system.fails = waits
    storage.files.perform(receive(storage, whole()))
    assert entered.wait(10)
    another = OffsetAndEpoch(60, 3)
    storage.files.perform(receive(storage, whole()[:60], is_last=False, snapshot_id=another))
    leave.set()
    (saved,) = storage.settle()
    assert isinstance(saved, SnapshotSaved)
    assert saved.file.id == AT_50


def test_receiving_may_begin_again(storage: Storage) -> None:
    storage.do(receive(storage, whole()[:200] + b"#" * 900, is_last=False))
    (saved,) = storage.do(receive(storage, whole()))
    assert isinstance(saved, SnapshotSaved)
    assert saved.file.size_bytes == len(whole())


# --- reading --------------------------------------------------------------------------------


def test_pieces_that_are_read_make_up_the_file(storage: Storage) -> None:
    storage.do(save(storage))
    content = b""
    while len(content) < len(whole()):
        (event,) = storage.do(read(storage, position=len(content), bytes_max=37))
        assert isinstance(event, SnapshotRead)
        assert event.size_bytes == len(whole())
        content += event.records
    assert content == whole()


def test_reading_what_is_not_there_says_so(storage: Storage) -> None:
    effect = read(storage)
    gone = SnapshotRead(token=effect.token, log=METADATA_LOG, size_bytes=-1, records=b"")
    assert storage.do(effect) == [gone]


# --- trimming -------------------------------------------------------------------------------


def test_trim_removes_whole_segments_and_earlier_snapshots(
    storage: Storage, tmp_path: Path
) -> None:
    fill(storage, 60)
    storage.do(save(storage, OffsetAndEpoch(20, 3)), save(storage))
    before = segments(storage)
    effect = trim(storage, 50)
    (event,) = storage.do(effect)
    assert isinstance(event, Trimmed)
    assert (event.token, event.start_offset) == (effect.token, 50)
    assert names(storage) == [snapshot_name(AT_50)]
    assert segments(storage)[0] == max(base for base in before if base <= 50)
    assert segments(storage) == before[-len(segments(storage)) :]
    assert storage.read(start_offset=49) == b""
    assert storage.read(start_offset=50).startswith(batch(50, epoch=3, size=100))
    storage.close()
    again, state = started(tmp_path)
    assert state.start_offset == segments(again)[0]
    assert state.size_bytes == event.size_bytes
    assert [file.id for file in state.snapshots] == [AT_50]


def test_trim_to_the_end_leaves_an_empty_log_that_knows_its_epoch(
    storage: Storage, tmp_path: Path
) -> None:
    fill(storage, 50)
    storage.do(save(storage))
    (event,) = storage.do(trim(storage, 50))
    assert isinstance(event, Trimmed)
    assert (event.start_offset, event.size_bytes, segments(storage)) == (50, 0, [50])
    storage.close()
    _, state = started(tmp_path)
    assert (state.start_offset, state.end_offset, state.last_epoch) == (50, 50, 3)
    assert state.epochs == (EpochStart(3, 50),)


def test_removing_segments_holds_back_no_append(tmp_path: Path) -> None:
    """A large file takes its time to be removed, and a vote must not wait for that."""
    system = FailingSystem()
    storage, _ = started(tmp_path, system=system)
    fill(storage, 50)
    storage.do(save(storage))
    entered, leave = Signal(), Signal()

    def fails(name: str, arguments: tuple[object, ...]) -> None:
        if name == "unlink":
            entered.set()
            assert leave.wait(10)

    system.fails = fails
    storage.files.perform(trim(storage, 50))
    while not entered.is_set():
        storage.files.take_events()
    append = storage.append(50, epoch=3)
    storage.files.perform(append)
    stored: list[object] = []
    while not stored:
        stored += storage.files.take_events()
    assert stored == [Stored(log=METADATA_LOG, token=append.token)]
    leave.set()
    assert storage.settle() == []


# --- a log that begins anew -----------------------------------------------------------------


def reset(storage: Storage, start: OffsetAndEpoch = AT_50) -> ResetLog:
    return ResetLog(log=METADATA_LOG, token=storage.token(), start=start)


def test_reset_log_goes_on_where_the_snapshot_ends(storage: Storage, tmp_path: Path) -> None:
    fill(storage, 20, epoch=1)
    storage.do(receive(storage, whole()))
    effect = reset(storage)
    assert storage.do(effect) == [Stored(log=METADATA_LOG, token=effect.token)]
    assert segments(storage) == [50]
    storage.do(storage.append(50, epoch=4))
    storage.close()
    _, state = started(tmp_path)
    assert (state.start_offset, state.end_offset, state.last_epoch) == (50, 51, 4)
    assert state.epochs == (EpochStart(4, 50),)


def test_empty_log_after_a_reset_knows_the_epoch_of_the_snapshot(
    storage: Storage, tmp_path: Path
) -> None:
    fill(storage, 20, epoch=1)
    storage.do(receive(storage, whole()), reset(storage))
    storage.close()
    _, state = started(tmp_path)
    assert (state.end_offset, state.last_epoch, state.epochs) == (50, 3, (EpochStart(3, 50),))


@pytest.mark.parametrize(("records", "offset"), [(20, 50), (0, 1)])
def test_start_finishes_a_reset_that_a_crash_prevented(
    storage: Storage, tmp_path: Path, records: int, offset: int
) -> None:
    """The snapshot was received, the log not yet begun anew: as in Kafka, it goes as a whole."""
    fill(storage, records, epoch=1)
    storage.do(receive(storage, whole(), snapshot_id=OffsetAndEpoch(offset, 3)))
    storage.close()
    again, state = started(tmp_path)
    assert (state.start_offset, state.end_offset, state.last_epoch) == (offset, offset, 3)
    assert state.control_batches == ()
    assert any("beginning anew" in line for line in again.said)


def test_epochs_of_the_old_log_say_nothing_of_the_new_one(storage: Storage, tmp_path: Path) -> None:
    """The crash came before they were replaced. The old log may have ended in a later epoch, of
    which nothing was committed: at the end of a snapshot that would be an end that nobody knows."""
    fill(storage, 20, epoch=5)
    storage.do(receive(storage, whole()))
    epochs = storage.log_path() / EPOCHS
    before = epochs.read_bytes()
    storage.do(reset(storage))
    storage.close()
    assert before != epochs.read_bytes()
    epochs.write_bytes(before)
    _, state = started(tmp_path)
    assert (state.end_offset, state.last_epoch, state.epochs) == (50, 3, (EpochStart(3, 50),))


# --- what a start makes of the files --------------------------------------------------------


def test_leftovers_and_snapshots_before_the_log_are_removed(
    storage: Storage, tmp_path: Path
) -> None:
    fill(storage, 60)
    storage.do(save(storage), trim(storage, 50))
    storage.close()
    for name in (
        "00000000000000000030-0000000003.checkpoint",
        "00000000000000000070-0000000003-8123.checkpoint.part",
        "00000000000000000020-0000000003.checkpoint.deleted",
    ):
        (storage.log_path() / name).write_bytes(whole())
    again, state = started(tmp_path)
    assert names(again) == [snapshot_name(AT_50)]
    assert [file.id for file in state.snapshots] == [AT_50]


def test_log_without_the_snapshot_of_what_came_before_is_refused(
    storage: Storage, tmp_path: Path
) -> None:
    fill(storage, 60)
    storage.do(save(storage), trim(storage, 50))
    storage.close()
    (storage.log_path() / snapshot_name(AT_50)).unlink()
    with pytest.raises(CorruptLog, match="there is no snapshot of what came before"):
        started(tmp_path)


def test_snapshot_with_a_damaged_beginning_is_refused(storage: Storage, tmp_path: Path) -> None:
    fill(storage, 60)
    storage.do(save(storage))
    storage.close()
    path = storage.log_path() / snapshot_name(AT_50)
    path.write_bytes(b"?" * 40 + whole()[40:])
    with pytest.raises(CorruptFile, match=snapshot_name(AT_50)):
        started(tmp_path)


def test_control_batches_of_the_log_are_found(storage: Storage, tmp_path: Path) -> None:
    change = LeaderChange(leader_id=1, voters=(), granting_voters=())
    control = assign(encode_control_batch([change], timestamp_ms=1), base_offset=1, leader_epoch=3)
    append = storage.append(0, epoch=2)
    effect = Append(log=METADATA_LOG, token=storage.token(), records=control)
    storage.do(append, effect)
    storage.close()
    _, state = started(tmp_path)
    assert state.control_batches == (control,)
    assert state.size_bytes == len(append.records) + len(control)


# --- failures -------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("call", ["pwrite", "fdatasync", "rename"])
def test_failing_disk_under_a_snapshot_fails_the_log(
    tmp_path: Path, call: str, number: int
) -> None:
    system = FailingSystem()
    storage, _ = started(tmp_path, system=system)
    system.fail(call, number)
    effect = save(storage)
    (event,) = storage.do(effect)
    assert isinstance(event, StorageFailed)
    assert (event.token, event.log) == (effect.token, METADATA_LOG)
    assert f"{snapshot_name(AT_50).removesuffix('.checkpoint')}-saved" in event.reason
    append = storage.append(0)
    (refused,) = storage.do(append)  # nothing is carried out after a failure, and that is said
    assert isinstance(refused, StorageFailed)
    assert refused.token == append.token


def test_failing_disk_under_a_removal_fails_the_log(tmp_path: Path) -> None:
    system = FailingSystem()
    storage, _ = started(tmp_path, system=system)
    fill(storage, 60)
    storage.do(save(storage))
    system.fail("unlink")
    trimmed, failed = storage.do(trim(storage, 50))
    assert isinstance(trimmed, Trimmed)
    assert isinstance(failed, StorageFailed)


def test_closing_does_not_wait_for_a_snapshot(storage: Storage) -> None:
    endless = SaveSnapshot(
        log=METADATA_LOG, token=storage.token(), id=AT_50, content=repeat(pieces()[1])
    )
    storage.files.perform(endless)
    storage.close()
    assert names(storage) == []


# --- Kafka's directories --------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    sorted({path.parent for path in GOLDEN.glob("*/*/__cluster_metadata-0/*")}),
    ids=lambda path: str(path.parent.relative_to(GOLDEN)),
)
def test_directories_of_kafka_load(path: Path, tmp_path: Path) -> None:
    copied = tmp_path / "data"
    copytree(path.parent, copied)
    expected = sorted(file.name for file in path.glob("*.checkpoint"))
    storage = FileStorage(str(copied))
    state = storage.load(METADATA_LOG, METADATA_TOPIC_ID).state
    assert [snapshot_name(file.id) for file in state.snapshots] == expected
    assert state.end_offset == 0 or state.control_batches
    storage.close(broker_epoch=None)
