"""Sequences of idempotent producers: each kind of violation is found, and what is none passes."""

from collections.abc import Callable

import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories.history import MalformedHistory, Value
from tests.jepsen_like.play import Play

KEY = "chaos-0"


class Producers(Play):
    def __init__(self) -> None:
        super().__init__(workload="kafka")
        self.put(0, 0)

    def put(self, sequence: int, offset: int | None, epoch: int = 0, value: int = 0) -> None:
        """The value is the offset, if nothing else is said; None: nobody knows how it ended."""
        number = value or offset or 0
        process = epoch if offset is not None else 100 + number
        told = {"producer": [7, epoch], "sequence": sequence}
        self.invoke(process, "send", [["send", KEY, number]], **told)
        if offset is None:
            self.info(process)
        else:
            self.ok(process, [["send", KEY, [offset, number]]])


def reused(play: Producers) -> None:
    play.put(0, 1)


def out_of_order(play: Producers) -> None:
    play.put(1, 2)
    play.put(2, 1)


def gap(play: Producers) -> None:
    play.put(1, None, value=50)
    play.put(2, 1)
    play.read_all(9, {KEY: [[0, 0], [1, 1]]})


def zombie(play: Producers) -> None:
    play.put(0, 1, epoch=1)
    play.put(1, 2)


PLANTED: list[tuple[str, Callable[[Producers], None]]] = [
    ("sequence-reused", reused),
    ("sequence-out-of-order", out_of_order),
    ("sequence-gap", gap),
    ("zombie-write", zombie),
]


@pytest.mark.parametrize(("rule", "plant"), PLANTED)
def test_planted_violation_is_found_with_its_operations(
    rule: str, plant: Callable[[Producers], None]
) -> None:
    play = Producers()
    plant(play)
    found = [each for each in judge(play.history).findings if each.rule == rule]
    assert [len(each.ops) for each in found] == [4]
    assert found[0].object == KEY


def test_records_in_their_order_pass() -> None:
    play = Producers()
    play.put(1, 1)
    play.put(2, 2)
    play.put(0, 3, epoch=1)
    play.read_all(9, {KEY: [[at, at] for at in range(4)]})
    assert judge(play.history).outcome is Outcome.VALID
    assert judge(play.history).counts["records with sequences"] == 4


def test_producers_and_keys_have_their_own_numbers() -> None:
    play = Producers()
    for offset, producer, key in ((1, 8, KEY), (0, 7, "other-0"), (2, 9, KEY)):
        play.invoke(5, "send", [["send", key, offset]], producer=[producer, 0], sequence=0)
        play.ok(5, [["send", key, [offset, offset]]])
    play.read_all(9, {KEY: [[0, 0], [1, 1], [2, 2]], "other-0": [[0, 0]]})
    assert judge(play.history).outcome is Outcome.VALID


def test_send_of_unknown_end_may_be_the_one_that_is_missing_until_all_was_read() -> None:
    play = Producers()
    play.put(1, None, value=50)
    play.put(2, 2)
    assert "sequence-gap" not in {each.rule for each in judge(play.history).findings}
    play.read_all(9, {KEY: [[0, 0], [1, 50], [2, 2]]})
    assert judge(play.history).outcome is Outcome.VALID


def test_sequence_of_a_send_that_failed_is_used_again() -> None:
    play = Producers()
    play.invoke(5, "send", [["send", KEY, 50]], producer=[7, 0], sequence=1)
    play.fail(5)
    play.put(1, 1)
    play.read_all(9, {KEY: [[0, 0], [1, 1]]})
    assert judge(play.history).outcome is Outcome.VALID


def test_older_epoch_that_had_begun_before_may_still_be_acknowledged() -> None:
    play = Producers()
    play.invoke(0, "send", [["send", KEY, 1]], producer=[7, 0], sequence=1)
    play.put(0, 2, epoch=1)
    play.ok(0, [["send", KEY, [1, 1]]])
    play.read_all(9, {KEY: [[0, 0], [1, 1], [2, 2]]})
    assert judge(play.history).outcome is Outcome.VALID


@pytest.mark.parametrize("producer", [None, [1], ["a", 0]])
def test_sequence_without_a_producer_says_where_it_is(producer: Value) -> None:
    play = Play(workload="kafka")
    play.invoke(0, "send", [["send", KEY, 1]], producer=producer, sequence=1)
    play.ok(0, [["send", KEY, [0, 1]]])
    with pytest.raises(MalformedHistory, match="operation 0"):
        judge(play.history)


def test_record_that_two_operations_sent_is_one() -> None:
    play = Play(workload="kafka")
    told = {"producer": [1, 0], "sequence": 0}
    for process in (0, 1):
        play.invoke(process, "send", [["send", "k-0", 5]], **told)
    play.info(0)
    play.ok(1, [["send", "k-0", [0, 5]]])
    play.read_all(2, {"k-0": [[0, 5]]})
    assert judge(play.history).outcome is Outcome.VALID


def test_older_epoch_may_still_write_where_the_newer_one_has_not() -> None:
    play = Producers()
    play.put(0, 1, epoch=1)
    play.invoke(5, "send", [["send", "other-0", 9]], producer=[7, 0], sequence=0)
    play.ok(5, [["send", "other-0", [0, 9]]])
    play.read_all(9, {KEY: [[0, 0], [1, 1]], "other-0": [[0, 9]]})
    assert judge(play.history).outcome is Outcome.VALID


def test_reader_tells_that_the_newer_epoch_had_written() -> None:
    play = Producers()
    play.put(0, None, epoch=1, value=50)
    read = play.read_all(9, {KEY: [[0, 0], [1, 50]]})
    play.put(1, 2)
    (finding,) = [each for each in judge(play.history).findings if each.rule == "zombie-write"]
    assert len(finding.ops) == 6
    assert read in finding.ops
