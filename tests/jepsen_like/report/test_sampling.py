"""Too many operations: what lies round the evidence is drawn whole, the rest is a sample."""

import numpy as np

from jepsen_like.checkers.operations import operations
from jepsen_like.histories.history import Kind
from jepsen_like.report.bars import Bars, Clock, drawn
from tests.jepsen_like.report.recorded import Recorded

LIMIT = 200
COUNT = 3000


def many() -> Bars:
    recorded = Recorded()
    for number in range(COUNT):
        slow = 9 if number == 2500 else 5
        kind = Kind.FAIL if number == 2700 else Kind.OK
        at = 10 * number
        recorded.did(at, at + slow, 0, "send", [["send", "a-0", number]], kind=kind)
    ops = recorded.history.ops
    return Bars.of(ops, operations(ops), Clock.of(ops))


def test_all_is_drawn_when_there_is_little() -> None:
    bars = many()
    assert len(drawn(bars, np.array([7]), 5, limit=COUNT).rows) == COUNT


def test_round_the_evidence_nothing_is_left_out() -> None:
    bars = many()
    shown = drawn(bars, np.array([1000]), 30_000_000, LIMIT)
    ((begin, end),) = shown.whole
    within = np.flatnonzero((bars.call >= begin) & (bars.call <= end))
    assert set(within.tolist()) <= set(shown.rows.tolist())
    assert begin < bars.call[1000] < end
    assert len(within) >= LIMIT // 4


def test_the_rest_is_sampled_and_what_is_strange_is_kept() -> None:
    bars = many()
    rows = set(drawn(bars, np.array([1000]), 30_000_000, LIMIT).rows.tolist())
    assert {2500, 2700} <= rows, "the slowest, and the one that failed"
    assert len(rows) <= LIMIT
    assert max(np.diff(sorted(rows))) < COUNT // 30, "no stretch without any"


def test_evidence_without_end_is_drawn_within_bounds() -> None:
    bars = many()
    rows = drawn(bars, np.arange(0, COUNT, 10), 30_000_000, LIMIT).rows
    assert set(range(0, COUNT, 10)) <= set(rows.tolist())
    assert len(rows) < 3 * LIMIT
