"""Timers: each thing comes up once, at the time that was said last."""

from hypothesis import given
from hypothesis import strategies as st

from broker.coordination.timers import Timers


@given(st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(0, 20)), max_size=30))
def test_what_is_due_is_what_a_plain_table_says(changes: list[tuple[int, int | None]]) -> None:
    timers: Timers[int] = Timers()
    table: dict[int, int] = {}
    for key, due_ms in changes:
        timers.set(key, due_ms)
        table.pop(key, None)
        if due_ms is not None:
            table[key] = due_ms
        assert timers.deadline_ms() == min(table.values(), default=None)
    for now_ms in (7, 14, 20):
        due = [key for key, due_ms in table.items() if due_ms <= now_ms]
        assert sorted(timers.take_due(now_ms)) == sorted(due)
        table = {key: due_ms for key, due_ms in table.items() if due_ms > now_ms}
    assert timers.deadline_ms() is None


def test_deadlines_that_are_moved_need_no_room() -> None:
    timers: Timers[int] = Timers()
    for now_ms in range(10_000):
        timers.set(now_ms % 3, now_ms + 60_000)
        timers.set(now_ms % 3, None if now_ms % 2 else now_ms + 60_001)
    assert len(timers._heap) < 1100
    assert list(timers.take_due(80_000)) == [2], "the others were taken back last"
