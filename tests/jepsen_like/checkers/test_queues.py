"""FIFO queues: each kind of violation is found, with its operations; what is none passes."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.operations import operations
from jepsen_like.checkers.queue_columns import NOTHING, QueueColumns, QueueEnds
from jepsen_like.checkers.queues import check_queue_columns
from jepsen_like.checkers.search import Budget
from jepsen_like.checkers.verdict import Outcome, Verdict
from jepsen_like.histories.history import MalformedHistory, Value
from tests.jepsen_like.play import Play

KEY = "queue-0"


class Queue(Play):
    def __init__(self) -> None:
        super().__init__(workload="queue")

    def put(self, value: Value, process: int = 0) -> None:
        self.did(process, "enqueue", [KEY, value], None)

    def take(self, value: Value, process: int = 1) -> None:
        self.did(process, "dequeue", [KEY, None], [KEY, value])

    def perhaps_put(self, value: Value, process: int) -> None:
        self.invoke(process, "enqueue", [KEY, value])
        self.info(process)

    def perhaps_take(self, process: int) -> None:
        self.invoke(process, "dequeue", [KEY, None])
        self.info(process)

    @property
    def verdict(self) -> Verdict:
        return judge(self.history)


def phantom(play: Queue) -> None:
    play.take(99)


def failed(play: Queue) -> None:
    play.invoke(0, "enqueue", [KEY, 99])
    play.fail(0)
    play.take(99)


def early(play: Queue) -> None:
    for value in (1, 2, 99):
        play.take(value)
    play.put(99)


def twice(play: Queue) -> None:
    play.take(1)
    play.take(1)


def out_of_order(play: Queue) -> None:
    play.take(2)
    play.take(1)


def lost(play: Queue) -> None:
    play.take(2)


def lost_although_one_dequeue_is_unknown(play: Queue) -> None:
    play.put(3)
    play.perhaps_take(7)
    play.take(3)


def lost_before_the_unknown_dequeue(play: Queue) -> None:
    play.take(2)
    play.perhaps_take(7)


def empty(play: Queue) -> None:
    play.take(None)


def empty_while_one_value_follows_another(play: Queue) -> None:
    play.take(1)
    play.invoke(8, "dequeue", [KEY, None])
    play.put(3)
    play.take(2)
    play.ok(8, [KEY, None])


PLANTED: list[tuple[str, Callable[[Queue], None]]] = [
    ("phantom", phantom),
    ("G1a", failed),
    ("not-linearizable", early),
    ("duplicate-element", twice),
    ("out-of-order", out_of_order),
    ("lost-element", lost),
    ("lost-element", lost_although_one_dequeue_is_unknown),
    ("lost-element", lost_before_the_unknown_dequeue),
    ("wrongly-empty", empty),
    ("wrongly-empty", empty_while_one_value_follows_another),
]


@pytest.mark.parametrize(("rule", "plant"), PLANTED)
def test_planted_violation_is_found_with_its_operations(
    rule: str, plant: Callable[[Queue], None]
) -> None:
    play = Queue()
    play.put(1)
    play.put(2)
    plant(play)
    verdict = play.verdict
    assert {finding.rule for finding in verdict.findings} == {rule}
    assert all(finding.ops and finding.object == KEY for finding in verdict.findings)
    assert verdict.outcome is Outcome.VIOLATED


def test_values_leave_in_the_order_they_came_and_then_it_is_empty() -> None:
    play = Queue()
    play.take(None)
    play.put(1)
    play.put(2)
    play.take(1)
    play.take(2)
    play.take(None)
    assert play.verdict.outcome is Outcome.VALID


def test_values_that_came_at_once_leave_in_either_order() -> None:
    for first, second in ((1, 2), (2, 1)):
        play = Queue()
        for process in (1, 2):
            play.invoke(process, "enqueue", [KEY, process])
        for process in (1, 2):
            play.ok(process)
        play.take(first)
        play.take(second)
        assert play.verdict.outcome is Outcome.VALID


def test_enqueue_of_unknown_end_may_take_effect_late_or_never() -> None:
    for seen in ([2, 1], [1, 2], [2, None]):
        play = Queue()
        play.perhaps_put(1, 7)
        play.put(2)
        for value in seen:
            play.take(value)
        assert play.verdict.outcome is Outcome.VALID, seen


def test_dequeue_of_unknown_end_may_have_taken_one_value() -> None:
    play = Queue()
    play.put(1)
    play.put(2)
    play.perhaps_take(7)
    play.take(2)
    play.take(None)
    assert play.verdict.outcome is Outcome.VALID


def test_unknown_dequeues_and_an_empty_queue_are_left_to_the_search() -> None:
    play = Queue()
    play.put(1)
    play.perhaps_take(7)
    play.take(None)
    assert play.verdict.outcome is Outcome.VALID
    late = judge(play.history, Budget(steps=0, is_late=lambda: True))
    assert late.outcome in (Outcome.VALID, Outcome.UNDECIDED)


def test_queues_are_judged_apart() -> None:
    play = Queue()
    play.put(1)
    play.did(0, "enqueue", ["other", 1], None)
    play.did(1, "dequeue", ["other", None], ["other", 1])
    play.did(1, "dequeue", ["other", None], ["other", 1])
    play.take(1)
    assert play.verdict.objects == {KEY: Outcome.VALID, "other": Outcome.VIOLATED}


def two_of_one_deadline_and_one_unknown_dequeue(play: Queue) -> None:
    """Both have to leave before 3; the one that came in first has left."""
    play.invoke(2, "enqueue", [KEY, 2])
    play.put(1)
    play.ok(2)
    play.put(3)
    play.perhaps_take(7)
    play.take(3)


def more_than_are_told(play: Queue) -> None:
    for value in range(10, 18):
        play.put(value)
    for value in (17, 16, 15, 14, 13, 25, 24, 23, 22, 21, 20):
        play.take(value)
    for value in range(20, 26):
        play.put(value)


def more_that_nobody_enqueued(play: Queue) -> None:
    for value in range(8):
        play.take(value)


def coded_otherwise(columns: QueueColumns) -> QueueColumns:
    """The same values, the last of them first."""
    last = len(columns.values) - 1

    def recoded(ends: QueueEnds) -> QueueEnds:
        return replace(ends, value=np.where(ends.value == NOTHING, NOTHING, last - ends.value))

    return QueueColumns(
        keys=columns.keys,
        values=[columns.values[last - number] for number in range(last + 1)],
        enqueues=recoded(columns.enqueues),
        dequeues=recoded(columns.dequeues),
    )


@pytest.mark.parametrize(
    "plant",
    [
        two_of_one_deadline_and_one_unknown_dequeue,
        more_than_are_told,
        more_that_nobody_enqueued,
        empty_while_one_value_follows_another,
    ],
)
def test_what_is_told_does_not_depend_on_how_values_are_coded(
    plant: Callable[[Queue], None],
) -> None:
    """Spark codes them by what they are, and a history in the order in which they are met."""
    play = Queue()
    plant(play)
    columns = QueueColumns.of(operations(play.history.ops))
    told = check_queue_columns(columns)
    assert told == check_queue_columns(coded_otherwise(columns))
    assert told.findings


def test_of_two_lost_values_an_unknown_dequeue_took_the_one_that_came_first() -> None:
    play = Queue()
    two_of_one_deadline_and_one_unknown_dequeue(play)
    (finding,) = play.verdict.findings
    assert finding.detail == "2 never left, and 3 did, which came later"


@pytest.mark.parametrize(
    ("f", "value"), [("enqueue", [KEY, None]), ("enqueue", 7), ("dequeue", [KEY, {}])]
)
def test_operation_that_is_none_says_where_it_is(f: str, value: Value) -> None:
    play = Queue()
    play.did(0, f, value, value)
    with pytest.raises(MalformedHistory, match="operation 0"):
        judge(play.history)
