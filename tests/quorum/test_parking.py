"""Parked items come out once: when they are ready, or when their time is up."""

from quorum.core.parking import PARKED_MAX, Parking


def parked(*deadlines: int) -> Parking[int]:
    lot: Parking[int] = Parking()
    for item, deadline_ms in enumerate(deadlines):
        lot.park(item, deadline_ms)
    return lot


def test_ready_ones_leave_in_the_order_of_their_arrival() -> None:
    lot = parked(30, 10, 20)
    assert lot.release(lambda item: item != 1) == [0, 2]
    assert [item for _, item in lot.waiting] == [1]


def test_nobody_is_woken_for_those_that_left() -> None:
    lot = parked(30, 10, 20)
    lot.release(lambda item: item == 1)
    assert lot.due_ms == 20
    lot.release(lambda item: True)
    assert lot.due_ms is None


def test_expired_ones_leave_at_their_deadline() -> None:
    lot = parked(30, 10, 20)
    assert lot.due_ms == 10
    assert lot.expired(9) == []
    assert lot.expired(20) == [1, 2]
    assert lot.due_ms == 30


def test_clear_empties_it() -> None:
    lot = parked(1, 2)
    assert lot.clear() == [0, 1]
    assert len(lot) == 0
    assert lot.due_ms is None


def test_it_is_bounded() -> None:
    lot = parked(*range(PARKED_MAX))
    assert lot.is_full()
    lot.expired(0)
    assert not lot.is_full()
