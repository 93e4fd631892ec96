"""Findings that lie between two pieces of a log are found: pieces of one to three rows."""

import pyarrow as pa
import pytest

from jepsen_like.histories.history import History
from spark import pieces
from spark.piece_rows import INPUT
from tests.jepsen_like.checkers.test_kafka_log import KEY, PLANTED, three_sent
from tests.jepsen_like.play import Play
from tests.spark.histories import random_log
from tests.spark.in_pieces import judged_both_ways

RANDOM = 3
NO_LIMIT_MB = 1 << 20


def agrees(history: History, size: int) -> None:
    found, expected = judged_both_ways(history, size)
    assert found == expected


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("number", range(len(PLANTED)))
def test_planted_violation_is_found_however_the_log_is_cut(number: int, size: int) -> None:
    play = three_sent()
    PLANTED[number][1](play)
    agrees(play.history, size)


def test_piece_without_rows_shows_nothing() -> None:
    nothing = pa.Table.from_pylist([], INPUT)
    empty = pa.RecordBatch.from_pylist([], INPUT)
    judge = pieces.losses(nothing, NO_LIMIT_MB)
    assert list(judge([])) == list(judge([empty])) == []


def test_gap_between_two_pieces_skips_nothing() -> None:
    play = Play()
    for value, offset in ((0, 0), (1, 5), (2, 6)):
        play.send(0, KEY, value, offset)
    play.read_all(9, {KEY: [[0, 0], [5, 1], [6, 2]]})
    agrees(play.history, 1)


def test_send_of_unknown_end_lies_where_it_was_read_in_every_piece() -> None:
    """Found by a trial of mutants, on a random log: pieces said that the process had gone back."""
    play = Play()
    play.send(0, KEY, 0, 0)
    play.invoke(0, "send", [["send", KEY, 1]])
    play.info(0)
    play.read_all(9, {KEY: [[0, 0], [1, 1]]})
    agrees(play.history, 1)


@pytest.mark.parametrize("seed", range(RANDOM))
def test_random_log_breaks_the_same_rules_in_pieces_of_two(seed: int) -> None:
    agrees(random_log(seed), 2)
