"""The measuring client's core: whom it tries when, and what it keeps of the outcomes."""

from quorumlab.compare.attempts import NO_ANSWER, Attempts, Outcome
from wire.errors import ErrorCode

MS = 1_000_000
GOOD = ErrorCode.NONE
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


def acknowledge(attempts: Attempts, broker: int, now_ns: int, offset: int = 0) -> list[int]:
    """Whatever is due at `broker`; returns which partitions."""
    taken = attempts.take(broker, now_ns, 100)
    outcomes = {each.partition: Outcome(GOOD, offset) for each in taken}
    attempts.told(broker, taken, outcomes, now_ns)
    return [each.partition for each in taken]


def test_every_partition_is_tried_at_its_first_replica_and_once_at_a_time() -> None:
    attempts = Attempts([(1, 2), (2, 1), (1, 2)])
    assert [each.partition for each in attempts.take(1, 0, 10)] == [0, 2]
    assert [each.partition for each in attempts.take(2, 0, 10)] == [1]
    assert attempts.take(1, 10**12, 10) == []


def test_no_two_attempts_share_a_value() -> None:
    attempts = Attempts([(1,), (1,)])
    first = attempts.take(1, 0, 10)
    attempts.told(1, first, {}, 0)
    second = attempts.take(1, 10**12, 10)
    assert len({each.value for each in (*first, *second)}) == 4


def test_who_is_refused_is_tried_at_the_next_replica_after_a_while() -> None:
    attempts = Attempts([(1, 2, 3)])
    attempts.told(1, attempts.take(1, 0, 1), {0: Outcome(NOT_LEADER)}, 0)
    assert attempts.take(2, 19 * MS, 1) == []
    assert len(attempts.take(2, 20 * MS, 1)) == 1
    assert attempts.errors == {"NOT_LEADER_OR_FOLLOWER": 1}


def test_without_an_answer_another_replica_is_tried_and_in_time_the_first_again() -> None:
    attempts = Attempts([(1, 2)])
    attempts.told(1, attempts.take(1, 0, 1), {}, 0)
    attempts.told(2, attempts.take(2, 1000 * MS, 1), {}, 1000 * MS)
    assert attempts.leader(0) == 1
    assert attempts.errors == {NO_ANSWER: 2}


def test_a_leader_that_times_out_still_leads() -> None:
    attempts = Attempts([(1, 2)])
    taken = attempts.take(1, 0, 1)
    attempts.told(1, taken, {0: Outcome(ErrorCode.REQUEST_TIMED_OUT)}, 0)
    assert attempts.leader(0) == 1


def test_silence_lasts_from_the_mark_to_the_first_acknowledgement() -> None:
    attempts = Attempts([(1, 2), (2, 1)])
    acknowledge(attempts, 1, 5 * MS)
    acknowledge(attempts, 2, 5 * MS)
    assert attempts.written == len(attempts.placed)
    attempts.mark(100 * MS)
    assert attempts.written < len(attempts.placed)
    acknowledge(attempts, 1, 103 * MS)
    assert attempts.silences_ms([0, 1]) == [3.0, None]
    acknowledge(attempts, 1, 900 * MS)
    assert attempts.silences_ms([0]) == [3.0]
    assert attempts.longest_ms(900 * MS) == [697.0, 800.0], "of a record that was due at 203"


def test_pace_of_the_client_is_no_gap() -> None:
    attempts = Attempts([(1,)] * 400)  # one a second
    attempts.mark(0)
    for now_ms in (1, 1001, 2001):
        assert sum(len(acknowledge(attempts, 1, now_ms * MS)) for _ in range(4)) == 400
    assert attempts.longest_ms(2001 * MS)[0] == 1.0


def test_gap_that_has_not_ended_is_one() -> None:
    attempts = Attempts([(1,)])
    attempts.mark(0)
    acknowledge(attempts, 1, 1 * MS)
    assert attempts.longest_ms(701 * MS) == [600.0]


def test_at_the_mark_everything_is_due() -> None:
    attempts = Attempts([(1,)] * 50)
    acknowledge(attempts, 1, 0)
    assert attempts.take(1, 1 * MS, 100) == []
    attempts.mark(2 * MS)
    assert len(attempts.take(1, 2 * MS, 100)) == 50


def test_acknowledgement_of_a_failed_broker_was_on_its_way() -> None:
    attempts = Attempts([(1, 2)])
    taken = attempts.take(1, 0, 1)
    attempts.mark(1 * MS, failed_nodes=(1,))
    attempts.told(1, taken, {0: Outcome(GOOD, 7)}, 2 * MS)
    assert attempts.written < len(attempts.placed)
    assert attempts.acknowledged[0].offset == 7, "it counts as acknowledged all the same"


def test_where_one_partition_can_be_written_again_the_others_are_tried_at_once() -> None:
    attempts = Attempts([(1, 2)] * 1000)
    attempts.told(1, attempts.take(1, 0, 1000), {}, 0)
    (first,) = attempts.take(2, 20 * MS, 1)
    second = attempts.take(2, 300 * MS, 1000)
    attempts.told(2, second, {}, 300 * MS)
    assert len(second) == 999
    assert attempts.take(1, 301 * MS, 1000) == [], "so many wait for longer"
    attempts.told(2, [first], {first.partition: Outcome(GOOD, 0)}, 302 * MS)
    assert len(attempts.take(1, 302 * MS, 1000)) == 999


def test_what_is_due_at_a_silent_broker_is_tried_elsewhere_until_it_speaks() -> None:
    attempts = Attempts([(1, 2, 3), (1, 3, 2)])
    attempts.falls_silent(1, 0)
    (first,) = attempts.take(2, 20 * MS, 9)
    (second,) = attempts.take(3, 20 * MS, 9)
    assert (first.partition, second.partition) == (0, 1)
    attempts.told(2, [first], {0: Outcome(NOT_LEADER)}, 20 * MS)
    attempts.told(3, [second], {1: Outcome(NOT_LEADER)}, 20 * MS)
    assert attempts.take(1, 10**12, 9) == []
    attempts.told(3, attempts.take(3, 40 * MS, 9), {0: Outcome(NOT_LEADER)}, 40 * MS)
    attempts.speaks(1)
    attempts.told(2, attempts.take(2, 60 * MS, 9), {}, 60 * MS)
    assert len(attempts.take(1, 10**12, 9)) == 1


def test_partition_whose_replicas_are_all_silent_is_still_tried() -> None:
    attempts = Attempts([(1, 2)])
    attempts.falls_silent(1, 0)
    attempts.falls_silent(2, 20 * MS)
    assert sum(len(attempts.take(broker, 10**12, 9)) for broker in (1, 2)) == 1


def test_many_that_are_refused_are_tried_at_a_pace_and_none_of_it_is_left_after_them() -> None:
    """4000 tries a second."""
    attempts = Attempts([(1, 2)] * 400)
    attempts.told(1, attempts.take(1, 0, 400), {}, 0)
    first = attempts.take(2, 50 * MS, 400)
    later = attempts.take(2, 100 * MS, 400)
    assert (len(first), len(later)) == (200, 200)
    good = {each.partition: Outcome(GOOD) for each in (*first, *later)}
    attempts.told(2, [*first, *later], good, 100 * MS)
    again = attempts.take(2, 10**12, 1)
    attempts.told(2, again, {}, 10**12)
    assert len(attempts.take(1, 10**12 + 20 * MS, 9)) == 1


def test_errors_before_the_mark_are_not_of_the_fault() -> None:
    attempts = Attempts([(1, 2)])
    attempts.told(1, attempts.take(1, 0, 1), {0: Outcome(NOT_LEADER)}, 0)
    attempts.mark(20 * MS)
    assert attempts.errors == {}
    attempts.told(2, attempts.take(2, 20 * MS, 1), {}, 20 * MS)
    assert attempts.errors == {NO_ANSWER: 1}
