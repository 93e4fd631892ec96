"""The verdict on a partition in cases of their own; `tests/agreement` has random ones."""

from jepsen_like.checkers.log_columns import LogColumns
from jepsen_like.checkers.operations import operations
from jepsen_like.checkers.verdict import Outcome
from tests.agreement.dense_logs import dense_linearizability, linearizability
from tests.jepsen_like.play import Play

KEY = "log-0"


def test_reader_behind_an_acknowledged_offset_sees_no_earlier_end() -> None:
    play = Play()
    play.send(0, KEY, 1, 0)
    play.poll(1, {}, ends={KEY: 0})
    assert linearizability(LogColumns.of(operations(play.ops))).outcome is Outcome.VIOLATED


def test_gap_must_be_filled_only_where_there_can_be_none() -> None:
    play = Play()
    play.send(0, KEY, 1, 1)
    log = LogColumns.of(operations(play.ops))
    assert linearizability(log).outcome is Outcome.VALID
    assert dense_linearizability(log).outcome is Outcome.VIOLATED


def test_acknowledgement_without_offset_leaves_a_dense_log_undecided() -> None:
    play = Play()
    play.send(0, KEY, 1, None)
    log = LogColumns.of(operations(play.ops))
    assert dense_linearizability(log).outcome is Outcome.UNDECIDED
