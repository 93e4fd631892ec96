"""What the plots show: counts and latencies of all operations, recovery, faults."""

import numpy as np
import pytest

from jepsen_like.checkers.log_columns import FAIL, INFO, OK
from jepsen_like.checkers.operations import operations
from jepsen_like.histories.history import Kind
from jepsen_like.report.bands import bands_and_marks, recoveries
from jepsen_like.report.bars import Bars, Clock
from jepsen_like.report.series import series_of
from tests.jepsen_like.report.recorded import Recorded

SECOND = 1_000_000


def bars_of(recorded: Recorded) -> tuple[Bars, Clock]:
    ops = recorded.history.ops
    clock = Clock.of(ops)
    return Bars.of(ops, operations(ops), clock), clock


def busy(until_ms: int, outage: range = range(0)) -> Recorded:
    """Ten operations a second by one process, none in the outage."""
    recorded = Recorded(workload="register")
    for at_ms in range(0, until_ms, 100):
        if at_ms not in outage:
            recorded.did(at_ms, at_ms + 50, 0, "write", ["x", at_ms])
    return recorded


def test_series_count_every_operation_once() -> None:
    recorded = busy(10_000)
    recorded.did(2000, 9000, 1, "read", ["x", None], kind=Kind.FAIL)
    recorded.did(2000, 9000, 2, "read", ["x", None], kind=Kind.INFO)
    bars, clock = bars_of(recorded)
    series = series_of(bars, clock.end)
    assert [int(series.ended[kind].sum()) for kind in (OK, INFO, FAIL)] == [100, 1, 1]
    assert len(series.ended[OK]) <= 30
    assert [each.function for each in series.latencies] == ["write"]
    assert set(np.array(series.latencies[0].quantiles).ravel()) == {50_000}


def test_quantiles_are_of_the_bucket() -> None:
    recorded = Recorded(workload="register")
    for number in range(100):
        recorded.did(number, 10_000 + 10 * number, number, "write", ["x", number])
    bars, clock = bars_of(recorded)
    (latencies,) = series_of(bars, clock.end).latencies
    at = [quantile[0] // 1000 for quantile in latencies.quantiles]
    assert at == [10_000 + 9 * rank for rank in (49, 94, 98, 99)]


def test_recovery_counts_from_the_heal() -> None:
    recorded = busy(20_000, outage=range(5000, 12_000))
    recorded.fault(4900, 10_000)
    bars, clock = bars_of(recorded)
    bands, _ = bands_and_marks(recorded.history.ops, clock)
    median, (recovery,) = recoveries(bands, bars, clock.end)
    assert median == 10
    assert recovery.first_ok == 2 * SECOND + 50_000
    assert recovery.half is not None
    assert 1.4 * SECOND <= recovery.half <= recovery.first_ok


def test_what_never_recovers_has_no_time() -> None:
    recorded = busy(5000)
    recorded.fault(4000, 9000)
    recorded.fault(4500, None, number=1)
    bars, clock = bars_of(recorded)
    bands, _ = bands_and_marks(recorded.history.ops, clock)
    _, found = recoveries(bands, bars, clock.end)
    assert [(each.first_ok, each.half) for each in found] == [(None, None), (None, None)]


def test_fault_that_was_not_injected_is_a_mark() -> None:
    recorded = busy(3000)
    fault = {"fault": 0, "kind": "kill", "role": "leader", "nodes": [1], "parameters": {}}
    recorded.nemesis(1000, "inject", fault)
    recorded.nemesis(1001, "not-injected", fault, why="it is down")
    ops = recorded.history.ops
    bands, marks = bands_and_marks(ops, Clock.of(ops))
    assert bands == []
    assert [text for _, text in marks] == ["kill not injected: it is down"]


@pytest.mark.parametrize("names", [("start", "stop"), ("start-partition", "stop-partition")])
def test_faults_of_jepsen_are_bands(names: tuple[str, str]) -> None:
    recorded = busy(3000)
    for at_ms, name in ((1000, names[0]), (1010, names[0]), (2000, names[1]), (2010, names[1])):
        recorded.nemesis(at_ms, name)
    ops = recorded.history.ops
    (band,), _ = bands_and_marks(ops, Clock.of(ops))
    assert (band.begin, band.end) == (SECOND, 2 * SECOND)
