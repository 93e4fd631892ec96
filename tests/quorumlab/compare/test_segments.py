"""What a step took by itself: since the one before it was done, never less than nothing; growth."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlab.compare.node_measurements import Phase
from quorumlab.compare.results import Cell
from quorumlab.compare.segments import SINCE_DETECTED, exponent, in_words, own_times, segments

SIZES = (10, 100, 1000, 10_000)


def cell_of(partitions: int = 100, **done_ms: float | None) -> Cell:
    return Cell(
        subject="zk-v3",
        experiment="broker-crash",
        partitions=partitions,
        timeouts="equal",
        outcome="measured",
        phases={step: Phase(first_ms=1.0, done_ms=ms, count=1) for step, ms in done_ms.items()},
    )


def told(cell: Cell) -> list[tuple[str, float, float]]:
    return [(each.step, each.start_ms, each.end_ms) for each in segments(cell)]


def test_step_begins_where_the_one_before_it_was_done() -> None:
    cell = cell_of(decided=7.0, detected=5.0, persisted=9.0)
    assert told(cell) == [
        ("detected", 0.0, 5.0),
        ("decided", 5.0, 7.0),
        ("persisted", 7.0, 9.0),
    ]


def test_step_that_was_done_before_another_took_no_time_and_gives_none_back() -> None:
    cell = cell_of(detected=5.0, decided=4.0, persisted=9.0)
    assert told(cell) == [("detected", 0.0, 5.0), ("decided", 5.0, 5.0), ("persisted", 5.0, 9.0)]


def test_step_that_was_not_seen_to_end_is_left_out() -> None:
    cell = cell_of(detected=5.0, decided=None, persisted=9.0)
    assert told(cell) == [("detected", 0.0, 5.0), ("persisted", 5.0, 9.0)]


def test_own_times_are_by_step_and_subject_and_all_since_it_was_detected() -> None:
    small, large = (
        cell_of(100, detected=5.0, decided=7.0),
        cell_of(1000, detected=6.0, decided=26.0),
    )
    assert own_times([small, large]) == {
        "detected": {"zk-v3": [(100, 5.0), (1000, 6.0)]},
        "decided": {"zk-v3": [(100, 2.0), (1000, 20.0)]},
        SINCE_DETECTED: {"zk-v3": [(100, 2.0), (1000, 20.0)]},
    }


def test_nothing_is_told_since_a_detection_that_nobody_saw() -> None:
    assert own_times([cell_of(decided=7.0, persisted=9.0)]).keys() == {"decided", "persisted"}
    assert own_times([cell_of(detected=7.0)]).keys() == {"detected"}


# --- growth ---------------------------------------------------------------------------------


@given(power=st.floats(0.0, 3.0), factor=st.floats(1.0, 50.0))
def test_exponent_of_a_power_is_that_power(power: float, factor: float) -> None:
    points = [(size, factor * size**power) for size in SIZES]
    assert exponent(points) == pytest.approx(power, abs=1e-6)


def test_one_size_tells_nothing_of_growth() -> None:
    assert exponent([(100, 3.0), (100, 5.0)]) is None
    assert in_words(None) == "not known"


def test_times_too_short_to_be_told_apart_are_alike() -> None:
    assert exponent([(10, 0.0), (1000, 0.4)]) == 0.0


def test_growth_is_told_in_words() -> None:
    words = [in_words(each) for each in (-0.1, 0.1, 0.5, 1.0, 1.8)]
    assert words == ["flat", "flat", "less than linear", "linear", "more than linear"]


def test_what_gets_shorter_does_not_grow() -> None:
    assert in_words(exponent([(10, 100.0), (100, 10.0)])) == "flat"
