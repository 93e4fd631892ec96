"""Deadlines of requests that wait."""

from dataclasses import dataclass
from functools import partial

from broker.deadlines import Deadlines, is_worth_compacting


@dataclass
class Waiting:
    is_done: bool = False


def test_what_is_due_expires_in_the_order_of_its_deadline() -> None:
    deadlines = Deadlines(10)
    expired: list[str] = []

    def note(name: str, _now_ms: int) -> None:
        expired.append(name)

    for name, deadline_ms in (("b", 20), ("a", 10), ("c", 30)):
        assert deadlines.add(Waiting(), deadline_ms, partial(note, name))

    deadlines.tick(20)

    assert expired == ["a", "b"]
    assert deadlines.deadline_ms() == 30


def test_what_was_answered_does_not_expire() -> None:
    deadlines = Deadlines(10)
    waiting = Waiting()
    deadlines.add(waiting, 10, lambda _: None)
    waiting.is_done = True
    assert deadlines.deadline_ms() is None


def test_only_so_many_wait_and_the_answered_make_room() -> None:
    deadlines = Deadlines(2)
    first, second, third = Waiting(), Waiting(), Waiting()
    assert deadlines.add(first, 10, lambda _: None)
    assert deadlines.add(second, 10, lambda _: None)
    assert not deadlines.add(third, 10, lambda _: None)

    first.is_done = True

    assert deadlines.add(third, 10, lambda _: None)


def test_who_waits_is_looked_through_twice_as_often_as_it_is_added_to_at_most() -> None:
    """Even if nobody is done: one request may add a hundred thousand."""
    looked_at = sum(count for count in range(100_000) if is_worth_compacting(count))
    assert 0 < looked_at < 2 * 100_000
