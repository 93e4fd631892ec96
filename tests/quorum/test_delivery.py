"""What applications are given: snapshots whole and first, records after them, each once."""

from dataclasses import dataclass, field

import pytest

from quorum.core.application import State
from quorum.core.effects import (
    Effect,
    EpochStart,
    Event,
    Read,
    ReadDone,
    ReadSnapshot,
    SnapshotRead,
    Stop,
    Trace,
)
from quorum.core.storage import METADATA_LOG
from quorum.core.types import Endpoint, LeaderAndEpoch, OffsetAndEpoch
from quorum.log.tail import Tail
from quorum.node.delivery import LOAD_BYTES_MAX, NEWEST_BYTES_MAX, Delivery
from quorum.raft.config import SnapshotSettings
from tests.quorum.builders import snapshot
from tests.quorum.ledger import Ledger
from wire.batch import assign, data_batch

SETTINGS = SnapshotSettings(bytes_between=100, interval_ms=0)
CONTENT, FILE = snapshot(50, 5, records=4, timestamp_ms=777)


@dataclass
class Log:
    """An engine of which the test says what is committed."""

    start_offset: int = 0
    committed_through: int = 0
    confirmed_through: int = 0
    latest_snapshot: OffsetAndEpoch | None = None
    is_saving_snapshot: bool = False
    saved: list[tuple[State, int]] = field(default_factory=list)
    log_name: str = METADATA_LOG
    node_id: int = 1
    leader: LeaderAndEpoch = field(default_factory=lambda: LeaderAndEpoch(None, 1))
    high_watermark: int | None = None
    end_offset: int = 0
    leading_since: EpochStart | None = None
    kraft_version: int = 0
    voter_ids: tuple[int, ...] = ()

    tail: Tail = field(default_factory=Tail)  # nothing: all of it is on disk

    def newest(self, *, start_offset: int, end_offset: int, bytes_max: int) -> bytes | None:
        return self.tail.read(start_offset=start_offset, end_offset=end_offset, bytes_max=bytes_max)

    def save_snapshot(self, state: State, *, last_timestamp_ms: int, now_ms: int) -> None:
        self.is_saving_snapshot = True
        self.saved.append((state, last_timestamp_ms))

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        return None

    def raise_kraft_version(self, version: int, now_ms: int) -> str | None:
        return "not here"

    def append(self, batch: bytes, now_ms: int) -> int:
        raise AssertionError(batch)

    def resign(self, now_ms: int) -> None: ...

    def serves(self, body: object) -> bool:
        return False

    def shut_down(self, now_ms: int) -> None: ...

    def receive(self, event: Event, now_ms: int) -> None: ...

    def ends_batch(self, event: Event) -> bool:
        return False

    def settle(self, now_ms: int) -> None: ...

    def deadline_ms(self) -> int | None:
        return None

    def take_effects(self) -> list[Effect]:
        return []


def delivery(log: Log, *ledgers: Ledger) -> Delivery:
    return Delivery(log, ledgers, SETTINGS)


def records(base_offset: int, count: int, *, timestamp_ms: int = 0) -> bytes:
    batch = data_batch([b"r%d" % n for n in range(count)], timestamp_ms=timestamp_ms)
    return assign(batch, base_offset=base_offset, leader_epoch=5)


def polled(given: Delivery, now_ms: int = 0) -> Effect:
    given.poll(now_ms)
    (effect,) = (e for e in given.outbox.take() if not isinstance(e, Trace))
    return effect


def read_records(given: Delivery, content: bytes, now_ms: int = 0) -> None:
    effect = polled(given, now_ms)
    assert isinstance(effect, Read)
    done = ReadDone(token=effect.token, log=METADATA_LOG, records=content)
    given.receive(done, now_ms)


def read_piece(
    given: Delivery, content: bytes = CONTENT, length: int = 1 << 20, now_ms: int = 0
) -> None:
    effect = polled(given, now_ms)
    assert isinstance(effect, ReadSnapshot)
    assert effect.bytes_max == LOAD_BYTES_MAX
    piece = content[effect.position : effect.position + length]
    read = SnapshotRead(
        token=effect.token, log=METADATA_LOG, size_bytes=len(content), records=piece
    )
    given.receive(read, now_ms)


def gone(effect: Effect) -> SnapshotRead:
    assert isinstance(effect, ReadSnapshot)
    return SnapshotRead(token=effect.token, log=METADATA_LOG, size_bytes=-1, records=b"")


@pytest.mark.parametrize("length", [1 << 20, 100, 7])
def test_snapshot_comes_first_and_then_the_records_after_it(length: int) -> None:
    log = Log(start_offset=50, committed_through=52, latest_snapshot=FILE.id)
    ledgers = Ledger(), Ledger()
    given = delivery(log, *ledgers)
    for _ in range(0, len(CONTENT), length):
        read_piece(given, length=length)
    read_records(given, records(50, 2))
    for ledger in ledgers:
        assert ledger.loads == [FILE.id]
        assert ledger.values == [b"000", b"001", b"002", b"003", b"r0", b"r1"]
        assert ledger.next_offset == 52


def test_snapshot_is_loaded_although_the_log_has_it_all() -> None:
    """At the start the newest snapshot is the shorter way."""
    log = Log(start_offset=0, committed_through=52, latest_snapshot=FILE.id)
    assert isinstance(polled(delivery(log, Ledger())), ReadSnapshot)


def test_log_that_was_replaced_brings_another_snapshot() -> None:
    log, ledger = Log(committed_through=2), Ledger()
    given = delivery(log, ledger)
    read_records(given, records(0, 2))
    log.start_offset = log.committed_through = 50
    log.latest_snapshot = FILE.id
    read_piece(given)
    assert ledger.values == [b"000", b"001", b"002", b"003"]


@pytest.mark.parametrize("late", [b"", records(0, 2)])
def test_records_of_a_log_that_was_replaced_meanwhile_are_dropped(late: bytes) -> None:
    log, ledger = Log(committed_through=2), Ledger()
    given = delivery(log, ledger)
    effect = polled(given)
    assert isinstance(effect, Read)
    log.start_offset = log.committed_through = 50
    log.latest_snapshot = FILE.id
    given.receive(ReadDone(token=effect.token, log=METADATA_LOG, records=late), 0)
    assert ledger.next_offset == 0
    assert isinstance(polled(given), ReadSnapshot)


def test_snapshot_that_went_while_it_was_read_gives_way_to_its_successor() -> None:
    log, ledger = Log(start_offset=50, committed_through=50, latest_snapshot=FILE.id), Ledger()
    given = delivery(log, ledger)
    read_piece(given, length=100)
    effect = polled(given)
    newer_content, newer = snapshot(60, 5, records=2)
    log.start_offset = log.committed_through = 60
    log.latest_snapshot = newer.id
    given.receive(gone(effect), 0)
    read_piece(given, newer_content)
    assert ledger.loads == [newer.id]
    assert ledger.values == [b"000", b"001"]


def test_newest_snapshot_that_is_gone_ends_the_process() -> None:
    given = delivery(Log(start_offset=50, latest_snapshot=FILE.id), Ledger())
    given.receive(gone(polled(given)), 0)
    (stop,) = given.outbox.take()
    assert isinstance(stop, Stop)
    assert stop.exit_code == 1


def test_damaged_snapshot_ends_the_process() -> None:
    ledger = Ledger()
    given = delivery(Log(start_offset=50, latest_snapshot=FILE.id), ledger)
    read_piece(given, CONTENT[:-10] + b"?" + CONTENT[-9:])
    (stop,) = given.outbox.take()
    assert isinstance(stop, Stop)
    assert "cannot be read: checksum" in stop.reason
    assert ledger.loads == []


def test_snapshot_bears_the_time_of_the_last_record_in_it() -> None:
    log, ledger = Log(committed_through=40), Ledger()
    given = delivery(log, ledger)
    read_records(given, records(0, 20, timestamp_ms=5) + records(20, 20, timestamp_ms=9))
    given.poll(0)
    ((state, last_timestamp_ms),) = log.saved
    assert (state.end_offset, last_timestamp_ms) == (40, 9)


def test_snapshot_after_another_was_loaded_has_the_time_of_what_came_since() -> None:
    log = Log(start_offset=50, committed_through=50, latest_snapshot=FILE.id)
    given = delivery(log, Ledger())
    read_piece(given)
    log.committed_through = 80
    read_records(given, records(50, 30, timestamp_ms=999))
    given.poll(0)
    assert [timestamp_ms for _, timestamp_ms in log.saved] == [999]


def test_no_snapshot_is_taken_while_one_is_being_saved() -> None:
    log = Log(committed_through=40)
    given = delivery(log, Ledger())
    read_records(given, records(0, 40))
    given.poll(0)
    log.committed_through = 80
    read_records(given, records(40, 40))
    given.poll(0)
    assert given.due_ms is None
    assert len(log.saved) == 1
    log.is_saving_snapshot = False
    given.poll(0)
    assert len(log.saved) == 2


def test_application_that_has_nothing_to_tell_leaves_it_to_the_next() -> None:
    log, first, second = Log(committed_through=40), Ledger(is_in_transaction=True), Ledger()
    given = delivery(log, first, second)
    read_records(given, records(0, 40))
    given.poll(0)
    assert (first.states, second.states, len(log.saved)) == (1, 1, 1)


@pytest.mark.parametrize(("end_offset", "is_saved"), [(41, True), (40, False), (0, False)])
def test_state_may_end_before_the_last_control_batch_but_must_be_new(
    end_offset: int, is_saved: bool
) -> None:
    log, ledger = Log(committed_through=42), Ledger()
    given = delivery(log, ledger)
    read_records(given, records(0, 42))
    log.latest_snapshot = OffsetAndEpoch(40, 5)
    ledger.next_offset = end_offset
    given.poll(0)
    assert [state.end_offset for state, _ in log.saved] == ([end_offset] if is_saved else [])


def test_what_is_in_memory_comes_in_pieces_and_without_the_disk() -> None:
    log, ledger = Log(), Ledger()
    quarter = bytes(NEWEST_BYTES_MAX // 4)
    for offset in range(9):
        batch = assign(data_batch([quarter], timestamp_ms=0), base_offset=offset, leader_epoch=5)
        log.tail.append(offset, offset + 1, batch)
    log.committed_through = 9
    given = delivery(log, ledger)
    pieces = []
    for now_ms in range(3):
        assert given.poll(now_ms)
        assert not given.poll(now_ms), "a turn settles more than once, and has one piece"
        pieces.append(ledger.next_offset)
        assert given.outbox.take() == []
        assert given.due_ms == (now_ms + 1 if ledger.next_offset < 9 else None)
    assert pieces == [4, 8, 9]


def test_rest_of_what_was_appended_in_one_run_is_in_memory_too() -> None:
    """A follower's run is what it fetched, and part of it may be committed."""
    log, ledger = Log(committed_through=1), Ledger()
    log.tail.append(0, 3, records(0, 1) + records(1, 1) + records(2, 1))
    log.tail.append(3, 4, records(3, 1))
    given = delivery(log, ledger)
    assert given.poll(0)
    log.committed_through = 4
    assert given.poll(0)
    assert (ledger.next_offset, given.outbox.take()) == (4, [])


def test_disk_is_asked_for_what_memory_has_forgotten() -> None:
    log, ledger = Log(committed_through=3), Ledger()
    log.tail.append(2, 3, records(2, 1))
    given = delivery(log, ledger)
    read_records(given, records(0, 2))
    assert given.poll(0)
    assert (ledger.next_offset, given.outbox.take()) == (3, [])


def test_nothing_is_due_while_a_read_is_in_flight() -> None:
    log, ledger = Log(committed_through=40), Ledger(is_in_transaction=True)
    given = delivery(log, ledger)
    read_records(given, records(0, 40))
    log.committed_through = 41
    polled(given)
    assert given.due_ms is None
