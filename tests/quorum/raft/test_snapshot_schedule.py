"""When the next snapshot is due, by bytes and by time."""

from quorum.raft.config import SnapshotSettings
from quorum.raft.snapshot_schedule import SnapshotSchedule

SETTINGS = SnapshotSettings(bytes_between=100, interval_ms=5000)


def started(settings: SnapshotSettings = SETTINGS) -> SnapshotSchedule:
    schedule = SnapshotSchedule(settings)
    schedule.taken(1000)
    return schedule


def is_due(schedule: SnapshotSchedule, now_ms: int) -> bool:
    return schedule.due_ms is not None and schedule.due_ms <= now_ms


def test_nothing_is_due_without_records() -> None:
    schedule = started()
    assert schedule.due_ms is None
    schedule.put_off(2000)
    assert schedule.due_ms is None


def test_enough_bytes_are_due_at_once() -> None:
    schedule = started()
    schedule.delivered(99, 1100)
    assert not is_due(schedule, 1100)
    schedule.delivered(1, 1200)
    assert is_due(schedule, 1200)


def test_any_record_is_due_when_the_last_snapshot_is_old() -> None:
    schedule = started()
    schedule.delivered(1, 1100)
    assert schedule.due_ms == 6000


def test_record_after_a_long_silence_is_due_at_once() -> None:
    schedule = started()
    schedule.delivered(1, 90_000)
    assert is_due(schedule, 90_000)


def test_interval_of_zero_means_by_bytes_alone() -> None:
    schedule = started(SnapshotSettings(bytes_between=100, interval_ms=0))
    schedule.delivered(99, 1100)
    assert schedule.due_ms is None


def test_snapshot_taken_begins_both_counts_anew() -> None:
    schedule = started()
    schedule.delivered(500, 1100)
    schedule.taken(2000)
    assert schedule.due_ms is None
    schedule.delivered(1, 2100)
    assert schedule.due_ms == 7000


def test_what_was_put_off_is_due_again_later_or_with_the_next_records() -> None:
    schedule = started()
    schedule.delivered(100, 1100)
    schedule.put_off(1100)
    assert not is_due(schedule, 2099)
    assert is_due(schedule, 2100)
    schedule.delivered(1, 1500)
    assert is_due(schedule, 1500)


def test_nothing_is_due_before_the_start_is_known() -> None:
    schedule = SnapshotSchedule(SETTINGS)
    schedule.delivered(1000, 1100)
    assert schedule.due_ms is None
