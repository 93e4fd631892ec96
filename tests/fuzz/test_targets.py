"""Every target on some bytes that hypothesis draws; by coverage: `python -m tests.fuzz`."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import SEEDS, TARGETS


def test_seeds_are_taken() -> None:
    assert SEEDS.keys() <= TARGETS.keys()
    for name, seeds in SEEDS.items():
        for seed in seeds:
            TARGETS[name](seed)


@pytest.mark.hypothesis
@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes_are_understood_or_refused(name: str) -> None:
    @settings(max_examples=20)
    @given(st.binary(max_size=400))
    def check(data: bytes) -> None:
        TARGETS[name](data)

    check()
