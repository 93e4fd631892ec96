"""Requests that wait: until when, for which partition to reach what, with which answers."""

from dataclasses import dataclass
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.partition.isr import Committed
from broker.partition.partition import LeaderOf, Partition
from broker.waiting import Answers, Deadlines, OffsetWaiters, is_worth_compacting
from controller.metadata.partitions import PartitionState
from tests.broker import partitions
from wire.errors import ErrorCode


@dataclass
class Request:
    is_done: bool = False


def test_what_is_due_expires_in_the_order_of_its_deadline() -> None:
    deadlines = Deadlines(10)
    expired: list[str] = []

    def note(name: str, _now_ms: int) -> None:
        expired.append(name)

    for name, deadline_ms in (("b", 20), ("a", 10), ("c", 30)):
        assert deadlines.add(Request(), deadline_ms, partial(note, name))

    deadlines.tick(20)

    assert expired == ["a", "b"]
    assert deadlines.deadline_ms() == 30


def test_what_was_answered_does_not_expire() -> None:
    deadlines = Deadlines(10)
    waiting = Request()
    deadlines.add(waiting, 10, lambda _: None)
    waiting.is_done = True
    assert deadlines.deadline_ms() is None


def test_only_so_many_wait_and_the_answered_make_room() -> None:
    deadlines = Deadlines(2)
    first, second, third = Request(), Request(), Request()
    assert deadlines.add(first, 10, lambda _: None)
    assert deadlines.add(second, 10, lambda _: None)
    assert not deadlines.add(third, 10, lambda _: None)

    first.is_done = True

    assert deadlines.add(third, 10, lambda _: None)


def test_who_waits_is_looked_through_twice_as_often_as_it_is_added_to_at_most() -> None:
    """Even if nobody is done: one request may add a hundred thousand."""
    looked_at = sum(count for count in range(100_000) if is_worth_compacting(count))
    assert 0 < looked_at < 2 * 100_000


# --- waiting for an offset


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("wait"), st.integers(0, 9)),
            st.tuples(st.just("reach"), st.integers(0, 9)),
            st.tuples(st.just("be done"), st.integers(0, 9)),
            st.tuples(st.just("lose"), st.just(0)),
        )
    )
)
def test_whoever_waits_is_returned_once_in_order_unless_it_is_done(
    steps: list[tuple[str, int]],
) -> None:
    partition = partition_of("t", 0)
    waiting: OffsetWaiters[Request] = OffsetWaiters()
    expected: list[tuple[int, Request]] = []
    for step, number in steps:
        expected = [each for each in expected if not each[1].is_done]
        reached = sorted((each for each in expected if each[0] <= number), key=lambda each: each[0])
        match step:
            case "wait":
                expected.append((number, request := Request()))
                waiting.add(partition, number, request)
            case "reach":
                found = list(waiting.reached(partition, number))
                assert list(map(id, found)) == [id(request) for _, request in reached]
                expected = [each for each in expected if each[0] > number]
            case "be done" if number < len(expected):
                expected[number][1].is_done = True
            case "lose":
                assert waiting.lost(partition) == [], "its leader epoch goes on"
                elect(partition, partition.leader_epoch + 1)
                in_order = sorted(expected, key=lambda each: each[0])
                lost = list(map(id, waiting.lost(partition)))
                assert lost == [id(request) for _, request in in_order]
                assert not waiting.has(partition)
                expected = []


def test_a_partition_is_waited_for_by_itself() -> None:
    one, other = partition_of("t", 0), partition_of("t", 1)
    waiting: OffsetWaiters[Request] = OffsetWaiters()
    waiting.add(one, 5, request := Request())
    assert not list(waiting.reached(other, 9))
    assert list(waiting.reached(one, 5)) == [request]


def test_nobody_of_an_earlier_leader_epoch_is_served() -> None:
    partition = partition_of("t", 0)
    waiting: OffsetWaiters[Request] = OffsetWaiters()
    waiting.add(partition, 5, request := Request())
    elect(partition, 1)
    assert not list(waiting.reached(partition, 9))
    with pytest.raises(AssertionError, match="were not refused"):
        waiting.add(partition, 5, Request())
    assert waiting.lost(partition) == [request]
    waiting.add(partition, 5, later := Request())
    assert list(waiting.reached(partition, 5)) == [later]


@pytest.mark.parametrize("leads", [True, False])
def test_all_that_wait_can_be_taken_out_whoever_leads(leads: bool) -> None:
    partition = partition_of("t", 0)
    waiting: OffsetWaiters[Request] = OffsetWaiters()
    waiting.add(partition, 5, request := Request())
    if not leads:
        partition.close(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert waiting.clear(partition) == [request]
    assert waiting.clear(partition) == []


WANTED = PartitionState(replicas=(1,), isr=(1,), leader=1)


def partition_of(topic: str, index: int) -> Partition:
    """It leads."""
    partition = partitions.partition_of(topic, index, WANTED)
    elect(partition, 0)
    return partition


def elect(partition: Partition, leader_epoch: int) -> None:
    partition.role = LeaderOf(
        leader_epoch=leader_epoch,
        epoch_start_offset=0,
        partition_epoch=leader_epoch,
        replicas=(1,),
        isr=Committed(members=(1,)),
        leader_recovery_state=0,
    )


# --- answers


def test_answers_are_complete_once_each_partition_has_one() -> None:
    answers: Answers[str] = Answers(3)
    answers.put(2, "c")
    answers.put(0, "a")
    assert not answers.is_complete
    assert answers.missing == [1]
    answers.put(1, "b")
    assert answers.take() == ["a", "b", "c"]
    assert answers.is_done
