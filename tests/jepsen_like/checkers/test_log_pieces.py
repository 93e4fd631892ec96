"""What looks at a piece of a log finds what the whole log would show; here, one piece is all."""

from collections.abc import Callable

import numpy as np
import pytest

from jepsen_like.checkers import kafka_log
from jepsen_like.checkers.kafka_log import check_log_columns
from jepsen_like.checkers.log_columns import LogColumns
from jepsen_like.checkers.log_records import bounds_of
from jepsen_like.checkers.operations import operations
from jepsen_like.checkers.pairing import positions
from tests.jepsen_like.checkers.test_kafka_log import KEY, PLANTED, three_sent
from tests.jepsen_like.play import Play

SKIPS = {"poll-skip", "int-poll-skip"}  # need what was seen in other pieces


def columns(play: Play) -> LogColumns:
    return LogColumns.of(operations(play.history.ops))


@pytest.mark.parametrize(("rule", "plant"), PLANTED)
def test_rules_of_pieces_are_together_those_of_the_log(
    rule: str, plant: Callable[[Play], None]
) -> None:
    play = three_sent()
    plant(play)
    log = columns(play)
    pieces = (
        kafka_log.judge_values(log, is_idempotent=True),
        kafka_log.judge_losses(log),
        kafka_log.judge_offsets(log, bounds_of(log, is_idempotent=True)),
        kafka_log.judge_walk(log),
    )
    found = {each.rule for piece in pieces for each in piece.findings}
    whole = {each.rule for each in check_log_columns(log).findings}
    assert rule in whole
    assert found == whole - SKIPS


def test_values_that_are_allowed_twice_are_all_counted() -> None:
    """More than would be told of a rule."""
    play = Play()
    for value in range(5):
        play.send(0, KEY, value, value)
    play.read_all(9, {KEY: [[offset, offset % 5] for offset in range(10)]})
    verdict = kafka_log.judge_values(columns(play), is_idempotent=False)
    assert verdict.counts == {"sends": 5, "records polled": 10, "duplicates, allowed": 5}
    assert not verdict.findings


def test_gap_lies_between_two_offsets_of_one_key_that_were_seen() -> None:
    key = np.array([1, 0, 0, 1, 0, 1])
    offset = np.array([9, 5, 4, 4, 8, 8])
    keys, before, after = (each.tolist() for each in kafka_log.gaps(key, offset))
    assert (keys, before, after) == ([0, 1], [5, 4], [8, 8])


def test_jump_leaves_offsets_out_from_one_read_of_a_session_to_the_next() -> None:
    play = three_sent()
    play.poll(1, {KEY: [[0, 0], [2, 2]]})
    play.poll(2, {KEY: [[1, 1]]})
    log = columns(play)
    before, after = (log.reads.offset[rows].tolist() for rows in kafka_log.jumps(log))
    assert (before, after) == ([0], [2])
    assert {each.rule for each in kafka_log.skips(log)} == {"int-poll-skip"}


def test_places_of_few_large_numbers_are_found_without_a_place_for_each() -> None:
    column = np.array([7, 1 << 45, 3])
    assert positions(column, np.array([1 << 45, 3, 5])).tolist() == [1, 2, -1]
