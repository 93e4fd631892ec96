"""Snapshots, trimmed logs and logs that begin anew on the faulty disk: what a crash leaves."""

from collections.abc import Iterator

import pytest

from jepsen_like.sim.violation import Crash, Violation
from quorum.core.effects import (
    EpochStart,
    LogState,
    Read,
    ReadDone,
    ReadSnapshot,
    ReceiveSnapshot,
    ResetLog,
    SaveSnapshot,
    SnapshotRead,
    SnapshotSaved,
    StorageFailed,
    Stored,
    Trim,
    Trimmed,
)
from quorum.core.types import OffsetAndEpoch
from quorum.log.snapshots import snapshot_content, snapshot_head
from tests.quorum.disks import snapshot_file
from tests.sim.disk_bench import LOG, DiskBench
from wire.batch import data_batch

AT_THREE = OffsetAndEpoch(3, 1)


def snapshot(*values: bytes) -> bytes:
    batches = [data_batch([value], timestamp_ms=1) for value in values]
    head = snapshot_head(1, ())
    return b"".join(snapshot_content(head, batches, epoch=1, last_timestamp_ms=1))


class Bench(DiskBench):
    """A disk with a log of five batches, of epoch 1, all durable."""

    def __init__(self, seed: int = 0, *, count: int = 5, **faults: float) -> None:
        super().__init__(seed, **faults)
        for offset in range(count):
            self.append(offset)
        self.settle()
        self.events.clear()

    def save(self, end: OffsetAndEpoch = AT_THREE, content: Iterator[bytes] | None = None) -> None:
        pieces = iter([snapshot(b"state")]) if content is None else content
        self.disk.perform(SaveSnapshot(log=LOG, token=self.token(), id=end, content=pieces))

    def receive(self, position: int, records: bytes, *, is_last: bool) -> None:
        self.disk.perform(
            ReceiveSnapshot(
                log=LOG,
                token=self.token(),
                id=AT_THREE,
                position=position,
                records=records,
                is_last=is_last,
            )
        )

    def reset(self, start: OffsetAndEpoch) -> None:
        self.disk.perform(ResetLog(log=LOG, token=self.token(), start=start))

    def trim(self, start_offset: int) -> None:
        self.disk.perform(Trim(log=LOG, token=self.token(), start_offset=start_offset))


def test_saved_snapshot_is_told_of_and_survives() -> None:
    bench = Bench()
    bench.save()
    bench.settle()
    [saved] = bench.events
    assert isinstance(saved, SnapshotSaved)
    assert saved.file.id == AT_THREE
    assert bench.crash().snapshots == (saved.file,)


def test_content_is_drawn_later_than_the_effect() -> None:
    bench = Bench()
    value = b"before"

    def content() -> Iterator[bytes]:
        yield snapshot(value)

    bench.save(content=content())
    value = b"after"
    bench.settle()
    assert b"after" in bench.disk.log(LOG).snapshots.whole[AT_THREE]


def test_crash_leaves_a_snapshot_that_was_not_told_of_or_nothing_of_it() -> None:
    left = set()
    for seed in range(30):
        bench = Bench(seed)
        bench.save()
        bench.world.run_until(bench.world.now_us + 300, events_max=100)
        if not bench.events:
            left.add(len(bench.crash().snapshots))
    assert left == {0, 1}


def test_pieces_become_a_snapshot_when_the_last_has_come() -> None:
    bench = Bench()
    content = snapshot(b"a", b"b")
    bench.receive(0, content[:50], is_last=False)
    bench.receive(50, content[50:], is_last=True)
    bench.settle()
    [saved] = bench.events
    assert isinstance(saved, SnapshotSaved)
    assert saved.file.size_bytes == len(content)


def test_snapshot_may_be_saved_and_received_at_the_same_time() -> None:
    bench = Bench()
    content = snapshot(b"state")
    bench.save()
    bench.receive(0, content, is_last=True)
    bench.settle()
    saved = [event for event in bench.events if isinstance(event, SnapshotSaved)]
    assert [event.file.id for event in saved] == [AT_THREE, AT_THREE]
    assert bench.crash().snapshots == (snapshot_file(AT_THREE, content),)


def test_what_is_no_whole_snapshot_is_refused() -> None:
    bench = Bench()
    content = snapshot(b"a", b"b")
    for broken in (content[:-1], content[:60] + b"x" + content[61:], b""):
        bench.receive(0, broken, is_last=True)
    bench.settle()
    sizes = [event.size_bytes for event in bench.events if isinstance(event, SnapshotRead)]
    assert sizes == [-1, -1, -1]
    assert bench.crash().snapshots == ()


def test_piece_out_of_place_is_a_crash() -> None:
    bench = Bench()
    bench.receive(0, b"abc", is_last=False)
    with pytest.raises(Crash, match="contract"):
        bench.receive(5, b"def", is_last=False)


def test_pieces_are_lost_in_any_crash() -> None:
    bench = Bench()
    content = snapshot(b"a")
    bench.receive(0, content[:50], is_last=False)
    bench.crash(power_loss=False)
    assert bench.counts.by_kind["lost_part"] == 1
    with pytest.raises(Crash, match="contract"):
        bench.receive(50, content[50:], is_last=True)


def test_snapshot_is_read_in_pieces() -> None:
    bench = Bench(short_read=0.5)
    bench.save()
    bench.settle()
    content = bench.disk.log(LOG).snapshots.whole[AT_THREE]
    read = b""
    while len(read) < len(content):
        bench.events.clear()
        bench.disk.perform(
            ReadSnapshot(
                log=LOG, token=bench.token(), id=AT_THREE, position=len(read), bytes_max=40
            )
        )
        bench.settle()
        [piece] = bench.events
        assert isinstance(piece, SnapshotRead)
        assert 0 < len(piece.records) <= 40
        assert piece.size_bytes == len(content)
        read += piece.records
    assert read == content


def test_unknown_snapshot_has_no_size() -> None:
    bench = Bench()
    bench.disk.perform(
        ReadSnapshot(log=LOG, token=bench.token(), id=AT_THREE, position=0, bytes_max=40)
    )
    bench.settle()
    [event] = bench.events
    assert isinstance(event, SnapshotRead)
    assert event.size_bytes == -1


def test_reset_log_begins_where_the_snapshot_ends() -> None:
    bench = Bench()
    bench.save()
    bench.settle()
    bench.reset(AT_THREE)
    bench.settle()
    assert isinstance(bench.events[-1], Stored)
    state = bench.crash()
    assert (state.start_offset, state.end_offset, state.last_epoch) == (3, 3, 1)
    assert state.epochs == (EpochStart(1, 3),)
    bench.append(3, epoch=2)
    assert bench.disk.log(LOG).written.epochs() == (EpochStart(2, 3),)


def test_reset_takes_its_place_and_may_be_left_half_done() -> None:
    seen = set()
    for seed in range(40):
        bench = Bench(seed)
        bench.reset(OffsetAndEpoch(2, 1))
        bench.append(2, epoch=3)
        state = _crashed(bench, seed)
        seen.add((state.start_offset, state.end_offset))
    assert {(0, 5), (2, 2), (2, 3)} < seen
    assert seen <= {(0, 5), (2, 2), (2, 3), (0, 2), (0, 3), (0, 4)}


def _crashed(bench: Bench, seed: int) -> LogState:
    """With a snapshot where the log may begin, as every core has saved before."""
    bench.disk.log(LOG).snapshots.whole[OffsetAndEpoch(2, 1)] = snapshot(b"state")
    return bench.crash(power_loss=seed % 2 == 0)


def test_log_that_ends_before_its_newest_snapshot_begins_anew_there() -> None:
    bench = Bench(count=2)
    ahead = Bench(count=5)
    bench.disk.log(LOG).tree = ahead.disk.log(LOG).tree
    bench.save()
    bench.settle()
    state = bench.crash()
    assert (state.start_offset, state.end_offset) == (3, 3)


def test_log_cannot_begin_where_no_record_ends() -> None:
    bench = Bench()
    with pytest.raises(Violation, match="R-SS"):
        bench.reset(OffsetAndEpoch(3, 2))


@pytest.mark.parametrize(("segment", "start"), [(1, 3), (2, 2), (5, 0)])
def test_whole_segments_are_trimmed(segment: int, start: int) -> None:
    bench = Bench(segment_batches=segment)
    bench.save()
    bench.settle()
    bench.trim(3)
    bench.settle()
    trimmed = bench.events[-1]
    assert isinstance(trimmed, Trimmed)
    assert trimmed.start_offset == start
    assert trimmed.size_bytes == bench.disk.log(LOG).size_bytes


def test_snapshots_before_the_new_start_go_with_it() -> None:
    bench = Bench()
    bench.save(OffsetAndEpoch(2, 1))
    bench.save()
    bench.settle()
    bench.trim(3)
    assert list(bench.disk.log(LOG).snapshots.whole) == [AT_THREE]


def test_crash_may_undo_a_trim_and_a_kill_does_not() -> None:
    starts = {True: set[int](), False: set[int]()}
    for seed in range(40):
        for power_loss in (True, False):
            bench = Bench(seed)
            bench.save()
            bench.settle()
            bench.trim(3)
            starts[power_loss].add(bench.crash(power_loss=power_loss).start_offset)
    assert starts[False] == {3}
    assert {0, 3} < starts[True] <= {0, 1, 2, 3}


def test_what_was_trimmed_can_not_be_read() -> None:
    bench = Bench()
    bench.save()
    bench.settle()
    bench.trim(3)
    bench.events.clear()
    for start_offset in (2, 3):
        bench.disk.perform(
            Read(
                log=LOG, token=bench.token(), start_offset=start_offset, end_offset=4, bytes_max=99
            )
        )
    bench.settle()
    found = [len(event.records) > 0 for event in bench.events if isinstance(event, ReadDone)]
    assert found == [False, True]


def test_failed_write_is_told_at_once_and_final() -> None:
    bench = Bench(count=0, write_failure=1.0)
    bench.append(0)
    [failure] = bench.disk.take_failures()
    assert isinstance(failure, StorageFailed)
    bench.append(0)
    assert bench.disk.take_failures() == []
    assert bench.crash().end_offset == 0
