"""When offsets were applied: every step is remembered, ten thousand at most."""

import pytest

from quorum.core.effects import Read, ReadDone
from quorum.core.storage import METADATA_LOG
from quorum.log.applied_times import STEPS_MAX, AppliedTimes, Untimed
from quorum.node.member import Member
from tests.quorum.ledger import Ledger
from tests.quorum.test_delivery import (
    FILE,
    Log,
    delivery,
    read_piece,
    read_records,
    records,
)


def test_an_offset_was_applied_by_the_first_step_that_ends_behind_it() -> None:
    times = AppliedTimes()
    for next_offset, now_ms in ((3, 100), (4, 100), (9, 250)):
        times.note(next_offset, now_ms)
    found = [times.when(offset) for offset in range(10)]
    assert found == [100, 100, 100, 100, 250, 250, 250, 250, 250, Untimed.NOT_YET]
    assert (times.oldest, times.next_offset) == (0, 9)


def test_nothing_is_applied_before_the_first_step() -> None:
    times = AppliedTimes()
    assert (times.when(0), times.next_offset, times.oldest) == (Untimed.NOT_YET, 0, 0)


@pytest.mark.parametrize("excess", [-1, 0, 1, 500])
def test_what_is_forgotten_differs_from_what_is_to_come(excess: int) -> None:
    """Step n ends behind offset 2n + 1, at n ms."""
    times, count = AppliedTimes(), STEPS_MAX + excess
    for n in range(count):
        times.note(2 * n + 2, n)
    forgotten = 0 if excess < 0 else excess + 1  # steps: the first of a full memory bounds the next
    assert (times.oldest, times.next_offset) == (2 * forgotten, 2 * count)
    assert times.when(2 * forgotten - 1) is Untimed.FORGOTTEN
    asked = (forgotten, forgotten + STEPS_MAX // 2, count - 1)
    assert [(times.when(2 * n), times.when(2 * n + 1)) for n in asked] == [(n, n) for n in asked]
    assert times.when(2 * count) is Untimed.NOT_YET


def test_every_piece_of_the_disk_and_of_memory_is_a_step() -> None:
    log = Log(committed_through=3)
    log.tail.append(2, 3, records(2, 1))
    given = delivery(log, Ledger())
    read_records(given, records(0, 2), now_ms=40)
    assert given.applied_times.when(1) == 40
    assert given.applied_times.when(2) is Untimed.NOT_YET
    assert given.poll(70)
    assert [given.applied_times.when(offset) for offset in (0, 1, 2)] == [40, 40, 70]


def test_a_snapshot_applies_everything_before_its_end_at_once() -> None:
    log = Log(start_offset=50, committed_through=52, latest_snapshot=FILE.id)
    given = delivery(log, Ledger())
    assert (given.applied_times.next_offset, given.applied_times.when(3)) == (0, Untimed.NOT_YET)
    read_piece(given)
    assert (given.applied_times.next_offset, given.applied_times.when(49)) == (50, 0)
    read_records(given, records(50, 2), now_ms=90)
    assert [given.applied_times.when(offset) for offset in (0, 49, 50, 51)] == [0, 0, 90, 90]


def test_a_snapshot_in_the_place_of_records_keeps_the_times_before_it() -> None:
    log = Log(committed_through=2)
    given = delivery(log, Ledger())
    read_records(given, records(0, 2), now_ms=30)
    log.start_offset = log.committed_through = 50
    log.latest_snapshot = FILE.id
    read_piece(given, now_ms=80)
    assert [given.applied_times.when(offset) for offset in (1, 2, 49)] == [30, 80, 80]


def test_a_member_tells_the_times_of_its_own_applications() -> None:
    log = Log(committed_through=2)
    member = Member(log, {"ledger": Ledger()})
    member.settle(10)
    (read,) = (each for each in member.take_effects() if isinstance(each, Read))
    member.receive(ReadDone(token=read.token, log=METADATA_LOG, records=records(0, 2)), 20)
    assert member.applied_times.when(1) == 20
