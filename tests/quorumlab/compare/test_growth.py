"""The exponent of growth: that of a power is found, and a constant is flat."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlab.compare.segments import exponent, in_words

SIZES = (10, 100, 1000, 10_000)


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
