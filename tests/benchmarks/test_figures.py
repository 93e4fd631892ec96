"""What the benchmarks share: the form of a figure, percentiles, and the load."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.figures import percentile, print_figure
from benchmarks.peers.load import KEYS, REQUESTS_PREPARED, Load, puts


def load(*, put_count: int) -> Load:
    return Load(name="x", in_flight=1, puts=put_count, seconds=1.0, first_value=1_000)


def test_figure_is_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_figure("latency p50", 1.23456, "ms", in_flight=4)
    (line,) = capsys.readouterr().out.splitlines()
    figure = json.loads(line)
    assert (figure["name"], figure["value"], figure["unit"]) == ("latency p50", 1.235, "ms")
    assert figure["parameters"] == {"in_flight": 4}
    assert {"cpus", "python", "date"} <= figure["measured_on"].keys()


@pytest.mark.parametrize(("percent", "expected"), [(50, 2), (75, 3), (76, 4), (99, 4), (100, 4)])
def test_percentile_is_a_value_that_was_measured(percent: float, expected: float) -> None:
    assert percentile([4, 1, 3, 2], percent) == expected


@given(st.lists(st.floats(0, 1e6), min_size=1), st.integers(1, 100))
def test_percentile_is_not_exceeded_by_its_share(values: list[float], percent: int) -> None:
    found = percentile(values, percent)
    assert found in values
    assert sum(value <= found for value in values) * 100 >= len(values) * percent


@pytest.mark.parametrize("put_count", [1, 7, KEYS])
def test_no_request_of_a_load_sets_a_key_to_what_it_is(put_count: int) -> None:
    values: dict[str, str] = {}
    for number in [*range(REQUESTS_PREPARED), *range(REQUESTS_PREPARED)]:
        for key, value in puts(load(put_count=put_count), number):
            assert values.get(key) != value, (number, key)
            values[key] = value
